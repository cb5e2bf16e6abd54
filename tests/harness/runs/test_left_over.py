"""What is left over on the disks of a run: found where it is, and nothing where all is in use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bettong.engine.sinks.arrow import ArrowSink
from bettong.engine.sinks.base import Noted
from bettong.engine.state.files import FileEntry
from bettong.engine.state.manifest import Manifest, write_manifest
from bettong.engine.state.planned import PlannedBatch, note
from bettong.engine.state.store import LocalStore
from bettong.harness.cluster.layout import Layout
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.left_over import left_over

CRASH = Schedule.from_dict(
    {"faults": [{"crash": {"node": "driver", "before": "batch=1/sink.commit"}}]}
).faults
FULL, FULL_FROM_THEN_ON = (
    Schedule.from_dict(
        {"faults": [{"storage": {"before": "batch=1/state.manifest", "call": 1, **more}}]}
    ).faults
    for more in ({}, {"lasting": True})
)
CUT = Schedule.from_dict(
    {"faults": [{"power-cut": {"node": "driver", "before": "batch=1/sink.commit"}}]}
).faults
PAUSE = Schedule.from_dict(
    {"faults": [{"pause": {"node": "driver", "from": "batch=1/sink.commit", "replace": True}}]}
).faults


def state_file(batch: int, kind: str = "0") -> FileEntry:
    name = f"state/Sum/000001-{batch:012d}-0000-{kind}-{batch:012x}.arrow"
    return FileEntry(name, "Sum", 0, 1, rows=1, length=0, crc=0)


def state(
    layout: Layout, versions: Sequence[int], files: Sequence[FileEntry], notes: Sequence[int] = ()
) -> None:
    """Versions of the state that name the file of their own batch each, and files."""
    store = LocalStore(layout.checkpoint / "state")
    for batch in versions:
        write_manifest(store, Manifest("app", batch, 1, {}, (state_file(batch),)))
    for file in files:
        store.write(file.name, b"")
    for batch in notes:
        note(store, PlannedBatch(batch, {}, {}))


@pytest.mark.parametrize("faults", [(), CRASH])
def test_versions_that_two_batches_have_made_useless_are_left_over(
    tmp_path: Path, faults: Sequence[Fault]
) -> None:
    layout = Layout(tmp_path)
    state(layout, [1, 2, 3], [state_file(batch) for batch in (1, 2, 3)], [1, 2, 3])
    assert left_over(layout, 2, faults) == ()
    state(layout, [0], [state_file(0)])
    (leak,) = left_over(layout, 2, faults)
    assert leak.seen == "notes of batch 0 too"
    assert left_over(layout, 3, faults) == left_over(layout, None, faults) == ()
    assert left_over(layout, 2, PAUSE) == ()


def test_notes_of_what_batches_take_are_judged_too(tmp_path: Path) -> None:
    state(Layout(tmp_path), [2, 3], [], [0, 3])
    (leak,) = left_over(Layout(tmp_path), 2)
    assert leak.seen == "notes of batch 0 too"


def test_state_files_that_no_version_names_are_left_over_unless_they_are_new_or_merged(
    tmp_path: Path,
) -> None:
    layout = Layout(tmp_path)
    state(layout, [2, 3], [state_file(b) for b in (2, 3)])
    state(layout, [], [state_file(0, "merge"), state_file(2, "1"), state_file(4)])
    assert left_over(layout, 2) == ()
    state(layout, [], [state_file(1)])
    (leak,) = left_over(layout, 2, CRASH)
    assert str(leak.seen).startswith("state/Sum/000001-000000000001-")


@pytest.mark.parametrize(
    "name",
    [
        "checkpoint/state/manifests/.tmp-0123",
        "gateway/streams/lines/segment.new",
        "receiver/app/output.length.new",
        "files/sums/_staged/e1-b0-p0-a0",
    ],
)
def test_what_is_unfinished_is_left_over_unless_a_crash_may_have_left_it(
    tmp_path: Path, name: str
) -> None:
    layout = Layout(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(b"")
    (leak,) = left_over(layout)
    assert str(leak.seen).startswith(name)
    assert left_over(layout, faults=CRASH) == ()
    assert left_over(layout, faults=FULL) == (leak,)
    base = name.rpartition("/")[2]
    told = [f"call 3, append of {base}: EIO", f"call 3, remove of other-{base}: EIO"]
    assert left_over(layout, faults=FULL, evidence=told) == (leak,)
    assert left_over(layout, faults=FULL, evidence=[f"call 11, remove of {base}: EIO"]) == ()
    assert left_over(layout, faults=FULL_FROM_THEN_ON) == ()


@pytest.mark.parametrize(
    ("name", "is_of_driver"),
    [
        ("checkpoint/state/epochs/.tmp-0123", True),
        ("files/sums/_epochs/epoch-1.new", True),
        ("files/sums/_staged/e1-b0-p0-a0", False),  # dropped by the next driver only
        ("receiver/app/output.length.new", False),  # the receiver may be at it still
    ],
)
def test_a_driver_that_was_replaced_and_not_killed_leaves_nothing_unfinished(
    tmp_path: Path, name: str, is_of_driver: bool
) -> None:
    layout = Layout(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(b"")
    assert len(left_over(layout, faults=PAUSE)) == is_of_driver
    assert left_over(layout, faults=[*PAUSE, *CRASH]) == ()
    assert left_over(layout, faults=[*PAUSE, *FULL]) == ()


def test_rows_in_arrow_files_that_no_batch_names_are_left_over(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    sink = ArrowSink(layout.files / "sums")
    for epoch in (1, 2):
        sink.open("app", epoch, Noted("", ()))
        sink.prepare(epoch, 0, 0, 0, [], Noted("", ()))
    (kept,) = left_over(layout, faults=CRASH)
    assert kept.note == "the sink sums keeps rows that no batch names"
    assert "2 such files" in str(kept.seen)
    assert left_over(layout, faults=PAUSE) == left_over(layout, faults=[*CRASH, *CUT]) == ()
    sink.commit(2, 0, {0: 0}, Noted("", ()))
    assert left_over(layout, faults=CRASH) == left_over(layout) == ()


def test_what_cannot_be_read_is_left_to_who_has_to_read_it(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    state(layout, [0, 5], [])
    for path in (layout.checkpoint / "state" / "manifests").iterdir():
        path.write_bytes(b"?")
    assert left_over(layout, 2, CRASH) == ()
