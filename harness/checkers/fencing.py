"""Epochs fence: each belongs to one start of a query alone."""

from __future__ import annotations

from collections.abc import Iterable

from bettong.harness.faults.step_ids import StepId
from bettong.lineage.results import Anomaly
from bettong.lineage.trace import TraceEvent


def check_fencing(events: Iterable[TraceEvent]) -> tuple[Anomaly, ...]:
    """Epochs that two starts of a node have begun at a sink: neither can be distinguished from the
    other, so that nothing keeps the older one from writing after the newer has begun."""
    first: dict[str, tuple[str, int]] = {}
    found: dict[str, Anomaly] = {}
    for event in events:
        id = StepId.parse(event.step)
        if id.shape != "epoch=N/sink.open" or event.phase != "before":
            continue
        who = event.node, event.incarnation
        known = first.setdefault(event.step, who)
        if known != who:
            epoch = str(id.epoch)
            starts = [f"{node}, start {incarnation}" for node, incarnation in (known, who)]
            note = f"epoch {epoch} was begun by two starts: {' and '.join(starts)}"
            expected = f"one start has epoch {epoch}"
            found.setdefault(epoch, Anomaly("Violation", expected=expected, seen=starts, note=note))
    return tuple(found.values())
