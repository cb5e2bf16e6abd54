"""The checkpoints that a run's queries write to: by these, queries that come one after the other
are told apart, which all number their batches alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from bettong.harness.faults.step_ids import StepId
from bettong.lineage.trace import TraceEvent


def checkpoint_of(event: TraceEvent) -> Path | None:
    """The checkpoint that a step writes to, where that tells a query: its own file, or a plan."""
    path = event.detail.get("path")
    if path is not None and event.step == "metadata":
        return Path(path).parent
    if path is not None and StepId.parse(event.step).last == "offsets":
        return Path(path).parent.parent
    return None


def most_at_a_start(events: Iterable[TraceEvent]) -> int:
    """To how many checkpoints the queries write that one incarnation has started, at most: the next
    one may take another."""
    found: dict[int, set[Path]] = defaultdict(set)
    for event in events:
        if (checkpoint := checkpoint_of(event)) is not None:
            found[event.incarnation].add(checkpoint)
    return max(map(len, found.values()), default=0)
