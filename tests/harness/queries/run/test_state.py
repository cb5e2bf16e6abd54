"""The durable state of a run: kept at a crash, brought back."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from bettong.harness.queries.run import state as durable_state
from bettong.harness.queries.run.state import (
    Moments,
    batches_as_cut,
    copy_state,
    digest_state,
    last_without_data,
    replace_state,
)


def test_what_still_tidies_up_in_the_dead_state_does_no_harm(tmp_path: Path) -> None:
    """Dying tasks delete their own files, by names that they have, while the state is replaced."""
    for round_ in range(40):
        state, kept = tmp_path / f"{round_}", tmp_path / f"{round_}-1"
        files = [state / "out" / "_temporary" / str(n) / "part" for n in range(50)]
        for file in files:
            file.parent.mkdir(parents=True)
            file.write_bytes(b"x")
        (state / "kept").write_bytes(b"kept")
        copy_state(state, kept)
        start = threading.Barrier(2)

        def tidy(files: list[Path] = files, start: threading.Barrier = start) -> None:
            start.wait()
            for file in files:
                file.unlink(missing_ok=True)

        dying = threading.Thread(target=tidy)
        dying.start()
        start.wait()
        replace_state(state, kept)
        dying.join()
        assert (state / "kept").read_bytes() == b"kept"
        assert not kept.exists()


def _planned(checkpoint: Path, batch: int, watermark: int, *offsets: str) -> None:
    about = json.dumps({"batchWatermarkMs": watermark, "batchTimestampMs": id(offsets)})
    log = checkpoint / "offsets" / str(batch)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("\n".join(["v1", about, *offsets]))


def test_runs_are_cut_alike_that_read_the_same_at_the_same_watermark(tmp_path: Path) -> None:
    for run in ("run1", "run2", "without"):
        for batch in (0, 1, 10):
            if (run, batch) != ("without", 10):
                _planned(tmp_path / run, batch, 5 * batch, f'{{"clicks-{run}":{{"0":{batch}}}}}')
    first = batches_as_cut(tmp_path / "run1", "run1")
    assert [part.split()[0] for part in first] == ["0", "1", "10"]
    assert batches_as_cut(tmp_path / "run2", "run2") == first
    assert batches_as_cut(tmp_path / "without", "without") == first[:2]
    _planned(tmp_path / "run2", 10, 51, '{"clicks-run2":{"0":10}}')
    assert batches_as_cut(tmp_path / "run2", "run2") != first


def test_a_batch_without_data_reads_nothing_that_the_one_before_has_not(tmp_path: Path) -> None:
    for number, (watermark, end) in enumerate(((0, 5), (40, 9), (90, 9))):
        _planned(tmp_path, number, watermark, f'{{"logOffset":{end}}}')
    cut = batches_as_cut(tmp_path, "run1")
    assert last_without_data(cut) == 2
    assert last_without_data(cut[:2]) is None
    assert last_without_data(cut[:1]) is None


def test_a_log_that_cannot_be_read_is_like_no_other(tmp_path: Path) -> None:
    for run in ("run1", "run2"):
        _planned(tmp_path / run, 0, 0)
        (tmp_path / run / "offsets" / "1").write_text("v1")
    first, second = (batches_as_cut(tmp_path / run, run) for run in ("run1", "run2"))
    assert first != second
    assert batches_as_cut(tmp_path / "none", "run1") == ()


@pytest.mark.parametrize(
    "marks",
    [("0" * 32, "f" * 32), ("1763733208123", "1763733299999"), ("tmpaaaaaaaa", "tmpbbbbbbbb")],
)
def test_a_mark_that_changes_in_a_run_is_another_one(
    tmp_path: Path, marks: tuple[str, str]
) -> None:
    """A batch may be known by the hash of its rows, a version by its random name."""
    (tmp_path / "mark").write_text(marks[0])
    run, other = Moments(), Moments()
    first = run.digest(tmp_path)
    assert run.digest(tmp_path) == first
    (tmp_path / "mark").write_text(marks[1])
    assert run.digest(tmp_path) != first
    assert other.digest(tmp_path) == first  # of another run, in which it is the first one
    (tmp_path / "mark").write_text(marks[0])
    assert run.digest(tmp_path) == first


def test_states_that_say_where_they_are_are_alike_wherever_that_is(tmp_path: Path) -> None:
    """Spark's file sink keeps whole paths, and runs side by side have other folders."""
    digests = set()
    for lane, run in (("0", "run0004"), ("1", "run0005"), ("1", "run0006")):
        state = tmp_path / lane / run
        (state / "out").mkdir(parents=True)
        (state / "log").write_text(f'{{"path":"file://{state}/out/part-0","name":"{run}"}}')
        digests.add(digest_state(state))
    assert len(digests) == 1
    (state / "log").write_text(f'{{"path":"file://{state}/out/part-1","name":"{run}"}}')
    assert digest_state(state) not in digests


def _columns(*orders: bytes) -> bytes:
    """A Parquet file as far as it matters: of each column the encodings, between type and path."""
    footer = b"".join(b"\x15\x0c\x195" + order + b"\x19\x18\x02id\x00" for order in orders)
    return b"PAR1rows" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_encodings_are_a_set_that_each_jvm_has_in_another_order(tmp_path: Path) -> None:
    one, two = (
        _columns(b"\x00\x06\x08", b"\x06\x00\x08"),
        _columns(b"\x08\x06\x00", b"\x00\x06\x08"),
    )
    others = [
        _columns(b"\x00\x06\x06", b"\x00\x06\x08"),
        _columns(b"\x00\x06\x08"),
        two.replace(b"rows", b"swor"),
        two[:-1],  # is begun only
    ]
    digests = []
    for number, content in enumerate((one, two, *others)):
        state = tmp_path / f"run{number}"
        state.mkdir()
        (state / "part-0.parquet").write_bytes(content)
        digests.append(digest_state(state))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 1 + len(others)


def test_how_long_a_merge_took_tells_nothing(tmp_path: Path) -> None:
    digests = set()
    for took, rows in (("812", "20"), ("1207", "20"), ("812", "21")):
        state = tmp_path / f"{took}-{rows}"
        state.mkdir()
        log = {"operationMetrics": {"executionTimeMs": took, "numTargetRowsInserted": rows}}
        (state / "1.json").write_text(json.dumps(log, separators=(",", ":")))
        digests.add(digest_state(state))
    assert len(digests) == 2


def test_only_what_has_changed_is_read_closely_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large it is: there are hundreds of files, and it is asked at every step."""
    large = tmp_path / "run1" / "large"
    large.parent.mkdir()
    large.write_bytes(b"\0" * 100_000)
    (tmp_path / "run1" / "small").write_bytes(b"1")
    looked_at: list[bytes] = []

    def noted(content: bytes) -> bytes:
        looked_at.append(content)
        return content

    monkeypatch.setattr(durable_state, "in_one_order", noted)
    run = Moments()
    first = run.digest(tmp_path / "run1")
    assert len(looked_at) == 2
    assert run.digest(tmp_path / "run1") == first
    assert len(looked_at) == 2
    large.write_bytes(b"\0" * 99_999 + b"\1")  # of the same length, at the same time
    assert run.digest(tmp_path / "run1") != first
    assert len(looked_at) == 3


def test_where_a_link_leads_and_that_a_folder_is_empty_is_seen(tmp_path: Path) -> None:
    digests = [digest_state(tmp_path)]
    (tmp_path / "folder").mkdir()
    digests.append(digest_state(tmp_path))
    (tmp_path / "link").symlink_to("folder")
    digests.append(digest_state(tmp_path))
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("nowhere")
    digests.append(digest_state(tmp_path))
    assert len(set(digests)) == len(digests)
