"""Names that somebody has made who was killed before they were durable: whoever goes on from them
makes them so."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.engine.sinks.arrow import ArrowSink, read_batches
from bettong.engine.sinks.base import Noted, Row
from bettong.engine.sources.directory import DirectorySource
from bettong.engine.state.store import LocalStore
from bettong.engine.storage.disk import OsDisk
from bettong.engine.storage.simulated import SimulatedDisk

QUIET = Noted("")
PATH = Path("/log/epochs/000001.json")


def unfinished() -> SimulatedDisk:
    """A disk on which a name has been made, and nothing waited for."""
    disk = SimulatedDisk()
    file = disk.append_to(PATH.with_name("made"))
    file.write(b"content")
    file.sync()
    disk.link(PATH.with_name("made"), PATH)
    assert not all(PATH in image for image in disk.images())
    return disk


def test_what_is_there_already_is_durable_when_that_is_said() -> None:
    disk = unfinished()
    assert not LocalStore(Path("/log"), disk).create("epochs/000001.json", b"other")
    assert [image[PATH] for image in disk.images()] == [b"content"]


def test_a_folder_that_is_settled_keeps_its_names() -> None:
    disk = unfinished()
    LocalStore(Path("/log"), disk).settle("epochs")
    assert [image[PATH] for image in disk.images()] == [b"content"]


class Synced(list[Path]):
    """The folders that were synced."""

    def note(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on."""
        plain = OsDisk.sync_directory

        def sync(disk: OsDisk, path: Path) -> None:
            self.append(path)
            plain(disk, path)

        monkeypatch.setattr(OsDisk, "sync_directory", sync)


def test_a_batch_of_arrow_files_that_is_there_already_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = ArrowSink(tmp_path)
    sink.open("app", 1, QUIET)
    sink.prepare(1, 0, 0, 0, [Row("lines/0", None, b"5")], QUIET)
    sink.commit(1, 0, {0: 0}, QUIET)
    synced = Synced()
    synced.note(monkeypatch)
    sink.commit(1, 0, {0: 0}, QUIET)
    assert synced == [tmp_path / "batches"]
    assert [len(table) for table in read_batches(tmp_path)] == [1]


def test_numbers_that_another_process_has_given_to_files_are_durable_before_they_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, index, kept = tmp_path / "in", tmp_path / "index", tmp_path / "kept"
    folder.mkdir()
    (folder / "a").write_text("1\n2\n")
    assert DirectorySource(folder, kept).extent(2, 0).end == 2
    kept.rename(index)  # as made by somebody else
    synced = Synced()
    synced.note(monkeypatch)
    source = DirectorySource(folder, index)
    assert source.extent(2, 0).end == 2
    assert synced == [index]
    assert source.extent(2, 0).end == 2
    assert synced == [index]
