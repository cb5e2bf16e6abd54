"""Which bytes of a text file are which line. A line ends with a newline, or at the file's end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from bettong.lineage.errors import BettongError, UsageError

_CHUNK = 1 << 22
_NONE: np.ndarray[Any, np.dtype[np.int64]] = np.zeros(1, np.int64)


class ChangedFileError(BettongError):
    """A file that is not what it was when its messages were numbered."""


class LineIndex:
    """Where the lines of a file begin; grows with the file.

    Attributes:
        size: how many bytes have been looked at.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts = _NONE
        self.size = 0
        self._inode = 0

    def refresh(self) -> None:
        """Look at what has been added since; at all of it when another file has come in its
        place.

        Raises:
            UsageError: the file cannot be read.
            ChangedFileError: it has become shorter.
        """
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._inode:
                    self._starts, self.size, self._inode = _NONE, 0, status.st_ino
                size = status.st_size
                if size < self.size:
                    raise ChangedFileError(
                        f"source file {self._path} had {self.size} bytes and has {size}: its "
                        "messages have been numbered; put the file back, or start afresh"
                    )
                file.seek(self.size)
                found = []
                while self.size < size and (chunk := file.read(min(_CHUNK, size - self.size))):
                    at = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n"))
                    found.append(at + self.size + 1)
                    self.size += len(chunk)
        except OSError as e:
            raise UsageError(f"source file {self._path} cannot be read: {e.strerror}") from e
        if found:
            self._starts = np.concatenate([self._starts, *found])

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
        return [line.removesuffix(b"\r") for line in lines]


_indexes: dict[Path, LineIndex] = {}


def index_of(path: Path) -> LineIndex:
    """This process's index of a file."""
    if path not in _indexes:
        _indexes[path] = LineIndex(path)
    return _indexes[path]
