"""How Spark has numbered the batches of a run."""

from __future__ import annotations

from collections.abc import Iterable

from bettong.harness.faults.step_ids import StepId
from bettong.lineage.trace import TraceEvent


def begins_anew(events: Iterable[TraceEvent]) -> bool:
    """Whether a batch was planned whose number one that was recorded before has, or a later one:
    the query has thrown its checkpoint away, or has taken another. Of such a query the numbers of
    later batches mean something else after a restart."""
    recorded = -1
    for event in events:
        step = StepId.parse(event.step)
        if step.batch is None or event.phase != "after":
            continue
        if step.ends_batch:
            recorded = max(recorded, step.batch)
        elif step.last == "offsets" and step.batch <= recorded:
            return True
    return False
