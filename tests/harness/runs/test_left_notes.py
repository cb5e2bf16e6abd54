"""Notes that say other than the state what a batch has taken."""

from __future__ import annotations

from pathlib import Path

from bettong.engine.state.manifest import Manifest, write_manifest
from bettong.engine.state.planned import PlannedBatch, note
from bettong.engine.state.store import LocalStore
from bettong.harness.cluster.layout import Layout
from bettong.harness.runs.left_notes import check_notes


def state(layout: Layout, ends: dict[str, int], epoch: int = 1) -> None:
    store = LocalStore(layout.checkpoint / "state")
    write_manifest(store, Manifest("app", 1, epoch, ends, ()))


def test_a_note_that_says_what_the_state_has_is_right(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert check_notes(layout) == ()
    state(layout, {"amounts": 5})
    assert check_notes(layout) == (), "a batch that number closes is not noted"
    store = LocalStore(layout.checkpoint / "state")
    note(store, PlannedBatch(1, {"amounts": 2, "silent": 0}, {"amounts": 5, "silent": 0}))
    note(store, PlannedBatch(2, {"amounts": 5, "silent": 0}, {"amounts": 7, "silent": 0}))
    assert check_notes(layout) == (), "nothing of the silent stream; batch 2 is yet to be done"


def test_a_note_that_was_made_over_another_is_found(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    state(layout, {"amounts": 5, "corrections": 1}, epoch=2)
    planned = PlannedBatch(1, {"amounts": 2, "corrections": 1}, {"amounts": 4, "corrections": 1})
    note(LocalStore(layout.checkpoint / "state"), planned)
    (found,) = check_notes(layout)
    assert found.kind == "StateDivergence"
    assert found.expected == {"batch": 1, "ends": {"amounts": 5}}
    assert found.seen == {"batch": 1, "ends": {"amounts": 4}}


def test_what_cannot_be_read_is_left_to_who_reads_the_state(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    state(layout, {"amounts": 5})
    LocalStore(layout.checkpoint / "state").write("planned/000000000001.json", b"torn")
    assert check_notes(layout) == ()


def test_what_is_found_before_something_unreadable_counts(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    state(layout, {"amounts": 5})
    store = LocalStore(layout.checkpoint / "state")
    for batch in (1, 2):
        note(store, PlannedBatch(batch, {"amounts": 2}, {"amounts": 4}))
    store.write("manifests/000000000002-000001.json", b"torn")
    (found,) = check_notes(layout)
    assert found.seen == {"batch": 1, "ends": {"amounts": 4}}
