"""What a full disk leaves of a file that was to get its name when it is whole."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from bettong.engine.state.store import LocalStore
from bettong.engine.storage.disk import AppendFile, Buffer
from bettong.engine.storage.simulated import SimulatedDisk


class FullFile:
    """Takes no byte more."""

    def __init__(self, file: AppendFile) -> None:
        self._file = file

    def write(self, data: Buffer) -> None:
        self._file.write(bytes(data)[:1])
        raise OSError(errno.ENOSPC, "No space left on device")

    def sync(self) -> None:
        self._file.sync()

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def close(self) -> None:
        self._file.close()


class FullDisk(SimulatedDisk):
    def append_to(self, path: Path) -> AppendFile:
        return FullFile(super().append_to(path))


def test_a_full_disk_is_not_made_fuller_by_trying_again() -> None:
    disk = FullDisk()
    store = LocalStore(Path("/log"), disk)
    for attempt in (store.create, store.publish):
        with pytest.raises(OSError, match="No space left"):
            attempt("epochs/000001.json", b"content")
    assert disk.image() == {}
