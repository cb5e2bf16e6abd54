"""A log of checksummed records in segment files.

A segment is ``segment-<number>.log``, all numbers little endian::

    "BTLG" | version u8 | number u32 | size of the segment before u64 | head length u32 | crc32 u32
    head: whatever the owner wants to know when older segments are gone
    records, each: kind u8 | body length u32 | tag u64 | crc32 of the body u32
                   | crc32 of these u32 | body | 0xA5

A crash can leave one record unfinished at the very end: cut short, or its end never written
(zeros). That torn tail is cut when the log is opened; it was never durable, so nobody was told
that it was. Anything else that does not read as written is damage and raises DamageError.
"""

from __future__ import annotations

import contextlib
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from bettong.engine.storage.disk import (
    OS_DISK,
    AppendFile,
    Buffer,
    Disk,
    closed_if_it_fails,
    removed_if_it_fails,
)
from bettong.lineage.errors import BettongError

_HEAD = struct.Struct("<4sBIQII")
_MAGIC = b"BTLG"
_VERSION = 1
_RECORD = struct.Struct("<BIQI")
_CHECKSUM = struct.Struct("<I")
_RECORD_HEADER = _RECORD.size + _CHECKSUM.size
_END = b"\xa5"  # one flipped bit cannot make it the zero of a byte that was never written
_NAME = re.compile(r"segment-(\d{8})\.log")


class DamageError(BettongError):
    """A file does not hold what was written to it."""


class Position(NamedTuple):
    """Where a record starts."""

    segment: int
    offset: int


def segment_path(directory: Path, number: int) -> Path:
    """The file of a segment."""
    return directory / f"segment-{number:08d}.log"


class Record(NamedTuple):
    """One record as read back."""

    kind: int
    tag: int
    body: bytes
    position: Position


@dataclass(slots=True)
class _Segment:
    number: int
    head: bytes
    size: int


class RecordLog:
    """Appends records and reads them back. One thread appends; reading is safe beside it.

    Args:
        directory: of this log alone; made when missing.
        head: called for what the head of a new segment shall hold.
        on_head: called while the log is opened with the head of each segment, before its records.
        visit: called while the log is opened with each record, in order.
        segment_bytes: a segment that has reached this size is followed by another.
        disk: where the files are.

    Raises:
        DamageError: naming file and offset.
    """

    def __init__(
        self,
        directory: Path,
        *,
        head: Callable[[], bytes],
        on_head: Callable[[bytes], None],
        visit: Callable[[Record], None],
        segment_bytes: int = 64 << 20,
        disk: Disk = OS_DISK,
    ) -> None:
        self.directory = directory
        self._head = head
        self._segment_bytes = segment_bytes
        self._disk = disk
        self._segments: list[_Segment] = []
        self._file: AppendFile | None = None
        self._has_rest = False
        self._half_begun: Path | None = None
        disk.make_directory(directory)
        with closed_if_it_fails(self):
            self._recover(on_head, visit)

    @property
    def segments(self) -> list[int]:
        """Numbers of the segments that are there, oldest first."""
        return [segment.number for segment in self._segments]

    def append(self, kind: int, tag: int, *body: Buffer) -> Position:
        """Append a record, durable on return.

        Raises OSError; then the log is back at what was durable before. When the disk does not
        allow that either, it is done before the next record.
        """
        file, segment = self._current()
        position = Position(segment.number, segment.size)
        checksum = 0
        for part in body:
            checksum = zlib.crc32(part, checksum)
        header = _RECORD.pack(kind, sum(map(len, body)), tag, checksum)
        record = b"".join((header, _CHECKSUM.pack(zlib.crc32(header)), *body, _END))
        try:
            file.write(record)
            file.sync()
        except OSError:
            self._has_rest = True
            with contextlib.suppress(OSError):
                self._cut_rest(file, segment)
            raise
        segment.size += len(record)
        return position

    def roll_when_full(self) -> None:
        """Begin a new segment if the current one has reached its size; raises OSError."""
        file, segment = self._current()
        if segment.size >= self._segment_bytes:
            self._begin(segment.number + 1)
            file.close()

    def drop_before(self, number: int) -> None:
        """Remove the segments before this one, oldest first, but never the current one."""
        while len(self._segments) > 1 and self._segments[0].number < number:
            with contextlib.suppress(FileNotFoundError):  # a removal that failed may have been done
                self._disk.remove(segment_path(self.directory, self._segments[0].number))
            self._segments = self._segments[1:]  # a reader may be going through the old list

    def read(self, start: Position, stop: Position | None = None) -> Iterator[Record]:
        """Records from ``start`` on, as far as the log goes now or up to ``stop``.

        Raises DamageError, and FileNotFoundError when a segment has been dropped meanwhile.
        """
        for segment in [s for s in self._segments if s.number >= start.segment]:
            end = segment.size
            if stop is not None and stop.segment <= segment.number:
                end = stop.offset if stop.segment == segment.number else 0
            first = _HEAD.size + len(segment.head)
            offset = start.offset if segment.number == start.segment else first
            if offset < end:
                with self._disk.open(segment_path(self.directory, segment.number)) as file:
                    file.seek(offset)
                    yield from self._records(file, segment.number, offset, end)

    def close(self) -> None:
        """Close the file; the log can be opened again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _current(self) -> tuple[AppendFile, _Segment]:
        """What is appended to, with nothing behind its last record; raises OSError."""
        if self._file is None:
            raise OSError(f"{self.directory}: the log is closed")
        segment = self._segments[-1]
        self._cut_rest(self._file, segment)
        self._take_back()
        return self._file, segment

    def _cut_rest(self, file: AppendFile, segment: _Segment) -> None:
        """Take away what a write that failed has left, if one has; raises OSError, and then it is
        there still."""
        if self._has_rest:
            file.truncate(segment.size)
            file.sync()
            self._has_rest = False

    def _take_back(self) -> None:
        """Remove a segment that could not be begun, but may have its name by then: it says where
        the one before it ends, which goes on. Raises OSError, and then it may be there still."""
        if self._half_begun is not None:
            with contextlib.suppress(FileNotFoundError):
                self._disk.remove(self._half_begun)
            self._disk.sync_directory(self.directory)
            self._half_begun = None

    def _begin(self, number: int) -> None:
        head = self._head()
        before = self._segments[-1].size if self._segments else 0
        start = _HEAD.pack(_MAGIC, _VERSION, number, before, len(head), 0)
        checksum = zlib.crc32(head, zlib.crc32(start))
        content = _HEAD.pack(_MAGIC, _VERSION, number, before, len(head), checksum) + head
        unfinished = self._unfinished
        with contextlib.suppress(FileNotFoundError):
            self._disk.remove(unfinished)
        with removed_if_it_fails(unfinished, self._disk):
            file = self._disk.append_to(unfinished)
            with closed_if_it_fails(file):
                file.write(content)
                file.sync()
                self._half_begun = segment_path(self.directory, number)
                self._disk.rename(unfinished, self._half_begun)
                self._disk.sync_directory(self.directory)
        self._half_begun = None
        self._file = file
        self._segments.append(_Segment(number, head, len(content)))

    @property
    def _unfinished(self) -> Path:
        """Where a segment is until it can be named: nobody reads it there."""
        return self.directory / "segment.new"

    def _recover(self, on_head: Callable[[bytes], None], visit: Callable[[Record], None]) -> None:
        matches = filter(None, map(_NAME.fullmatch, self._disk.names(self.directory)))
        numbers = [int(match[1]) for match in matches]
        for place, number in enumerate(numbers):
            if number != numbers[0] + place:
                raise DamageError(f"{segment_path(self.directory, number - 1)} is missing")
            self._recover_segment(number, number == numbers[-1], on_head, visit)
        if not numbers:
            self._begin(1)

    def _recover_segment(
        self,
        number: int,
        is_last: bool,
        on_head: Callable[[bytes], None],
        visit: Callable[[Record], None],
    ) -> None:
        path = segment_path(self.directory, number)
        size = self._disk.size(path)
        with self._disk.open(path) as file:
            head = self._read_head(file, number)
            on_head(head)
            start = last = end = _HEAD.size + len(head)
            try:
                for record in self._records(file, number, start, size):
                    visit(record)
                    last = record.position.offset
                    end = last + _RECORD_HEADER + len(record.body) + len(_END)
            except _TornError:
                if not is_last:
                    raise
        segment = _Segment(number, head, end)
        self._segments.append(segment)
        if is_last:
            self._file = self._disk.append_to(path)
            if end < size:
                self._file.truncate(end)
            self._make_durable(self._file, path, last, end)

    def _make_durable(self, file: AppendFile, path: Path, last: int, end: int) -> None:
        """Have what was read outlast a power cut: it may have been in memory only. The last record
        is written again: whoever was killed before it could be cut off may have been told that it
        cannot be synced, and then no sync writes it any more. Those before it were synced before
        it was begun."""
        if last < end:
            with self._disk.open(path) as written:
                written.seek(last)
                self._disk.rewrite(path, last, written.read(end - last))
        file.sync()
        self._disk.sync_directory(self.directory)

    def _read_head(self, file: BinaryIO, number: int) -> bytes:
        path = segment_path(self.directory, number)
        start = file.read(_HEAD.size)
        if len(start) < _HEAD.size:
            raise DamageError(f"{path} is cut short at byte {len(start)}, inside its head")
        magic, version, named, before, length, checksum = _HEAD.unpack(start)
        if magic != _MAGIC:
            raise DamageError(f"{path} is not a segment of a log: damaged at byte 0")
        head = file.read(length) if length < 1 << 24 else b""
        unsigned = _HEAD.pack(magic, version, named, before, length, 0)
        if zlib.crc32(head, zlib.crc32(unsigned)) != checksum or len(head) != length:
            raise DamageError(f"{path} is damaged between byte 0 and {_HEAD.size + length}")
        if version != _VERSION:
            raise DamageError(f"{path} has version {version}; this program reads {_VERSION}")
        if named != number:
            raise DamageError(f"{path} holds segment {named}: it has been renamed")
        if self._segments and self._segments[-1].size != before:
            raise DamageError(
                f"{segment_path(self.directory, number - 1)} is cut short at byte "
                f"{self._segments[-1].size}; it had {before}"
            )
        return head

    def _records(self, file: BinaryIO, number: int, offset: int, end: int) -> Iterator[Record]:
        """Records between two offsets; raises _TornError for an unfinished one at the end."""
        path = segment_path(self.directory, number)
        while offset < end:
            header = file.read(min(_RECORD_HEADER, end - offset))
            if len(header) < _RECORD_HEADER:
                raise _TornError(f"{path}: the record at byte {offset} is unfinished")
            kind, length, tag, checksum = _RECORD.unpack_from(header)
            if _CHECKSUM.unpack_from(header, _RECORD.size)[0] != zlib.crc32(header[: _RECORD.size]):
                if len(header.rstrip(b"\0")) < _RECORD_HEADER and _only_zeros(file):
                    raise _TornError(f"{path}: the record at byte {offset} is unfinished")
                raise DamageError(f"{path}: the record at byte {offset} has a damaged header")
            left = end - offset - _RECORD_HEADER
            body = file.read(min(length, left))
            mark = file.read(1) if left > length else b""
            if mark == b"" or (mark == b"\0" and left == length + len(_END)):
                raise _TornError(f"{path}: the record at byte {offset} is unfinished")
            if mark != _END or zlib.crc32(body) != checksum:
                raise DamageError(f"{path}: the record at byte {offset} is damaged")
            yield Record(kind, tag, body, Position(number, offset))
            offset += _RECORD_HEADER + length + len(_END)


class _TornError(DamageError):
    """A record that a crash has left unfinished."""


def _only_zeros(file: BinaryIO) -> bool:
    return not any(any(chunk) for chunk in iter(lambda: file.read(1 << 16), b""))
