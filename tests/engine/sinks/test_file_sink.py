"""Files as a sink."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from bettong.engine.errors import FencedError
from bettong.engine.sinks.base import Noted, Row
from bettong.engine.sinks.files import FileSink, read_rows
from bettong.engine.storage.disk import OS_DISK
from bettong.engine.storage.simulated import Image, SimulatedDisk
from bettong.lineage.errors import BettongError, UsageError

HOME = Path("/out/files")
QUIET = Noted("")


def row(batch: int, partition: int, n: int = 0) -> Row:
    return Row(f"lines/{batch}.{partition}{n}", f"k{n}", b"%d" % n)


def work(sink: FileSink, epoch: int, batch: int) -> None:
    """One batch with a losing attempt."""
    sink.prepare(epoch, batch, 0, 0, [row(batch, 0, 9)], QUIET)
    sink.prepare(epoch, batch, 1, 0, [row(batch, 1)], QUIET)
    sink.prepare(epoch, batch, 0, 1, [row(batch, 0), row(batch, 0, 1)], QUIET)
    sink.commit(epoch, batch, {0: 1, 1: 0}, QUIET)


EXPECTED = [row(b, p, n).id for b in range(2) for p, n in ((0, 0), (0, 1), (1, 0))]


def ids(image: Image) -> list[str]:
    paths = sorted(path for path in image if path.name.startswith("batch-"))
    return [json.loads(line)["id"] for path in paths for line in image[path].splitlines()]


def test_batches_become_files(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out")
    sink.open("app", 1, QUIET)
    for batch in range(2):
        work(sink, 1, batch)
        work(pickle.loads(pickle.dumps(sink)), 1, batch)
    assert [found["id"] for found in read_rows(tmp_path / "out")] == EXPECTED
    assert list((tmp_path / "out" / "_staged").iterdir()) == []


def test_older_epochs_are_fenced(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out")
    sink.open("app", 1, QUIET)
    sink.prepare(1, 0, 0, 0, [row(0, 0)], QUIET)
    sink.open("app", 2, QUIET)
    for action in (
        lambda: sink.open("app", 1, QUIET),
        lambda: sink.prepare(1, 0, 0, 0, [], QUIET),
        lambda: sink.commit(1, 0, {0: 0}, QUIET),
    ):
        with pytest.raises(FencedError, match="epoch 1 of"):
            action()
    with pytest.raises(BettongError, match="has not been prepared"):
        sink.commit(2, 0, {0: 0}, QUIET)
    assert list(read_rows(tmp_path / "out")) == []


def test_a_directory_belongs_to_one_application(tmp_path: Path) -> None:
    FileSink(tmp_path).open("app", 1, QUIET)
    with pytest.raises(UsageError, match="holds the output of app"):
        FileSink(tmp_path).open("other", 2, QUIET)


def test_no_crash_loses_or_doubles_a_batch() -> None:
    tried: set[tuple[int, frozenset[tuple[Path, bytes]]]] = set()
    batch = 0

    def check() -> None:
        for image in disk.images():
            if (batch, frozenset(image.items())) in tried:
                continue
            tried.add((batch, frozenset(image.items())))
            again = SimulatedDisk(image)
            found = ids(image)
            assert found == EXPECTED[: len(found)]
            assert len(found) in (3 * batch, 3 * batch + 3), "whole batches, all promised ones"
            sink = FileSink(HOME, again)
            sink.open("app", 2, QUIET)
            for following in range(batch, 2):
                work(sink, 2, following)
            assert ids(again.image()) == EXPECTED

    disk = SimulatedDisk()
    sink = FileSink(HOME, disk)
    disk._on_change = check
    sink.open("app", 1, QUIET)
    for batch in range(2):
        work(sink, 1, batch)
    assert len(tried) > 200


def test_a_zombie_that_passed_the_fence_changes_nothing(tmp_path: Path) -> None:
    class Slow(type(OS_DISK)):  # type: ignore[misc]
        """Lets the next epoch replay the batch just before this one makes its file."""

        def link(self, source: Path, target: Path) -> None:
            new = FileSink(tmp_path / "out")
            new.open("app", 2, QUIET)
            new.prepare(2, 0, 0, 0, [row(0, 0)], QUIET)
            new.commit(2, 0, {0: 0}, QUIET)
            super().link(source, target)

    zombie = FileSink(tmp_path / "out", Slow())
    zombie.open("app", 1, QUIET)
    zombie.prepare(1, 0, 0, 0, [row(0, 0)], QUIET)
    with pytest.raises(FileNotFoundError):  # epoch 2 has swept away what it had staged
        zombie.commit(1, 0, {0: 0}, QUIET)
    assert [found["id"] for found in read_rows(tmp_path / "out")] == [row(0, 0).id]


def test_a_zombie_that_begins_its_epoch_late_leaves_what_its_successor_has_staged(
    tmp_path: Path,
) -> None:
    class Slow(type(OS_DISK)):  # type: ignore[misc]
        """Lets the next epoch begin and stage just before this one is there."""

        def rename(self, source: Path, target: Path) -> None:
            if target.name == "epoch-1":
                new.open("app", 2, QUIET)
                new.prepare(2, 0, 0, 0, [row(0, 0)], QUIET)
            super().rename(source, target)

    new = FileSink(tmp_path)
    FileSink(tmp_path, Slow()).open("app", 1, QUIET)
    new.commit(2, 0, {0: 0}, QUIET)
    assert [found["id"] for found in read_rows(tmp_path)] == [row(0, 0).id]
