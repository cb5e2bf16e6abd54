"""Which schedules to run: every single fault at the steps of the first batches, or random ones.

Both are drawn up from the trace of a clean run, so that every fault names a step that comes.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from bettong.harness.faults import registry
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import Topology
from bettong.harness.faults.schedule import Schedule
from bettong.harness.faults.step_ids import FAULT, NODE_START, REPLAY, StepId
from bettong.lineage.errors import BettongError
from bettong.lineage.faults import CLASSIC
from bettong.lineage.trace import TraceEvent

_HARNESS = (FAULT, NODE_START, REPLAY)


class BatchUnknownError(BettongError):
    """The clean run has no such batch."""


def first_taken(events: Sequence[TraceEvent]) -> list[TraceEvent]:
    """The first ``before`` event of every step, in the order in which they came."""
    found: dict[str, TraceEvent] = {}
    for event in events:
        if event.phase == "before" and not event.step.startswith(_HARNESS):
            found.setdefault(event.step, event)
    return list(found.values())


def steps_of_batch(events: Sequence[TraceEvent], batch: int) -> list[TraceEvent]:
    """The steps that belong to a batch: its own, and those of its messages before they were in
    one. Raises BatchUnknownError."""
    carried = {r for e in events if e.step.startswith(f"batch={batch}/") for r in e.carries}
    if not carried:
        raise BatchUnknownError(
            f"the clean run has no batch {batch}: give it more messages, or a smaller batch"
        )

    def belongs(event: TraceEvent) -> bool:
        id = StepId.parse(event.step)
        if id.batch is not None:
            return id.batch == batch
        if id.epoch == 1 or id.is_ahead:
            return batch == 0
        return any(
            event.step.endswith(f"/{r.stream}/{n}") for r in carried for n in range(r.start, r.stop)
        )

    return [event for event in first_taken(events) if belongs(event)]


def faults_at(
    event: TraceEvent, topology: Topology, kinds: AbstractSet[str] = CLASSIC, occurrence: int = 1
) -> Iterator[Fault]:
    """Every single fault at a step, of the kinds that are asked for: the node that
    takes it killed before and after it, and, where it is a request, the node at the other end too,
    the request lost, and its reply lost; the driver replaced while it stands still, the write
    refused, the request delivered twice.
    """
    for kind in registry.kinds().values():
        if kind.bound in kinds:
            yield from kind.singles(event, topology, occurrence)


def each_step(
    events: Sequence[TraceEvent],
    batches: int,
    topology: Topology,
    kinds: AbstractSet[str] = CLASSIC,
) -> list[Schedule]:
    """One schedule for every single fault at every step of the first so many batches, as far as
    there are any; raises BatchUnknownError when there are none."""
    steps: list[TraceEvent] = []
    for batch in range(batches):
        with contextlib.suppress(BatchUnknownError):
            steps += steps_of_batch(events, batch)
    if not steps:
        raise BatchUnknownError(f"the clean run has none of the first {batches} batches")
    return [Schedule((fault,)) for event in steps for fault in faults_at(event, topology, kinds)]


def random_schedules(
    events: Sequence[TraceEvent],
    count: int,
    seed: int,
    topology: Topology,
    most: int = 2,
    kinds: AbstractSet[str] = CLASSIC,
) -> list[Schedule]:
    """Schedules of one to ``most`` faults at random steps; the same for the same seed."""
    drawn = random.Random(seed)
    steps = first_taken(events)
    found: dict[tuple[str, ...], Schedule] = {}
    for _ in range(count * 20):
        chosen: dict[str, Fault] = {}
        for event in drawn.sample(steps, min(len(steps), drawn.randint(1, most))):
            fault = drawn.choice(list(faults_at(event, topology, kinds)))
            chosen[fault.id] = fault
        schedule = Schedule(tuple(chosen.values()))
        found.setdefault(tuple(sorted(schedule.ids)), schedule)
        if len(found) == count:
            break
    return list(found.values())
