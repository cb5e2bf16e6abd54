"""What a sync that fails has given up no later one writes: programs read it in memory all the same,
also those that follow a killed one."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from bettong.engine.ingest.journal import Journal
from bettong.engine.net.block import Block
from bettong.engine.receiver.ledger import Ledger
from bettong.engine.storage.disk import AppendFile, Buffer
from bettong.engine.storage.disk_log import DiskLog, account, lose
from bettong.engine.storage.durability import Inode
from bettong.engine.storage.simulated import SimulatedDisk

HOME = Path("/disk")


class Failing(SimulatedDisk):
    """Fails all that is asked of a file from its n-th sync on, until it works again.

    Attributes:
        left: so many syncs go well before that.
    """

    left = 1 << 30

    def append_to(self, path: Path) -> AppendFile:
        file = super().append_to(path)
        return FailingFile(self, self.volume.names[path], file)


class FailingFile:
    def __init__(self, disk: Failing, inode: Inode, file: AppendFile) -> None:
        self.disk, self.inode, self.file = disk, inode, file

    def write(self, data: Buffer) -> None:
        self.file.write(data)

    def sync(self) -> None:
        self.disk.left -= 1
        if self.disk.left < 0:
            self.disk.volume.sync_failed(self.inode)
            raise OSError(errno.EIO, "Input/output error")
        self.file.sync()

    def truncate(self, size: int) -> None:
        if self.disk.left < 0:
            raise OSError(errno.EIO, "Input/output error")
        self.file.truncate(size)

    def close(self) -> None:
        self.file.close()


def test_a_sync_that_goes_well_writes_nothing_of_what_one_before_has_given_up() -> None:
    disk = Failing()
    file = disk.append_to(HOME / "a")
    disk.sync_directory(HOME)
    file.write(b"12")
    file.sync()
    file.write(b"34")
    disk.left = 0
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    disk.left = 9
    file.write(b"56")
    file.sync()
    assert disk.image() == {HOME / "a": b"123456"}
    assert list(disk.images()) == [{HOME / "a": b"12\0\x0056"}]
    disk.rewrite(HOME / "a", 3, b"4")
    file.sync()
    assert list(disk.images()) == [{HOME / "a": b"12\x00456"}]
    file.truncate(2)
    file.write(b"7890")
    file.sync()
    assert list(disk.images()) == [{HOME / "a": b"127890"}]


def test_bytes_that_were_cut_off_before_a_sync_failed_are_not_given_up_twice() -> None:
    disk = Failing()
    file = disk.append_to(HOME / "a")
    disk.sync_directory(HOME)
    file.write(b"123")
    file.sync()
    file.truncate(1)
    file.write(b"4")
    disk.left = 0
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    disk.left = 9
    file.sync()
    assert list(disk.images()) == [{HOME / "a": b"1\0"}]


def test_an_account_tells_a_power_cut_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")
    log = DiskLog(tmp_path, "node")
    log.write("open", "1", path)
    log.write("sync directory", tmp_path)
    log.write("append", "1", data=b"content")
    log.write("sync failed", "1")
    log.write("sync", "1")
    log.write("rewrite", 4, 3, path)
    log.write("sync", "1")
    lose(account(tmp_path, "node"))
    assert path.read_bytes() == b"\0\0\0\0ent"


def test_a_journal_has_what_it_was_opened_with_when_the_power_fails_later() -> None:
    """The last frame was written, its sync failed and it could not be cut off; then the process was
    killed, and the next one tells a sender that the frame is there."""
    disk = Failing()
    journal = Journal(HOME, "lines", disk=disk)
    journal.append(Block.of([b"0"]))
    disk.left = 0
    with pytest.raises(OSError, match="Input/output"):
        journal.append(Block.of([b"1"]))
    disk.left = 1 << 30
    found = Journal(HOME, "lines", disk=disk)
    assert found.end == 2
    found.append(Block.of([b"2"]))
    for image in disk.images():
        assert Journal(HOME, "lines", disk=SimulatedDisk(image)).end == 3


def test_an_output_has_what_it_was_opened_with_when_the_power_fails_later() -> None:
    """The rows of a commit were written, their sync failed and they could not be cut off; then the
    process was killed, and the next one commits a batch behind them."""
    disk = Failing()
    ledger = Ledger(HOME, "app", disk=disk)
    ledger.open(1)
    ledger.prepare(1, 0, 0, 0, 0, True, b"row 0\n")
    disk.left = 1  # the commit itself is noted
    with pytest.raises(OSError, match="Input/output"):
        ledger.commit(1, 0, {0: 0})
    disk.left = 1 << 30
    found = Ledger(HOME, "app", disk=disk)
    found.prepare(1, 1, 0, 0, 0, True, b"row 1\n")
    found.commit(1, 1, {0: 0})
    for image in disk.images():
        left = SimulatedDisk(image)
        Ledger(HOME, "app", disk=left)
        assert left.image()[HOME / "output.jsonl"] == b"row 0\nrow 1\n"
