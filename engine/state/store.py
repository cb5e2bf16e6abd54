"""The file system under the state log, as narrow as it can be.

Four operations, each with what it promises after a crash, so that a simulated file system can
lose everything that was not promised. Object stores without rename can offer the same four.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from bettong.engine.storage.disk import OS_DISK, Disk, removed_if_it_fails
from bettong.lineage.errors import BettongError


class StoreError(BettongError):
    """A file of the state log that cannot be read or written."""


class Store(Protocol):
    """Names are relative, with ``/``; folders need not be made."""

    def write(self, name: str, data: bytes | memoryview) -> None:
        """A new file, durable when this returns. The caller's name is used for nothing else."""
        ...

    def publish(self, name: str, data: bytes) -> None:
        """Set a name to hold data: a reader sees all of it or what was there before, and when
        this returns it is durable."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Like publish, but only when there is no such name; says whether it did. Of several
        callers one is told yes; what the others find is durable as well when they are told no."""
        ...

    def read(self, name: str) -> memoryview:
        """The whole file; raises StoreError when there is none."""
        ...

    def names(self, folder: str) -> list[str]:
        """Names in a folder, sorted; none when there is no such folder."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file if it is there; it may come back after a crash."""
        ...


@dataclass(frozen=True)
class LocalStore:
    """Files under a folder of a POSIX file system, shared by all who use the log.

    Attributes:
        root: the folder.
        disk: the file operations; another one in tests.
    """

    root: Path
    disk: Disk = field(default=OS_DISK, compare=False)

    def write(self, name: str, data: bytes | memoryview) -> None:
        path = self._path(name)
        self._write(path, data)
        self.disk.sync_directory(path.parent)

    def publish(self, name: str, data: bytes) -> None:
        path = self._path(name)
        temporary = _temporary(path)
        with removed_if_it_fails(temporary, self.disk):
            self._write(temporary, data)
            self.disk.rename(temporary, path)
        self.disk.sync_directory(path.parent)

    def create(self, name: str, data: bytes) -> bool:
        path = self._path(name)
        temporary = _temporary(path)
        with removed_if_it_fails(temporary, self.disk):
            self._write(temporary, data)
        try:
            self.disk.link(temporary, path)
            made = True
        except FileExistsError:
            made = False
        finally:
            self.disk.remove(temporary)
        self.disk.sync_directory(path.parent)
        return made

    def read(self, name: str) -> memoryview:
        path = self.root / name
        try:
            with self.disk.open(path) as file:
                return _mapped(file)
        except OSError as e:
            raise StoreError(f"{path} cannot be read: {e.strerror or e}") from e

    def names(self, folder: str) -> list[str]:
        try:
            names = self.disk.names(self.root / folder)
        except FileNotFoundError:
            return []
        return sorted(n for n in names if not n.startswith(_TEMPORARY))

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.disk.remove(self.root / name)

    def settle(self, folder: str) -> None:
        """The names in a folder are durable when this returns: whoever has made one may have been
        killed before it waited for that."""
        self.disk.sync_directory(self.root / folder)

    def _path(self, name: str) -> Path:
        path = self.root / name
        self.disk.make_directory(path.parent)
        return path

    def _write(self, path: Path, data: bytes | memoryview) -> None:
        file = self.disk.append_to(path)
        try:
            file.write(data)
            file.sync()
        finally:
            file.close()


_TEMPORARY = ".tmp-"


def _temporary(path: Path) -> Path:
    return path.with_name(f"{_TEMPORARY}{uuid.uuid4().hex}")


def _mapped(file: BinaryIO) -> memoryview:
    """The file's bytes without a copy, where the machine can do that."""
    try:
        descriptor = file.fileno()
    except io.UnsupportedOperation:
        return memoryview(file.read())
    if not os.fstat(descriptor).st_size:
        return memoryview(b"")
    return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
