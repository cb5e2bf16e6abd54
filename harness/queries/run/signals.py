"""What happens to the drivers of a run, for the thread that waits for it."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import Literal

Signal = Literal["ended", "crashed", "paused", "expired"]
_LOOK_S = 0.5
"""So often it is looked whether there is nothing to wait for."""


def _never() -> bool:
    return False


class Signals:
    """Signals in their order, and when the last word of a driver came: each step is one.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._signals: queue.SimpleQueue[tuple[Signal, int]] = queue.SimpleQueue()
        self._last_word = clock()

    def put(self, signal: Signal, incarnation: int) -> None:
        """It has happened to a driver."""
        self._signals.put((signal, incarnation))

    def word(self) -> None:
        """A driver goes on: it has taken a step, or begins."""
        self._last_word = self._clock()

    @property
    def silent_s(self) -> float:
        """For how many seconds no driver has said anything."""
        return self._clock() - self._last_word

    def next(
        self, patience_s: float, in_vain: Callable[[], bool] = _never
    ) -> tuple[Signal, int] | None:
        """The next signal; None when drivers have said nothing at all for so many seconds from now
        on, or when it is waited for in vain."""
        begun = self._clock()
        while (left := max(begun, self._last_word) + patience_s - self._clock()) > 0:
            try:
                return self._signals.get(timeout=left if in_vain is _never else min(left, _LOOK_S))
            except queue.Empty:
                if in_vain():
                    return None
        return None
