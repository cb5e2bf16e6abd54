"""Lines of the user's code, counted as they begin."""

from __future__ import annotations

from collections import Counter

Line = tuple[int, int]
"""A line by its number in its file, and which time it is begun in a batch, or in an attempt at a
task."""


class LinesBegun:
    """Those of one batch, or attempt.

    Attributes:
        last: the one that was begun last.
    """

    def __init__(self) -> None:
        self.last: Line | None = None
        self._times: Counter[int] = Counter()

    def begins(self, number: int) -> Line:
        """A line of this number begins."""
        self._times[number] += 1
        self.last = line = number, self._times[number]
        return line
