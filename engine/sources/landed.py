"""Messages that a Spark streaming query lands in a folder, each micro-batch as one file.

What a query reads is numbered by its micro-batches alone, and a batch that is done again may have
its rows in another order. So the first version of a batch that is whole is kept, under a name that
is the batch's, with the number that its first message has in the stream: a file is made only where
there is none. Files whose messages are released are removed; the newest one stays, since it says
where the next begins.

A file is ``batch-<number>.landed``: a line ``[query, first, messages, ended, size, crc32]`` and a
line with that line's own checksum (see :mod:`bettong.engine.storage.sealed`), then ``size`` bytes
of an Arrow IPC file with the binary column ``message``.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from bettong.engine.errors import MissingError
from bettong.engine.sources.base import Extent, PreparedSource, awaited
from bettong.engine.state.store import LocalStore
from bettong.engine.steps import step
from bettong.engine.storage.disk import OS_DISK, Disk
from bettong.engine.storage.log import DamageError
from bettong.engine.storage.sealed import sealed, unsealed
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import MessageRange

_NAME = re.compile(r"batch-(\d{12})\.landed")
_HEAD_BYTES = 1024
_REMEDY = "restore it from a copy, or begin again with an empty folder and empty checkpoints"
_SCHEMA = pa.schema([pa.field("message", pa.binary(), nullable=False)])
_settled: dict[Path, int] = {}
"""Of each folder the newest batch whose name is durable, as far as this process knows."""


class _Head(NamedTuple):
    """What the first line of a file says."""

    query: str
    first: int
    messages: int
    ended: bool
    size: int
    checksum: int

    @property
    def stop(self) -> int:
        """Number of the message that comes after the file's."""
        return self.first + self.messages


@dataclass(frozen=True)
class LandedFolder:
    """The files of one stream.

    Attributes:
        path: the folder, on a file system that the query's driver and all readers share.
        disk: the file operations; another one in tests.
    """

    path: Path
    disk: Disk = field(default=OS_DISK, compare=False)

    def put(self, query: str, batch: int, messages: pa.Array) -> None:
        """Keep a micro-batch's messages, unless the batch is there already; durable on return.

        Args:
            query: id of the streaming query, the same one as long as its checkpoint is.
            batch: the micro-batch's number.
            messages: binary array without nulls.

        Raises:
            UsageError: the folder has batches of another query, or lacks the batch before, or the
                stream has been ended.
        """
        numbers = self._numbers()
        if batch not in numbers:
            first = self._after(numbers, query, batch)
            if self._create(batch, query, first, messages, False):
                return
        self._store.settle("")
        self._expect(query, batch, self._head(batch))

    def end(self) -> None:
        """No more messages will come: the query has stopped, and is not started again."""
        while True:
            numbers = self._numbers()
            newest = self._head(numbers[-1]) if numbers else None
            if newest is not None and newest.ended:
                self._store.settle("")
                return
            query, stop = (newest.query, newest.stop) if newest is not None else ("", 0)
            if self._create(numbers[-1] + 1 if numbers else 0, query, stop, _none(), True):
                return

    def extent(self) -> Extent:
        """How far the stream has come."""
        numbers = self._numbers()
        if not numbers:
            return Extent(0, False)
        if _settled.get(self.path) != numbers[-1]:
            self._store.settle("")  # who made it may have been killed before it was durable
            _settled[self.path] = numbers[-1]
        newest = self._head(numbers[-1])
        return Extent(newest.stop, newest.ended, self._head(numbers[0]).first)

    def read(self, start: int, stop: int) -> pa.Array:
        """The messages from ``start`` to before ``stop``.

        Raises:
            MissingError: they are not there.
            DamageError: a file does not hold what was written to it.
        """
        numbers = self._numbers()
        place = bisect_right(numbers, start, key=lambda number: self._head(number).first) - 1
        parts, upto = [_none()], start
        for number in numbers[max(place, 0) :]:
            if upto >= stop:
                break
            first, messages = self._messages(number)
            if first > upto:
                break
            parts.append(messages[upto - first : stop - first])
            upto += len(parts[-1])
        if upto < stop:
            raise MissingError(f"{self.path} has no message {upto}: {_REMEDY}")
        return pa.concat_arrays(parts)

    def remove(self, upto: int) -> None:
        """Remove files that have only messages before ``upto``, but not the newest."""
        for number in self._found()[:-1]:
            if self._head(number).stop > upto:
                break
            self._store.remove(_name(number))

    def _found(self) -> list[int]:
        """Numbers of the batches of which there is a file, ascending."""
        return [int(m[1]) for m in map(_NAME.fullmatch, self._store.names("")) if m]

    def _numbers(self) -> list[int]:
        """The same without what lies before a gap: such files were removed once and came back,
        with a crash or by a driver that had stood still."""
        found = self._found()
        begin = len(found) - 1
        while begin > 0 and found[begin - 1] == found[begin] - 1:
            begin -= 1
        return found[max(begin, 0) :]

    def _after(self, numbers: Sequence[int], query: str, batch: int) -> int:
        """Number of the first message of a batch that is not there."""
        if not batch and not numbers:
            return 0
        if not numbers or numbers[-1] != batch - 1:
            has = f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
            raise UsageError(
                f"batch {batch} of a query cannot follow in {self.path}, which has {has}: a query "
                "with a new checkpoint needs an empty folder, and one that goes on the folder "
                "that it has had"
            )
        newest = self._head(numbers[-1])
        self._expect(query, batch, newest)
        return newest.stop

    def _expect(self, query: str, batch: int, found: _Head) -> None:
        """Raises UsageError when a batch of a query is not what was found, nor can follow it."""
        if found.ended:
            raise UsageError(
                f"{self.path} was ended before batch {batch}: a stream that goes on is not ended"
            )
        if found.query != query:
            raise UsageError(
                f"{self.path} has messages of the query {found.query}, and this is {query}: give "
                "each query, and each new checkpoint, a folder of its own"
            )

    def _create(self, batch: int, query: str, first: int, messages: pa.Array, ended: bool) -> bool:
        out = pa.BufferOutputStream()
        with pa.ipc.new_file(out, _SCHEMA) as writer:
            writer.write_table(pa.table([messages], schema=_SCHEMA))
        body = out.getvalue().to_pybytes()
        head = _Head(query, first, len(messages), ended, len(body), zlib.crc32(body))
        return self._store.create(_name(batch), sealed(head) + body)

    def _head(self, number: int) -> _Head:
        return self._parts(number)[0]

    def _messages(self, number: int) -> tuple[int, pa.Array]:
        """A batch's messages, and the number of its first one."""
        head, body = self._parts(number)
        if (len(body), zlib.crc32(body)) != (head.size, head.checksum):
            raise DamageError(f"{self._path(number)} is damaged: its checksum is wrong; {_REMEDY}")
        messages = pa.ipc.open_file(pa.py_buffer(body)).read_all().column(0).combine_chunks()
        return head.first, messages

    def _parts(self, number: int) -> tuple[_Head, memoryview]:
        """What a file says of itself, and what follows that."""
        content = self._store.read(_name(number))
        lines = [line + b"\n" for line in bytes(content[:_HEAD_BYTES]).split(b"\n", 2)[:2]]
        value = unsealed(b"".join(lines), str(self._path(number)), _REMEDY)
        try:
            return _Head(*value), content[sum(map(len, lines)) :]
        except TypeError as e:
            raise DamageError(f"{self._path(number)} is no landed batch; {_REMEDY}") from e

    def _path(self, number: int) -> Path:
        return self.path / _name(number)

    @property
    def _store(self) -> LocalStore:
        return LocalStore(self.path, self.disk)


@dataclass(frozen=True)
class LandedSource(PreparedSource):
    """A stream that a :class:`~bettong.engine.sources.landing.Landing` lands; of one application,
    as files are removed that it has done with.

    Attributes:
        folder: the folder of the landing.
    """

    folder: Path

    def extent(self, upto: int, wait: float) -> Extent:
        return awaited(self._landed.extent, upto, wait)

    def read(self, planned: MessageRange, step_id: str, causes: Sequence[str]) -> pa.Array:
        with step(step_id, causes=causes, carries=[planned]):
            return self._landed.read(planned.start, planned.stop)

    def release(self, upto: int, step_id: str, causes: Iterable[str]) -> None:
        with step(step_id, causes=causes):
            self._landed.remove(upto)

    @property
    def _landed(self) -> LandedFolder:
        return LandedFolder(self.folder)


def _name(number: int) -> str:
    return f"batch-{number:012d}.landed"


def _none() -> pa.Array:
    return pa.array([], pa.binary())
