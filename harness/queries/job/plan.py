"""What a query's plan, as Spark explains it, shows of the query."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from bettong.harness.queries.job.clock import by_the_clock

_WATERMARK = re.compile(r"EventTimeWatermark (?:[\w-]+, )?'?`?(.+?)`?#\d+\w*: \w+, (.+)")
_STATEFUL = re.compile(
    r"(StateStoreSave|StreamingSymmetricHashJoin|StreamingDeduplicate\w*|FlatMapGroupsWithState"
    r"|FlatMapGroupsInPandasWithState|TransformWithState\w*|StreamingGlobalLimit)"
)
_BRANCHES = " :+-"
_ATTRIBUTE = re.compile(r"(\w+)#\d+")


def shown_by(plan: str) -> dict[str, Any]:
    """Its event-time columns with their delays, the columns of sources that no watermark is over,
    its operators with state, and what the present time decides in it."""
    clock = [*by_the_clock(plan), *(["processing time"] if "ProcessingTime" in plan else [])]
    return {
        "watermarks": sorted(set(_WATERMARK.findall(plan))),
        "unmarked": sorted(map(list, _unmarked(plan))),
        "stateful": sorted(set(_STATEFUL.findall(plan))),
        "by_the_clock": clock,
    }


def _unmarked(plan: str) -> set[tuple[str, ...]]:
    """The columns of each source of the stream over which no watermark is; none of those that
    cannot be told from one with a watermark."""
    marked: set[tuple[str, ...]] = set()
    bare: set[tuple[str, ...]] = set()
    analyzed = plan.partition("== Analyzed Logical Plan ==")[2].partition("\n\n")[0]
    lines = [(line, line.lstrip(_BRANCHES)) for line in analyzed.splitlines()]
    nodes = [(len(line) - len(node), node) for line, node in lines]
    over: list[int] = []
    """How deep the watermarks stand that are over the present node."""
    for (depth, node), (next_depth, _) in pairwise([*nodes, (0, "")]):
        over = [each for each in over if each < depth]
        if node.startswith("~EventTimeWatermark "):
            over.append(depth)
        elif node.startswith("~") and next_depth <= depth:  # a source has no node below it
            (marked if over else bare).add(tuple(sorted(_ATTRIBUTE.findall(node))))
    return bare - marked
