"""What each toxic does to one direction of one connection."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping

from bettong.harness.toxiproxy.embedded.stages import Attributes, Stage, Tally, TimedStage

_SLICES_AT_ONCE = 256  # then other connections have their turn


class Latency(TimedStage):
    capacity = 16 * 1024 * 1024  # a long delay must not become a narrow link

    def _schedule(self) -> None:
        while self._queue:
            due = self._queue[0][1] + self._delay()
            if due > self.loop.time():
                self._timer = self.loop.call_at(due, self._send_head, due)
                return
            self._emit(self._queue.popleft()[0], due)
        self._end_if_empty()

    def _delay(self) -> float:
        delay, jitter = self.attribute("latency"), self.attribute("jitter")
        if jitter > 0:
            delay += random.randrange(-jitter, jitter)
        return delay / 1000

    def _send_head(self, due: float) -> None:
        self._timer = None
        self._emit(self._queue.popleft()[0], due)
        self._schedule()

    def update(self, attributes: Attributes) -> None:
        super().update(attributes)
        if self._timer is not None:  # as in Toxiproxy, what is on its way goes out at once
            self._cancel()
            self._send_head(self.loop.time())


class Bandwidth(TimedStage):
    def __init__(
        self, loop: asyncio.AbstractEventLoop, attributes: Attributes, tally: Tally
    ) -> None:
        super().__init__(loop, attributes, tally)
        self._busy_until = 0.0

    def _schedule(self) -> None:
        rate = self.attribute("rate")
        if not self._queue or rate <= 0:  # with no rate nothing passes until that is changed
            self._end_if_empty()
            return
        chunk, at = self._queue.popleft()
        step = rate * 100  # bytes in 100 ms: longer data are sent in such pieces
        if len(chunk) > step:
            self._queue.appendleft((chunk[step:], at))
            chunk = chunk[:step]
        self._busy_until = max(self._busy_until, self.loop.time()) + len(chunk) / (rate * 1000)
        self._sending = (chunk, at)
        self._timer = self.loop.call_at(self._busy_until, self._sent)

    def _sent(self) -> None:
        self._timer = None
        self._emit(*self._sending)
        self._schedule()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._queue.appendleft(self._sending)
        super()._cancel()

    def update(self, attributes: Attributes) -> None:
        self._cancel()
        super().update(attributes)
        self._busy_until = 0.0
        self._schedule()


class Slicer(TimedStage):
    def _schedule(self) -> None:
        sent = 0
        while self._queue:
            chunk, at = self._queue.popleft()
            cut = self._first_slice(len(chunk))
            if cut < len(chunk):
                self._queue.appendleft((chunk[cut:], at))
            self._emit(chunk[:cut], at)
            sent += 1
            delay = self.attribute("delay")
            if delay > 0 or sent == _SLICES_AT_ONCE:
                self._timer = self.loop.call_later(delay / 1e6, self._go_on)
                return
        self._end_if_empty()

    def _go_on(self) -> None:
        self._timer = None
        self._schedule()

    def _first_slice(self, size: int) -> int:
        """How long the first of the slices of ``size`` bytes is: halve, a little beside the
        middle, until a slice is about the average size."""
        average, variation = self.attribute("average_size"), self.attribute("size_variation")
        if average <= 0:
            return size
        while size > 1 and size - average > variation:
            middle = size // 2
            if variation > 0:
                middle += random.randrange(-variation, variation)
            size = max(1, min(size - 1, middle))
        return size


class SlowClose(Stage):
    def __init__(
        self, loop: asyncio.AbstractEventLoop, attributes: Attributes, tally: Tally
    ) -> None:
        super().__init__(loop, attributes, tally)
        self._timer: asyncio.TimerHandle | None = None

    def eof(self) -> None:
        if self._timer is None and not self.ended:
            self.touch(0)
            self._timer = self.loop.call_later(self.attribute("delay") / 1000, self.end)

    def release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self.end()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Timeout(Stage):
    def __init__(
        self, loop: asyncio.AbstractEventLoop, attributes: Attributes, tally: Tally
    ) -> None:
        super().__init__(loop, attributes, tally)
        self._timer: asyncio.TimerHandle | None = None
        self._restart()

    def _restart(self) -> None:
        self.stop()
        if self.attribute("timeout") > 0:
            self._timer = self.loop.call_later(self.attribute("timeout") / 1000, self._expire)

    def _expire(self) -> None:
        self.touch(0)
        self.end()

    def data(self, chunk: bytes, at: float) -> None:
        self.touch(len(chunk))
        self._restart()  # as in Toxiproxy, the time runs anew with all data dropped

    def eof(self) -> None:
        self.stop()
        super().eof()

    def update(self, attributes: Attributes) -> None:
        super().update(attributes)
        if not self.ended:
            self._restart()

    def release(self) -> None:
        self.stop()
        self.end()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class ResetPeer(Stage):
    def __init__(
        self, loop: asyncio.AbstractEventLoop, attributes: Attributes, tally: Tally
    ) -> None:
        super().__init__(loop, attributes, tally)
        self._timer: asyncio.TimerHandle | None = None

    def data(self, chunk: bytes, at: float) -> None:
        self.touch(len(chunk))
        self._start()

    def eof(self) -> None:
        self.touch(0)
        self._start()

    def _start(self) -> None:
        if self._timer is None and not self.ended:
            delay = self.attribute("timeout") / 1000
            if delay > 0:
                self._timer = self.loop.call_later(delay, self.end)
            else:
                self.end()

    def release(self) -> None:
        if self._timer is not None:  # data are lost already: the connection cannot go on
            self._timer.cancel()
            self.end()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class LimitData(Stage):
    def __init__(
        self, loop: asyncio.AbstractEventLoop, attributes: Attributes, tally: Tally
    ) -> None:
        super().__init__(loop, attributes, tally)
        self._passed = 0

    def data(self, chunk: bytes, at: float) -> None:
        left = max(0, self.attribute("bytes") - self._passed)
        passing = chunk[:left]
        if passing:
            self._passed += len(passing)
            self.next.data(passing, at)
        if len(chunk) > left:
            self.touch(len(chunk) - left)
        if self._passed >= self.attribute("bytes"):
            self.touch(0)
            self.end()


STAGES: Mapping[str, type[Stage]] = {
    "latency": Latency,
    "bandwidth": Bandwidth,
    "slow_close": SlowClose,
    "timeout": Timeout,
    "reset_peer": ResetPeer,
    "slicer": Slicer,
    "limit_data": LimitData,
}
