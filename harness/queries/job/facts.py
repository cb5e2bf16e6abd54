"""What a query's plan and progress show of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_DAY = 86400.0
_UNITS = {
    "millisecond": 0.001,
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": _DAY,
    "month": 31 * _DAY,  # Spark takes the longest there are
    "year": 12 * 31 * _DAY,
}


@dataclass(frozen=True)
class Facts:
    """What the plan and the progress of a clean run show.

    Attributes:
        watermarks: event-time columns with their delays in seconds; several where those of
            several inputs are called alike.
        stateful: its stateful operators.
        dropped: rows that were dropped because they came after the watermark.
        by_the_clock: where the clock decides which rows it puts out.
        unmarked: inputs that have no watermark.
        together: inputs that have one watermark, which is over them all.
    """

    watermarks: Mapping[str, tuple[float, ...]]
    stateful: tuple[str, ...]
    dropped: int
    by_the_clock: tuple[str, ...]
    unmarked: frozenset[str] = frozenset()
    together: frozenset[frozenset[str]] = frozenset()

    @classmethod
    def of(cls, facts: Sequence[Mapping[str, Any]]) -> Facts:
        """From what the incarnations of a run have reported."""
        marks: dict[str, set[float]] = defaultdict(set)
        for each in facts:
            for column, delay in each.get("watermarks", ()):
                marks[column].add(seconds(delay))
        return cls(
            {column: tuple(sorted(delays)) for column, delays in marks.items()},
            tuple(sorted({op for each in facts for op in each.get("stateful", ())})),
            sum(each.get("dropped", 0) for each in facts),
            tuple(sorted({part for each in facts for part in each.get("by_the_clock", ())})),
            frozenset(name for each in facts for name in each.get("unmarked", ())),
            frozenset(frozenset(names) for each in facts for names in each.get("together", ())),
        )


def seconds(delay: str) -> float:
    """A delay as Spark's plans write it: ``10 minutes``, ``1 hours 30 minutes``."""
    parts = re.findall(r"(-?[\d.]+) (\w+?)s?\b", delay)
    return float(sum(float(n) * _UNITS[unit] for n, unit in parts))
