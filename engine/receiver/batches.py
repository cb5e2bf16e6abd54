"""A set of batch numbers that takes little room when most follow one another."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable


class Batches:
    """Numbers of batches.

    Attributes:
        ranges: what is in it, as sorted ``[first, last]`` pairs with gaps between them.
    """

    def __init__(self, ranges: Iterable[Iterable[int]] = ()) -> None:
        self.ranges = [list(pair) for pair in ranges]

    def add(self, batch: int) -> None:
        """Put a number in; again changes nothing."""
        if batch in self:
            return
        place = bisect_right(self.ranges, batch, key=lambda pair: pair[0])
        self.ranges.insert(place, [batch, batch])
        for left in (place, place - 1):
            if 0 <= left < len(self.ranges) - 1:
                (first, last), (following, end) = self.ranges[left : left + 2]
                if last + 1 == following:
                    self.ranges[left : left + 2] = [[first, end]]

    def __contains__(self, batch: int) -> bool:
        place = bisect_right(self.ranges, batch, key=lambda pair: pair[0]) - 1
        return place >= 0 and batch <= self.ranges[place][1]

    def __bool__(self) -> bool:
        return bool(self.ranges)

    @property
    def last(self) -> int:
        """The greatest number in it."""
        return self.ranges[-1][1]
