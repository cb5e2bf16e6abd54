"""Whoever fails on a disk leaves no file open: what is tried again for hours would use up all."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from bettong.engine.ingest.journal import Journal
from bettong.engine.net.block import Block
from bettong.engine.receiver.ledger import Ledger
from bettong.engine.storage.disk import AppendFile
from bettong.engine.storage.simulated import SimulatedDisk

HOME = Path("/disk")


class Counting(SimulatedDisk):
    """Knows how many files are open, and is full from the n-th change on.

    Attributes:
        left: so many changes go well before that.
    """

    def __init__(self) -> None:
        super().__init__(on_change=self.count)
        self.opened = 0
        self.left = 1 << 30

    def count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    def append_to(self, path: Path) -> AppendFile:
        file = super().append_to(path)
        self.opened += 1
        return _Closing(self, file)


class _Closing:
    def __init__(self, disk: Counting, file: AppendFile) -> None:
        self.disk, self.write, self.sync = disk, file.write, file.sync
        self.truncate = file.truncate

    def close(self) -> None:
        self.disk.opened -= 1


def test_a_ledger_that_cannot_be_made_leaves_no_file_open() -> None:
    for left in range(100):
        disk = Counting()
        disk.left = left
        try:
            Ledger(HOME, "app", disk=disk)
        except OSError:
            assert disk.opened == 0, f"the disk was full after {left} changes"
        else:
            break
    assert left > 8


def test_a_ledger_that_cannot_be_opened_again_leaves_no_file_open() -> None:
    disk = Counting()
    ledger = Ledger(HOME, "app", disk=disk)
    ledger.open(1)
    ledger.prepare(1, 0, 0, 0, 0, True, b"row\n")
    ledger.commit(1, 0, {0: 0})
    ledger.close()
    assert disk.opened == 0
    for left in range(100):
        disk.left = left
        try:
            Ledger(HOME, "app", disk=disk).close()
        except OSError:
            assert disk.opened == 0, f"the disk was full after {left} changes"
        else:
            break
    assert left > 2


def test_a_segment_that_cannot_be_begun_leaves_no_file_open() -> None:
    disk = Counting()
    journal = Journal(HOME, "lines", segment_bytes=1, disk=disk)
    for left in range(4):
        disk.left = left
        with pytest.raises(OSError, match="No space left"):
            journal.append(Block.of([b"a"]))
        assert disk.opened == 1, f"the disk was full after {left} changes"
    disk.left = 1 << 30
    journal.append(Block.of([b"a"]))
    assert (journal.end, disk.opened) == (1, 1)
