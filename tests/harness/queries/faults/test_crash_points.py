"""Which moments of a trace a driver can be crashed at."""

from __future__ import annotations

from bettong.harness.queries.faults.crash_points import DURABLE, FileSteps, crash_points
from bettong.lineage.trace import TraceEvent


def operation(kind: str, durable: str) -> TraceEvent:
    return TraceEvent("sink.file", "before", "driver", detail={"op": kind, DURABLE: durable})


def of_spark(step: str, durable: str) -> TraceEvent:
    return TraceEvent(step, "before", "driver", detail={DURABLE: durable})


def test_after_a_change_is_a_moment_where_something_else_changes_before_the_next_step() -> None:
    named = FileSteps()
    events = [
        of_spark("batch=0/offsets", "0"),
        operation("mkdir", "0"),
        operation("change", "1"),  # and a library writes, without asking
        operation("change", "2"),
        operation("rename", "2"),
        operation("change", "3"),
        of_spark("batch=0/commits", "4"),
    ]
    assert [m.point.step for m in crash_points(named(event) for event in events)] == [
        "batch=0/offsets",
        "batch=0/sink.file=1.mkdir",
        "batch=0/sink.file=1.change",
        "batch=0/sink.file=2.rename",
        "batch=0/sink.file=3.change",
        "batch=0/commits",
    ]
