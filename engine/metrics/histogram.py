"""Histograms with a relative error: many orders of magnitude in little room.

Buckets as those of HdrHistogram (http://hdrhistogram.org): each power of two has 64 of equal
width, so a value is known to 1/64. Whole arrays are added at once, and histograms of several
tasks add up, which is why this is not a library's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_BITS = 7
_HALF = 1 << (_BITS - 1)
_BUCKETS = (64 - _BITS) * _HALF + (1 << _BITS)

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Histogram:
    """How often which duration was seen; durations are whole nanoseconds, not below 0."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BUCKETS, np.int64)
        self.count = 0
        self.total = 0

    def add(self, value: int, times: int = 1) -> None:
        """A duration that was seen so many times."""
        self._counts[int(_places(np.array([value], np.int64))[0])] += times
        self.count += times
        self.total += value * times

    def add_all(self, values: Numbers) -> None:
        """Durations, each seen once."""
        np.add.at(self._counts, _places(values), 1)
        self.count += len(values)
        self.total += int(values.sum())

    def merge(self, other: Histogram) -> None:
        """Add what another one has seen."""
        self._counts += other._counts
        self.count += other.count
        self.total += other.total

    def quantile(self, part: float) -> int:
        """The duration that the given part of those seen do not exceed, to 1/64; 0 when none was
        seen."""
        if not self.count:
            return 0
        rank = max(1, int(np.ceil(part * self.count)))
        place = int(np.searchsorted(np.cumsum(self._counts), rank))
        return _highest(place)

    def at_most(self, value: int) -> int:
        """How many of the durations seen lie in buckets that end at or below a value."""
        place = int(_places(np.array([value], np.int64))[0])
        upto = place + 1 if _highest(place) <= value else place
        return int(self._counts[:upto].sum())

    def to_json(self) -> dict[str, Any]:
        """The buckets that are not empty."""
        used = np.flatnonzero(self._counts)
        return {
            "total": self.total,
            "buckets": [[int(place), int(self._counts[place])] for place in used],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Histogram:
        """The histogram of what :meth:`to_json` gave."""
        made = cls()
        made.total = int(value["total"])
        for place, count in value["buckets"]:
            made._counts[place] = count
            made.count += count
        return made


def _places(values: Numbers) -> Numbers:
    """The bucket of each value."""
    lengths = np.frexp(values.astype(np.float64))[1]
    shifts = np.maximum(lengths - _BITS, 0)
    places: Numbers = _HALF * shifts + (values >> shifts)
    return places


def _highest(place: int) -> int:
    """The highest value of a bucket."""
    shift = max(place // _HALF - 1, 0)
    return ((place - _HALF * shift + 1) << shift) - 1
