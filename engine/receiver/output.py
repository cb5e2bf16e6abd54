"""The visible output of one application: a file that only grows, and how long it is.

``output.jsonl`` holds the committed rows in the order of commits. While a batch is being added,
its first rows may be seen before its last: ``output.length`` (replaced by atomic rename) tells
readers who want whole batches how many bytes hold them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bettong.engine.storage.disk import OS_DISK, AppendFile, Disk, closed_if_it_fails
from bettong.engine.storage.log import DamageError

_CHUNK = 1 << 20


class Output:
    """The writer's side.

    Attributes:
        length: bytes that are written and durable.
        checksum: their crc32.
    """

    def __init__(self, directory: Path, disk: Disk = OS_DISK) -> None:
        self._path = directory / "output.jsonl"
        self._length_path = directory / "output.length"
        self._directory = directory
        self._disk = disk
        self._file: AppendFile = disk.append_to(self._path)
        with closed_if_it_fails(self._file):
            disk.sync_directory(directory)
        self.length = self.checksum = 0
        self._published = -1

    def verify(self, length: int, checksum: int) -> None:
        """Take over what an earlier process has written; raises DamageError when it is not there
        as written."""
        found, seen = 0, 0
        with self._disk.open(self._path) as file:
            while found < length and (chunk := file.read(min(_CHUNK, length - found))):
                seen = zlib.crc32(chunk, seen)
                found += len(chunk)
        if found < length:
            raise DamageError(f"{self._path} has {found} bytes; {length} were committed")
        if seen != checksum:
            raise DamageError(f"{self._path} is damaged before byte {length}")
        self.length, self.checksum = length, checksum

    def complete(self, pieces: Iterable[bytes], *, is_last: bool) -> None:
        """Make sure that these bytes follow; only those of the last commit may be missing. Where
        they are there they are written again: a sync of them may have failed, and then no other one
        writes them.

        Raises DamageError.
        """
        matches = True
        with self._disk.open(self._path) as file:
            file.seek(self.length)
            for piece in pieces:
                matches = matches and file.read(len(piece)) == piece
                if not matches:
                    if not is_last:
                        raise DamageError(f"{self._path} is damaged after byte {self.length}")
                    self._file.truncate(self.length)
                    self._file.write(piece)
                elif is_last:
                    self._disk.rewrite(self._path, self.length, piece)
                self._count(piece)
        self._file.sync()

    def finish(self) -> None:
        """Tell readers the length when all commits are there; raises DamageError when there is
        more than they have written."""
        if self._disk.size(self._path) > self.length:
            raise DamageError(f"{self._path} has bytes after {self.length} that nobody committed")
        self.notify()

    def append(self, pieces: Iterable[bytes]) -> None:
        """Append a batch; durable on return, for readers of whole batches after :meth:`notify`.

        Raises OSError; then nothing of it remains if the disk allows that.
        """
        start, checksum = self.length, self.checksum
        try:
            if self._disk.size(self._path) > start:
                self._file.truncate(start)  # left by a failure that could not be undone then
            self._write(pieces)
        except OSError:
            self.length, self.checksum = start, checksum
            self._file.truncate(start)
            raise

    def notify(self) -> None:
        """Tell readers how long the output is, if they do not know yet."""
        if self._published == self.length:
            return
        new = self._directory / "output.length.new"
        file = self._disk.append_to(new)
        try:
            file.truncate(0)
            file.write(b"%d\n" % self.length)
        finally:
            file.close()
        self._disk.rename(new, self._length_path)
        self._published = self.length

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self._file.write(piece)
            self._count(piece)
        self._file.sync()

    def _count(self, piece: bytes) -> None:
        self.length += len(piece)
        self.checksum = zlib.crc32(piece, self.checksum)


def read_lines(directory: Path) -> Iterator[bytes]:
    """The visible rows of an application's directory, of whole batches only, as lines of JSON
    with their line ends. Raises ValueError when the length that readers are told is none, or when
    there is less than that."""
    try:
        left = int((directory / "output.length").read_text())
    except FileNotFoundError:
        return
    with (directory / "output.jsonl").open("rb") as file:
        while left > 0 and (line := file.readline(left)):
            left -= len(line)
            yield line
    if left > 0:
        raise ValueError(f"output.jsonl ends {left} bytes before the length that readers are told")


def read_rows(directory: Path) -> Iterator[dict[str, Any]]:
    """The same as rows; raises ValueError for one that is none."""
    yield from map(json.loads, read_lines(directory))
