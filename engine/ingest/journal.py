"""The durable journal of one stream: messages ``stream/0``, ``stream/1``, … without gaps.

Each appended frame is one record of a :class:`RecordLog`, tagged with its first message's number.
A sparse index (one entry for every 64 KiB) keeps memory bounded.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bettong.engine.net.block import Block
from bettong.engine.net.errors import FrameError, RefusedError
from bettong.engine.net.names import check_name
from bettong.engine.storage.disk import OS_DISK, Disk
from bettong.engine.storage.log import DamageError, Position, Record, RecordLog, segment_path

_DATA, _END, _RELEASE = 1, 2, 3
_INDEX_BYTES = 64 << 10


class Piece(NamedTuple):
    """Messages as they were appended together.

    Attributes:
        start: number of the first message in ``messages``.
        last: number of the last message of the whole frame, also where only a part is wanted.
    """

    start: int
    messages: Block
    last: int


class Journal:
    """Messages of one stream, appended by one thread, read by any.

    Attributes:
        base: number of the first message that is still there.
        end: number that the next message gets.
        released: messages below it are not wanted again.
        ended: no message follows.

    Raises DamageError when what is on disk is not what was written.
    """

    log_class: type[RecordLog] = RecordLog

    def __init__(
        self, directory: Path, stream: str, *, segment_bytes: int = 64 << 20, disk: Disk = OS_DISK
    ) -> None:
        self.stream = check_name("a stream", stream)
        self.base = self.end = self.released = 0
        self.ended = False
        self._directory = directory
        self._is_restored = False
        self._index: list[tuple[int, Position]] = []
        self._lock = threading.Lock()  # index and numbers
        self._writing = threading.Lock()
        self._log = self.log_class(
            directory,
            head=self._state,
            on_head=self._restore,
            visit=self._visit,
            segment_bytes=segment_bytes,
            disk=disk,
        )
        if self.base > self.released:
            raise DamageError(
                f"{directory}: {stream}/{self.released} to {stream}/{self.base - 1} are missing"
            )

    def append(self, messages: Block) -> None:
        """Append messages; they are durable on return.

        Raises RefusedError after the end, OSError when the disk fails (then none is appended).
        """
        if not len(messages):
            raise RefusedError("empty", f"stream {self.stream}: a frame without messages")
        with self._writing:
            if self.ended:
                raise RefusedError("ended", f"stream {self.stream} has ended at {self.end}")
            self._log.roll_when_full()
            position = self._log.append(_DATA, self.end, *messages.buffers())
            with self._lock:
                self._indexed(self.end, position)
                self.end += len(messages)

    def finish(self) -> None:
        """Note durably that no message follows; again changes nothing."""
        with self._writing:
            if not self.ended:
                self._log.append(_END, self.end)
                self.ended = True

    def release(self, upto: int) -> None:
        """Note durably that messages below ``upto`` are not wanted again, and drop the segments
        that hold no others. Raises RefusedError beyond the end."""
        if upto > self.end:
            raise RefusedError(
                "range", f"cannot release {self.stream}/{upto - 1}: the stream ends at {self.end}"
            )
        with self._writing:
            if upto > self.released:
                self._log.append(_RELEASE, upto)
                self.released = upto
                self._drop()

    def read(self, start: int, stop: int) -> Iterator[Piece]:
        """Messages ``start`` up to but not including ``stop``, frame by frame.

        Raises RefusedError when some of them are no longer, or not yet, there.
        """
        with self._lock:
            base, end = self.base, self.end
            place = bisect_right(self._index, start, key=lambda entry: entry[0]) - 1
            position = self._index[place][1] if place >= 0 else None
        if not base <= start <= stop <= end:
            raise RefusedError(
                "range",
                f"{self.stream} has messages {base} to {end}, not all of {start} to {stop}",
            )
        if start == stop or position is None:
            return
        try:
            for record in self._log.read(position):
                if record.kind != _DATA:
                    continue
                block = self._parse(record)
                last = record.tag + len(block) - 1
                if last >= start:
                    first = max(start, record.tag)
                    part = block.slice(first - record.tag, min(stop, last + 1) - record.tag)
                    yield Piece(first, part, last)
                if last + 1 >= stop:
                    return
        except FileNotFoundError as e:
            raise RefusedError("range", f"{self.stream}/{start} has just been dropped") from e
        raise DamageError(f"{self._directory}: {self.stream}/{stop - 1} is missing")

    def close(self) -> None:
        """Close the files."""
        self._log.close()

    def _drop(self) -> None:
        """Drop segments that lie wholly below the release, keeping the current one."""
        with self._lock:
            keep = bisect_right(self._index, self.released, key=lambda entry: entry[0]) - 1
            segment = self._index[keep][1].segment if keep >= 0 else 0
            self._index = [entry for entry in self._index if entry[1].segment >= segment]
            if self._index:
                self.base = max(self.base, self._index[0][0])
        self._log.drop_before(segment)

    def _indexed(self, first: int, position: Position) -> None:
        if self._index:
            _, known = self._index[-1]
            if known.segment == position.segment and position.offset - known.offset < _INDEX_BYTES:
                return
        self._index.append((first, position))

    def _state(self) -> bytes:
        return json.dumps([self.stream, self.end, self.released, self.ended]).encode()

    def _restore(self, head: bytes) -> None:
        stream, end, released, ended = json.loads(head)
        if stream != self.stream:
            raise DamageError(f"{self._directory} is the journal of stream {stream!r}")
        if not self._is_restored:
            self.base, self.end, self.released, self.ended = end, end, released, ended
            self._is_restored = True
        elif (end, released, ended) != (self.end, self.released, self.ended):
            raise DamageError(f"{self._directory}: records before {stream}/{end} are missing")

    def _visit(self, record: Record) -> None:
        if record.kind == _DATA and record.tag == self.end and not self.ended:
            self._indexed(self.end, record.position)
            self.end += Block.count(record.body)
        elif record.kind == _END and record.tag == self.end:
            self.ended = True
        elif record.kind == _RELEASE and self.released < record.tag <= self.end:
            self.released = record.tag
        else:
            raise self._misplaced(record)

    def _parse(self, record: Record) -> Block:
        try:
            return Block.parse(record.body)
        except FrameError as e:
            raise self._misplaced(record) from e

    def _misplaced(self, record: Record) -> DamageError:
        path = segment_path(self._directory, record.position.segment)
        return DamageError(
            f"{path}: the record at byte {record.position.offset} does not follow from those before"
        )
