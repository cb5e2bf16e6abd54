"""The file system under the state log, as narrow as it can be.

Four operations, each with what it promises after a crash, so that a simulated file system can
lose everything that was not promised. Object stores without rename can offer the same four.
"""

from __future__ import annotations

import mmap
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

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
        callers one is told yes."""
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
    """Files under a folder of a POSIX file system, shared by all who use the log."""

    root: Path

    def write(self, name: str, data: bytes | memoryview) -> None:
        path = self._path(name)
        _write_durable(path, data)
        _sync_folder(path.parent)

    def publish(self, name: str, data: bytes) -> None:
        path = self._path(name)
        temporary = _temporary(path)
        _write_durable(temporary, data)
        temporary.replace(path)
        _sync_folder(path.parent)

    def create(self, name: str, data: bytes) -> bool:
        path = self._path(name)
        temporary = _temporary(path)
        _write_durable(temporary, data)
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        _sync_folder(path.parent)
        return True

    def read(self, name: str) -> memoryview:
        try:
            with (self.root / name).open("rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    return memoryview(b"")
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as e:
            raise StoreError(f"{self.root / name} cannot be read: {e.strerror}") from e

    def names(self, folder: str) -> list[str]:
        try:
            names = [path.name for path in (self.root / folder).iterdir()]
        except FileNotFoundError:
            return []
        return sorted(n for n in names if not n.startswith(_TEMPORARY))

    def remove(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


_TEMPORARY = ".tmp-"


def _temporary(path: Path) -> Path:
    return path.with_name(f"{_TEMPORARY}{uuid.uuid4().hex}")


def _write_durable(path: Path, data: bytes | memoryview) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
