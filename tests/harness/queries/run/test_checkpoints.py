"""How many queries a run was of, by the checkpoints that they write to."""

from __future__ import annotations

import pytest

from bettong.harness.queries.run.observation import QueryRun
from bettong.lineage.trace import TraceEvent


def written(path: str, incarnation: int = 1) -> TraceEvent:
    name = path.rpartition("/")[2]
    step = "metadata" if name == "metadata" else f"batch={name}/offsets"
    return TraceEvent(step, "before", "driver", incarnation, detail={"path": path})


@pytest.mark.parametrize(
    ("events", "facts", "queries"),
    [
        ([], [], 1),
        ([written("/a/metadata"), written("/a/offsets/0"), written("/a/offsets/1")], [], 1),
        ([written("/a/metadata"), written("/b/offsets/0")], [], 2),
        ([written("/a/offsets/0"), written("/b/offsets/0", 2)], [], 1),
        ([written("/a/offsets/0")], [{"queries": 1}, {"queries": 2}], 2),
        ([TraceEvent("batch=0/commits", "after", "driver", 1)], [{}], 1),
    ],
    ids=["none", "one", "one after the other", "another at a restart", "at once", "no path"],
)
def test_queries_are_told_apart_by_what_each_start_writes_to(
    events: list[TraceEvent], facts: list[dict[str, int]], queries: int
) -> None:
    assert QueryRun(events=events, facts=facts).queries == queries
