"""Messages of a folder that the state has taken and the index does not know any more."""

from __future__ import annotations

from pathlib import Path

from bettong.engine.sources.directory import DirectorySource
from bettong.engine.state.manifest import Manifest, write_manifest
from bettong.engine.state.store import LocalStore
from bettong.harness.cluster.layout import Layout
from bettong.harness.runs.left_numbers import check_numbers


def numbered(layout: Layout) -> None:
    """Three messages in two files."""
    folder = layout.input_folder("lines")
    folder.mkdir()
    (folder / "0000").write_bytes(b"a\nb\n")
    (folder / "0001").write_bytes(b"c")
    assert DirectorySource(folder, layout.index("lines")).extent(0, 0.0).end == 3


def test_an_index_of_all_that_was_taken_is_right(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    numbered(layout)
    assert check_numbers(layout, ["lines"]) == (), "nothing is taken yet"
    write_manifest(LocalStore(layout.checkpoint / "state"), Manifest("app", 0, 1, {"lines": 3}, ()))
    assert check_numbers(layout, ["lines"]) == ()
    assert check_numbers(layout, ()) == ()


def test_an_entry_that_is_lost_is_found(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    numbered(layout)
    write_manifest(LocalStore(layout.checkpoint / "state"), Manifest("app", 0, 1, {"lines": 3}, ()))
    (layout.index("lines") / f"{1:09d}.json").unlink()
    (found,) = check_numbers(layout, ["lines"])
    assert (found.kind, found.seen) == ("StateDivergence", {"stream": "lines", "numbered": 2})
    assert found.note is not None and "has taken 3" in found.note
