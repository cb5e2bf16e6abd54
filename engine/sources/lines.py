"""Which bytes of a text file are which line. A line ends with a newline, or at the file's end."""

from __future__ import annotations

import os
import threading
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bettong.lineage.errors import BettongError, UsageError

_CHUNK = 1 << 22
_NONE: np.ndarray[Any, np.dtype[np.int64]] = np.zeros(1, np.int64)


class ChangedFileError(BettongError):
    """A file that is not what it was when its messages were numbered."""


class LineIndex:
    """Where the lines of a file begin; grows with the file. Safe for several threads: who asks
    how far a run is looks at the file beside the run's batches.

    Attributes:
        size: how many bytes have been looked at.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts = _NONE
        self.size = 0
        self._checksum = 0
        self._inode = 0
        self._looking = threading.Lock()

    def refresh(self) -> None:
        """Look at what has been added since.

        Raises:
            UsageError: the file cannot be read.
            ChangedFileError: it has become shorter, or another file is in its place that does not
                begin as it did.
        """
        try:
            with self._looking, self._path.open("rb") as file:
                self._look(file)
        except OSError as e:
            raise UsageError(f"source file {self._path} cannot be read: {e.strerror}") from e

    def _look(self, file: BinaryIO) -> None:
        status = os.fstat(file.fileno())
        if status.st_size < self.size:
            raise ChangedFileError(
                f"source file {self._path} had {self.size} bytes and has {status.st_size}: its "
                "messages have been numbered; put the file back, or start afresh"
            )
        if status.st_ino != self._inode and not self._begins_alike(file):
            raise ChangedFileError(
                f"another file is in the place of source file {self._path}, whose messages have "
                "been numbered: put the file back, or start afresh"
            )
        self._inode = status.st_ino
        file.seek(self.size)
        found, size, checksum = [self._starts], self.size, self._checksum
        while size < status.st_size and (chunk := file.read(min(_CHUNK, status.st_size - size))):
            at = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n"))
            found.append(at + size + 1)
            size += len(chunk)
            checksum = zlib.crc32(chunk, checksum)
        if len(found) > 1:  # else nothing has come: what is large is not copied
            self._starts = np.concatenate(found)
        self.size, self._checksum = size, checksum

    def _begins_alike(self, file: BinaryIO) -> bool:
        """Whether the bytes that have been looked at are there as they were."""
        left, checksum = self.size, 0
        while left and (chunk := file.read(min(_CHUNK, left))):
            left -= len(chunk)
            checksum = zlib.crc32(chunk, checksum)
        return not left and checksum == self._checksum

    @property
    def complete(self) -> int:
        """How many lines have their newline."""
        return len(self._starts) - 1

    @property
    def lines(self) -> int:
        """How many lines there are if nothing is added to the last."""
        return self.complete + (self.size > int(self._starts[-1]))

    def position(self, number: int) -> int:
        """Where a line begins, in bytes."""
        return int(self._starts[number])

    def read(self, start: int, stop: int) -> list[bytes]:
        """The lines of ``[start, stop)``, all of which are there, without their ends."""
        if start == stop:
            return []
        first = self.position(start)
        last = self.position(stop) if stop <= self.complete else self.size
        with self._path.open("rb") as file:
            file.seek(first)
            data = file.read(last - first)
        if len(data) != last - first:
            raise ChangedFileError(f"source file {self._path} has become shorter")
        lines = data.split(b"\n")
        if len(lines) > stop - start:
            lines.pop()  # what follows the last newline
        if len(lines) != stop - start:
            raise ChangedFileError(
                f"source file {self._path} has other lines than when they were numbered: put it "
                "back as it was, or start afresh"
            )
        return [line.removesuffix(b"\r") for line in lines]


_indexes: dict[Path, LineIndex] = {}


def number_anew() -> None:
    """Forget what this process knows of files: another run may find others under their names."""
    _indexes.clear()


def index_of(path: Path) -> LineIndex:
    """This process's index of a file."""
    if path not in _indexes:
        _indexes[path] = LineIndex(path)
    return _indexes[path]
