"""What a source must offer, and sources that need no server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bettong.engine.sources.lines import index_of
from bettong.engine.steps import step
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import MessageRange

if TYPE_CHECKING:
    import pyarrow as pa

    from bettong.engine.batch.items import IntArray

_LOOK_S = 0.02
"""How often a source that nobody wakes is looked at."""


class Extent(NamedTuple):
    """How far a stream has come.

    Attributes:
        end: messages below this number can be read, now and after any crash.
        ended: there will be no more.
        begin: messages below this number are gone, because they were released.
    """

    end: int
    ended: bool
    begin: int = 0


class Records(NamedTuple):
    """Messages of a partition of a source, whose numbers have gaps.

    Attributes:
        source: the name of the application's source.
        partition: which one of it.
        numbers: of the messages, ascending.
        values: of the messages.
    """

    source: str
    partition: int
    numbers: IntArray
    values: list[bytes]


class StreamSource(Protocol):
    """A stream of messages that are numbered from 0 and can be read again.

    Objects are sent to workers, so they can be pickled and connect when they are used.
    """

    def extent(self, upto: int, wait: float) -> Extent:
        """How far the stream has come; waits up to ``wait`` seconds until message ``upto - 1`` is
        there or the stream has ended."""
        ...

    def read(
        self, planned: MessageRange, step: str, causes: Sequence[str]
    ) -> Sequence[bytes] | pa.Array | Records:
        """The messages of a range, all of them, as bytes or as a binary array; takes the named
        step of the trace, once for each attempt. Only of a partition they are records."""
        ...

    def plan(self, planned: MessageRange, step: str) -> None:
        """Take the named step: these messages will be the stream's part of a batch."""
        ...

    def release(self, upto: int, step: str, causes: Iterable[str]) -> None:
        """Messages below ``upto`` will not be read again; takes the named step."""
        ...


class PreparedSource:
    """Messages that are there and stay there: planning and releasing them touches nothing."""

    def plan(self, planned: MessageRange, step_id: str) -> None:
        with step(step_id, carries=[planned]):
            pass

    def release(self, upto: int, step_id: str, causes: Iterable[str]) -> None:
        pass


@dataclass(frozen=True)
class FileSource(PreparedSource):
    """The lines of a text file, without their ends: message n is line n.

    Attributes:
        path: the file.
        follow: whether lines are still added; one without its newline is then no message yet.
            Otherwise the stream has ended at the file's end.
        end: with ``follow`` the line with which the stream ends; without one it never does.
    """

    path: Path
    follow: bool = False
    end: bytes | None = None

    def extent(self, upto: int, wait: float) -> Extent:
        return awaited(self._extent, upto, wait)

    def read(self, planned: MessageRange, step_id: str, causes: Sequence[str]) -> Sequence[bytes]:
        with step(step_id, causes=causes, carries=[planned]):
            index = index_of(self.path)
            if planned.stop > index.complete:
                index.refresh()
            return index.read(planned.start, planned.stop)

    def _extent(self) -> Extent:
        index = index_of(self.path)
        index.refresh()
        if not self.follow:
            return Extent(index.lines, True)
        count = index.complete
        last = index.read(count - 1, count) if count and self.end is not None else []
        return Extent(count, last == [self.end])


def beginnings(sources: Mapping[str, StreamSource]) -> dict[str, int]:
    """The number of each stream's first message: 0, unless it is a partition that had lost some
    before the application saw it."""
    return {name: getattr(source, "first", 0) for name, source in sources.items()}


def ends_with_run(source: StreamSource) -> bool:
    """Whether its end is that of one run: the next may find more of it."""
    return getattr(source, "until", None) is not None


def awaited(look: Callable[[], Extent], upto: int, wait: float) -> Extent:
    """Look until there are enough messages, the stream has ended, or ``wait`` seconds are over."""
    deadline = time.monotonic() + wait
    while True:
        extent = look()
        left = deadline - time.monotonic()
        if extent.end >= upto or extent.ended or left <= 0:
            return extent
        time.sleep(min(_LOOK_S, left))


@dataclass(frozen=True)
class ArrowSource(PreparedSource):
    """The binary column ``message`` of an Arrow IPC file, memory-mapped; the stream has ended at
    the file's end."""

    path: Path

    def extent(self, upto: int, wait: float) -> Extent:
        return Extent(len(self._messages()), True)

    def read(self, planned: MessageRange, step_id: str, causes: Sequence[str]) -> pa.Array:
        with step(step_id, causes=causes, carries=[planned]):
            part = self._messages().slice(planned.start, planned.stop - planned.start)
            return part.combine_chunks()

    def _messages(self) -> pa.ChunkedArray:
        import pyarrow as pa

        try:
            return pa.ipc.open_file(pa.memory_map(str(self.path))).read_all().column("message")
        except (OSError, pa.ArrowException, KeyError) as e:
            raise UsageError(f"source file {self.path} cannot be read: {e}") from e
