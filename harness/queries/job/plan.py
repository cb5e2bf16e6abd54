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
    """Its event-time columns with their delays, the columns of sources that no watermark is over
    and of those that one watermark is over, its operators with state, and what the present time
    decides in it."""
    clock = [*by_the_clock(plan), *(["processing time"] if "ProcessingTime" in plan else [])]
    return {
        "watermarks": sorted(set(_WATERMARK.findall(plan))),
        **_marked(plan),
        "stateful": sorted(set(_STATEFUL.findall(plan))),
        "by_the_clock": clock,
    }


def _marked(plan: str) -> dict[str, list[Any]]:
    """``unmarked``: the columns of each source of the stream over which no watermark is; none of
    those that cannot be told from one with a watermark. ``together``: of the sources under each
    watermark that is over several, if no other source looks like one of them."""
    marked: dict[int, list[tuple[str, ...]]] = {}
    bare: set[tuple[str, ...]] = set()
    analyzed = plan.partition("== Analyzed Logical Plan ==")[2].partition("\n\n")[0]
    lines = [(line, line.lstrip(_BRANCHES)) for line in analyzed.splitlines()]
    nodes = [(len(line) - len(node), node) for line, node in lines]
    over: list[tuple[int, int]] = []
    """How deep the watermarks stand that are over the present node, and which they are."""
    for number, ((depth, node), (next_depth, _)) in enumerate(pairwise([*nodes, (0, "")])):
        over = [each for each in over if each[0] < depth]
        if node.startswith("~EventTimeWatermark "):
            over.append((depth, number))
        elif node.startswith("~") and next_depth <= depth:  # a source has no node below it
            source = tuple(sorted(_ATTRIBUTE.findall(node)))
            bare |= set() if over else {source}
            for _, watermark in over:
                marked.setdefault(watermark, []).append(source)
    known = {source for sources in marked.values() for source in sources}
    shared = [
        sorted(set(each))
        for number, each in marked.items()
        if len(each) > 1
        and bare.isdisjoint(each)
        and all(set(each).isdisjoint(other) for n, other in marked.items() if n != number)
    ]
    return {"unmarked": sorted(bare - known), "together": sorted(shared)}
