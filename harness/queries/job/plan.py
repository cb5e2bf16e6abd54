"""What a query's plan, as Spark explains it, shows of the query."""

from __future__ import annotations

import re
from typing import Any

from bettong.harness.queries.job.clock import by_the_clock

_WATERMARK = re.compile(r"EventTimeWatermark (?:\S+, )?'?`?(\w+)#\d+\w*: \w+, (.+)")
_STATEFUL = re.compile(
    r"(StateStoreSave|StreamingSymmetricHashJoin|StreamingDeduplicate\w*|FlatMapGroupsWithState"
    r"|FlatMapGroupsInPandasWithState|TransformWithState\w*|StreamingGlobalLimit)"
)


def shown_by(plan: str) -> dict[str, Any]:
    """Its event-time columns with their delays, its operators with state, and what the present
    time decides in it."""
    clock = [*by_the_clock(plan), *(["processing time"] if "ProcessingTime" in plan else [])]
    return {
        "watermarks": sorted(set(_WATERMARK.findall(plan))),
        "stateful": sorted(set(_STATEFUL.findall(plan))),
        "by_the_clock": clock,
    }
