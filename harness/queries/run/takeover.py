"""What two drivers tell that are at work at once, one of which takes the other one for dead."""

from __future__ import annotations

from dataclasses import replace

from bettong.harness.faults.step_ids import CONCURRENT
from bettong.harness.queries.sink.concurrent import head
from bettong.harness.queries.sink.file_steps import CHANGED
from bettong.lineage.trace import TraceEvent


def own(event: TraceEvent) -> TraceEvent:
    """The event, without who has worked beside the batch or the task if that is only known by
    files that have changed: the other driver may have changed them. Whoever works beside the batch
    does so in runs of one driver, too, and is told there."""
    if event.detail.get("op") != CHANGED or CONCURRENT not in event.detail:
        return event
    detail = {name: value for name, value in event.detail.items() if name != CONCURRENT}
    return replace(event, step=event.step.replace(head(CONCURRENT), ""), detail=detail)
