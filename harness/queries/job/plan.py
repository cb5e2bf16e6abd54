"""What a query's plan, as Spark explains it, shows of the query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bettong.harness.queries.job.clock import by_the_clock

_WATERMARK = re.compile(r"EventTimeWatermark (?:[\w-]+, )?'?`?(.+?)`?#\d+\w*: \w+, (.+)")
_STATEFUL = re.compile(
    r"(StateStoreSave|StreamingSymmetricHashJoin|StreamingDeduplicate\w*|FlatMapGroupsWithState"
    r"|FlatMapGroupsInPandasWithState|TransformWithState\w*|StreamingGlobalLimit)"
)
_TIMERS = re.compile(
    r"(?:FlatMapGroups\w*WithState|TransformWithState)\w* .*"
    r"(?<!StructField\()\bProcessingTime(?:Timeout)?\b(?!#)"
)
_BRANCHES = " :+-"
EMPTY_BATCHES = 10
"""So many in a row without data are no batches that close what is open: those are one for each
operator with state at most."""


def shown_by(plan: str) -> dict[str, Any]:
    """Its event-time columns with their delays, its operators with state, and what the present
    time decides in it."""
    clock = [*by_the_clock(plan), *(["processing time"] if has_timers(plan) else [])]
    return {
        "watermarks": sorted(set(_WATERMARK.findall(plan))),
        "stateful": sorted(set(_STATEFUL.findall(plan))),
        "by_the_clock": clock,
    }


def has_timers(plan: str) -> bool:
    """Whether state of the query's own has timers, or a time to live, of processing time."""
    return _TIMERS.search(plan) is not None


def marked_by(plan: str, sources: Mapping[str, str]) -> dict[str, list[Any]]:
    """Over which inputs the watermarks of a query are, by its plan before any batch.

    ``unmarked``: inputs that are read, with no watermark over them. ``together``: the inputs under
    each watermark that is over several.

    Args:
        sources: what the plan calls the source of each input by.
    """
    marked: dict[int, set[str]] = {}
    bare: set[str] = set()
    lines = [(line, line.lstrip(_BRANCHES)) for line in plan.splitlines()]
    over: list[tuple[int, int]] = []
    """How deep the watermarks stand that are over the present node, and which they are."""
    for number, (line, node) in enumerate(lines):
        depth = len(line) - len(node)
        over = [each for each in over if each[0] < depth]
        if node.startswith("~EventTimeWatermark "):
            over.append((depth, number))
        read = {name for name, source in sources.items() if source in node}
        bare |= set() if over else read
        for _, watermark in over:
            marked.setdefault(watermark, set()).update(read)
    known = {name for names in marked.values() for name in names}
    shared = [sorted(names) for names in marked.values() if len(names) > 1]
    return {"unmarked": sorted(bare - known), "together": sorted(shared)}
