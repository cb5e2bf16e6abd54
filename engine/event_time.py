"""Event time: what messages say of when they happened, and which windows cover a time.

Numbers are taken as the decimals that they are written as. In binary 0.6 is less than six times
0.1: windows of 0.1 that are found by dividing floats would leave gaps between them in which
messages get lost, and would overlap elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache


def event_time(given: float) -> float:
    """A time that a message gives, in seconds; raises ValueError for one that is no number of
    them, to which no clock can come or after which all is late."""
    at = float(given)
    if not math.isfinite(at):
        raise ValueError(f"an event time is a number of seconds, not {at}")
    return at


@dataclass(frozen=True)
class Grid:
    """Windows of ``size`` that begin at every multiple of ``slide``."""

    size: float
    slide: float

    def starts(self, at: float) -> Iterator[float]:
        """Where the windows begin that cover a time, the earliest first."""
        if self.size == int(self.size) and self.slide == int(self.slide):
            second, size, slide = math.floor(at), int(self.size), int(self.slide)
            for n in range((second - size) // slide + 1, second // slide + 1):
                yield float(n * slide)
            return
        exact, step = _exact(at), _exact(self.slide)
        for n in range((exact - _exact(self.size)) // step + 1, exact // step + 1):
            yield float(n * step)

    def end(self, start: float) -> float:
        """The first time after a window."""
        return _sum(start, float(self.size))


def _exact(number: float) -> Fraction:
    return Fraction(repr(float(number)))


@lru_cache(maxsize=1 << 12)
def _sum(first: float, second: float) -> float:
    return float(_exact(first) + _exact(second))
