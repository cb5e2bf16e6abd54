"""The file operations that durable code is built on, so that tests can put a disk under it that
loses what was not synced."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol

from bettong.engine import steps

Buffer = bytes | bytearray | memoryview


class AppendFile(Protocol):
    """A file that grows at its end."""

    def write(self, data: Buffer) -> None:
        """Append all of it, or raise OSError; then any part of it may have been appended."""

    def sync(self) -> None:
        """Return when everything written is durable."""

    def truncate(self, size: int) -> None:
        """Cut the file; what is written next follows there."""

    def close(self) -> None: ...


class Disk(Protocol):
    """A file system. Paths are absolute; names in a directory may be lost until it is synced."""

    def append_to(self, path: Path) -> AppendFile:
        """Open for appending; the file is made when there is none."""

    def open(self, path: Path) -> BinaryIO:
        """Open for reading, buffered."""

    def size(self, path: Path) -> int:
        """Bytes in the file; raises FileNotFoundError."""

    def names(self, directory: Path) -> list[str]:
        """Sorted names in a directory."""

    def rename(self, source: Path, target: Path) -> None:
        """Put one file in the place of another, atomically."""

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name; raises FileExistsError when there is such a name."""

    def remove(self, path: Path) -> None: ...

    def make_directory(self, path: Path) -> None:
        """Make it and its parents where they are missing, durably."""

    def sync_directory(self, path: Path) -> None:
        """Return when the names in the directory are durable."""


class _OsAppendFile:
    def __init__(self, path: Path, syncs: bool) -> None:
        self._syncs = syncs
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._last = 0  # bytes of the last write, as long as they are not synced

    def write(self, data: Buffer) -> None:
        view = memoryview(data)
        self._last = len(view)
        while view:
            view = view[os.write(self._fd, view) :]

    def sync(self) -> None:
        if not self._syncs:
            return
        watched = steps.present()
        if watched is not None and self._last and watched.about_to_sync():
            kept = self._last // 2
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - self._last + kept)
            os.fsync(self._fd)
            watched.power_is_cut(f"of the last {self._last} bytes all but {kept}")
        os.fsync(self._fd)
        self._last = 0

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def close(self) -> None:
        os.close(self._fd)


class OsDisk:
    """The machine's file system.

    Attributes:
        syncs: whether anything waits until it is durable.
    """

    syncs = True

    def append_to(self, path: Path) -> AppendFile:
        return _OsAppendFile(path, self.syncs)

    def open(self, path: Path) -> BinaryIO:
        return path.open("rb", buffering=1 << 18)

    def size(self, path: Path) -> int:
        return path.stat().st_size

    def names(self, directory: Path) -> list[str]:
        return sorted(entry.name for entry in directory.iterdir())

    def rename(self, source: Path, target: Path) -> None:
        is_new = steps.present() is not None and not target.exists()
        source.replace(target)
        if is_new:
            _names.undo = target, lambda: target.replace(source)

    def link(self, source: Path, target: Path) -> None:
        target.hardlink_to(source)
        if steps.present() is not None:
            _names.undo = target, target.unlink

    def remove(self, path: Path) -> None:
        path.unlink()

    def make_directory(self, path: Path) -> None:
        if path.is_dir():
            return
        self.make_directory(path.parent)
        path.mkdir(exist_ok=True)
        self.sync_directory(path.parent)

    def sync_directory(self, path: Path) -> None:
        if not self.syncs:
            return
        watched, lost = steps.present(), _not_durable(path)
        if watched is not None and lost is not None and watched.about_to_sync():
            target, undo = lost
            undo()
            watched.power_is_cut(f"the name {target.name}")
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


OS_DISK: Disk = OsDisk()
_names = threading.local()  # the last new name that this thread has given within a step


def _not_durable(directory: Path) -> tuple[Path, Callable[[], object]] | None:
    """The name given last in a directory that is about to be synced, and how it is lost."""
    given: tuple[Path, Callable[[], object]] | None = getattr(_names, "undo", None)
    if given is None or given[0].parent != directory:
        return None
    _names.undo = None
    return given
