"""What one direction of a connection is made of: a chain of stages.

Each stage is given data and at last the end of the stream, and gives them on, now or later. All of
it runs on one event loop, so nothing here needs a lock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

Attributes = Mapping[str, int]


class Tally:
    """What a toxic did, over all its connections; outlives the toxic as evidence."""

    __slots__ = ("bytes", "connections")

    def __init__(self) -> None:
        self.bytes = 0
        self.connections = 0


class Next(Protocol):
    """Where a stage gives its data on to; ``at`` is when they came, on the loop's clock."""

    def data(self, chunk: bytes, at: float) -> None: ...
    def eof(self) -> None: ...


def _nothing() -> None:
    pass


class Stage:
    """A stage that passes everything on: the base of all, and what a toxic is to the connections
    that its toxicity spares."""

    capacity = 64 * 1024

    def __init__(
        self, loop: asyncio.AbstractEventLoop, attributes: Attributes, tally: Tally
    ) -> None:
        self.loop = loop
        self.attributes = attributes
        self.next: Next
        self.relieved: Callable[[], None] = _nothing  # called when it holds less
        self.held = 0
        self.ended = False
        self._tally = tally
        self._touched = False

    def attribute(self, name: str) -> int:
        return self.attributes.get(name, 0)

    def data(self, chunk: bytes, at: float) -> None:
        self.next.data(chunk, at)

    def eof(self) -> None:
        self.end()

    def end(self) -> None:
        """Close what comes after; whatever comes later is dropped."""
        if not self.ended:
            self.ended = True
            self.next.eof()

    def touch(self, count: int) -> None:
        """Note that the toxic did something to ``count`` bytes."""
        self._tally.bytes += count
        if not self._touched:
            self._touched = True
            self._tally.connections += 1

    def update(self, attributes: Attributes) -> None:
        self.attributes = attributes

    def release(self) -> None:
        """Give on whatever is held, since the stage is about to go."""

    def stop(self) -> None:
        """The connection is gone: no timer may fire any more."""


class TimedStage(Stage):
    """A stage with a queue and one timer for its head."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, attributes: Attributes, tally: Tally
    ) -> None:
        super().__init__(loop, attributes, tally)
        self._queue: deque[tuple[bytes, float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._source_ended = False

    def data(self, chunk: bytes, at: float) -> None:
        self.touch(len(chunk))
        self.held += len(chunk)
        self._queue.append((chunk, at))
        if self._timer is None and len(self._queue) == 1:
            self._schedule()

    def eof(self) -> None:
        self._source_ended = True
        if not self._queue and self._timer is None:
            self.end()

    def _schedule(self) -> None:
        """Give on what is due, set the timer for what comes next, end when all has gone out."""
        raise NotImplementedError

    def _emit(self, chunk: bytes, at: float) -> None:
        self.held -= len(chunk)
        self.next.data(chunk, at)
        self.relieved()

    def _end_if_empty(self) -> None:
        if self._source_ended and not self._queue:
            self.end()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def release(self) -> None:
        self._cancel()
        while self._queue:
            self._emit(*self._queue.popleft())
        if self._source_ended:
            self.end()

    def stop(self) -> None:
        self._cancel()
        self._queue.clear()
        self.held = 0
