"""The file operations that durable code is built on, so that tests can put a disk under it that
loses what was not synced."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO, Protocol

from bettong.engine.storage.calls import disk_call, reads

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


class Closeable(Protocol):
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

    def rewrite(self, path: Path, offset: int, data: Buffer) -> None:
        """Write bytes again that a file holds already: where a sync of them has failed, which who
        finds them cannot know, the next one would not write them otherwise."""

    def rename(self, source: Path, target: Path) -> None:
        """Put one file in the place of another, atomically."""

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name; raises FileExistsError when there is such a name."""

    def remove(self, path: Path) -> None: ...

    def make_directory(self, path: Path) -> None:
        """Make it and its parents where they are missing, durably."""

    def sync_directory(self, path: Path) -> None:
        """Return when the names in the directory are durable."""


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of calls that take no name, only a descriptor, name the file all the same: whose disk
    is full is the first thing that somebody wants to know."""
    try:
        yield
    except OSError as e:
        e.filename = e.filename or str(path)
        raise


class _OsAppendFile:
    def __init__(self, path: Path, syncs: bool) -> None:
        self._path = path
        self._syncs = syncs
        self._handle = f"{os.getpid()}.{next(_handles)}"
        with disk_call("open", path, self._handle, path, touches=(path,)):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._fd = os.open(path, flags, 0o644)

    def write(self, data: Buffer) -> None:
        view = memoryview(data).cast("B")
        with _named(self._path), disk_call("append", self._path, self._handle) as call:
            while view:
                written = os.write(self._fd, call.granted(view))
                call.wrote(view[:written])
                view = view[written:]

    def sync(self) -> None:
        if self._syncs:
            with _named(self._path), disk_call("sync", self._path, self._handle):
                os.fsync(self._fd)

    def truncate(self, size: int) -> None:
        with _named(self._path), disk_call("truncate", self._path, self._handle, size):
            os.ftruncate(self._fd, size)

    def close(self) -> None:
        os.close(self._fd)


class OsDisk:
    """The machine's file system. What changes a file goes through :func:`disk_call`, where a run
    under test numbers it and makes it fail.

    Attributes:
        syncs: whether anything waits until it is durable.
    """

    syncs = True

    def append_to(self, path: Path) -> AppendFile:
        return _OsAppendFile(path, self.syncs)

    def open(self, path: Path) -> BinaryIO:
        reads(path)
        return path.open("rb", buffering=1 << 18)

    def size(self, path: Path) -> int:
        return path.stat().st_size

    def names(self, directory: Path) -> list[str]:
        reads(directory)
        return sorted(entry.name for entry in directory.iterdir())

    def rewrite(self, path: Path, offset: int, data: Buffer) -> None:
        operands = offset, len(data), path
        with _named(path), disk_call("rewrite", path, *operands, touches=(path,)):
            fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                view = memoryview(data).cast("B")
                while view:
                    written = os.pwrite(fd, view, offset)
                    view, offset = view[written:], offset + written
            finally:
                os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        with disk_call("rename", target, source, target, touches=(source, target)):
            source.replace(target)

    def link(self, source: Path, target: Path) -> None:
        with disk_call("link", target, source, target, touches=(source,)):
            target.hardlink_to(source)

    def remove(self, path: Path) -> None:
        with disk_call("remove", path, path, touches=(path,)):
            path.unlink()

    def make_directory(self, path: Path) -> None:
        there = path.is_dir()
        if there and _holds_anything(path):
            return
        if not there:
            self.make_directory(path.parent)
            with contextlib.suppress(FileExistsError), disk_call("mkdir", path, path):
                path.mkdir()
        # Nothing is put into it before this: whoever made one that is empty may have ended here.
        try:
            self.sync_directory(path.parent)
        except PermissionError:
            if not there:
                raise

    def sync_directory(self, path: Path) -> None:
        if not self.syncs:
            return
        with _named(path), disk_call("sync directory", path, path):
            fd = os.open(path, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _holds_anything(directory: Path) -> bool:
    with os.scandir(directory) as entries:
        return next(entries, None) is not None


OS_DISK: Disk = OsDisk()
_handles = count()


def replace_file(path: Path, content: Buffer, disk: Disk = OS_DISK) -> None:
    """Set a file to hold this: readers see all of it or what was there before, and on return it is
    durable. Raises OSError; then what was there before is."""
    unfinished = path.with_name(f"{path.name}.new")
    with contextlib.suppress(FileNotFoundError):
        disk.remove(unfinished)
    with removed_if_it_fails(unfinished, disk):
        file = disk.append_to(unfinished)
        try:
            file.write(content)
            file.sync()
        finally:
            file.close()
        disk.rename(unfinished, path)
    disk.sync_directory(path.parent)


@contextlib.contextmanager
def removed_if_it_fails(unfinished: Path, disk: Disk) -> Iterator[None]:
    """Write a file, or fail without it: a full disk is not made fuller each time that it is tried
    again."""
    try:
        yield
    except OSError:
        with contextlib.suppress(OSError):
            disk.remove(unfinished)
        raise


@contextlib.contextmanager
def closed_if_it_fails(opened: Closeable) -> Iterator[None]:
    """Go on to use what has been opened, or fail without it open: what is tried again, on a full
    disk for hours, would open another one each time."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
