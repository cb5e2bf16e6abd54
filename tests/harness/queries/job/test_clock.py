"""Whether the clock decides which rows a query puts out, by its plan as Spark explains it."""

from __future__ import annotations

import pytest

from bettong.harness.queries.job.clock import by_the_clock

_TIME = "current_batch_timestamp(1795525871081, TimestampType, Some(Dummy TimeZoneId))"


def plan(*nodes: str) -> str:
    """As Spark writes it, with the nodes from the sink to the source."""
    sink = (
        "~WriteToMicroBatchDataSourceV1 ForeachBatchSink, f6ba, [checkpointLocation=ck], Append, 0"
    )
    source = "~Project [id#5 AS id#0, at#6 AS at#1]"
    lines = [f"{'   ' * n}+- {node}" for n, node in enumerate((*nodes, source))]
    analyzed = "\n".join(("id: string", sink, *lines))
    parts = {"Parsed": sink, "Analyzed": analyzed, "Optimized": f"~Filter (at#6 < {_TIME})"}
    return "\n".join(f"== {name} Logical Plan ==\n{text}\n" for name, text in parts.items())


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ([], []),
        (["~Filter (at#1 < now())"], ["filter"]),
        ([f"~Filter (cast(at#1 as date) <= {_TIME})"], ["filter"]),
        ([f"~Project [id#0, at#1, {_TIME} AS t#60]"], []),
        (
            [
                "~EventTimeWatermark 23a5, u#80: timestamp, 1 minutes",
                "~Project [id#0, t#79, cast(t#79 + INTERVAL '01' HOUR as timestamp) AS u#80]",
                f"~Project [id#0, at#1, {_TIME} AS t#79]",
            ],
            ["watermark"],
        ),
        (
            [
                "~Project [id#0]",
                "~Filter (age#105L > cast(5 as bigint))",
                f"~Project [id#0, (unix_timestamp({_TIME}, yyyy, true) - 1) AS age#105L]",
            ],
            ["filter"],
        ),
        (
            [
                "~Aggregate [window#41-T60000ms], [window#41-T60000ms, count(1) AS count#36L]",
                "~Project [named_struct(start, f(t#35-T60000ms)) AS window#41-T60000ms, id#0]",
                "~Filter isnotnull(t#35-T60000ms)",
                f"~Project [id#0, {_TIME} AS t#35]",
            ],
            ["grouping"],
        ),
        (
            [
                "~Aggregate [id#0], [id#0, max(t#35) AS last#36, count(1) AS n#37L]",
                f"~Project [id#0, {_TIME} AS t#35]",
            ],
            [],
        ),
        (["~Filter (nowhere#9 > 1)", "~Filter (at#1 > cast(2024-01-01 as timestamp))"], []),
    ],
)
def test_what_the_clock_decides_is_found(nodes: list[str], found: list[str]) -> None:
    assert by_the_clock(plan(*nodes)) == found
