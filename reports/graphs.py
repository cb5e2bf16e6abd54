"""The lineage of a trace in other people's formats: OpenLineage run events, Graphviz."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bettong.lineage.graph import Lineage
from bettong.lineage.trace import TraceEvent
from bettong.reports.steps import FAULT, taken_steps

_PLACE = re.compile(r"\w+=\d+$")


def trace_lineage(events: Sequence[TraceEvent]) -> Lineage:
    """Every step that was done as a fact, derived from the steps that it names as its causes.

    The rule is the step's kind: its id without numbers of batches, partitions and messages.
    """
    lineage = Lineage()
    for taken in taken_steps(events):
        if taken.ended is not None and not taken.failed and not taken.step.startswith(FAULT):
            lineage.firing(taken.step, taken.event.causes, kind_of(taken.step))
    return lineage


def kind_of(step: str) -> str:
    """``batch=3/p=1/a=0/sink.prepare`` → ``sink.prepare``; ``gateway.ack/lines/17`` →
    ``gateway.ack``."""
    return next((part for part in step.split("/") if not _PLACE.match(part)), step)
