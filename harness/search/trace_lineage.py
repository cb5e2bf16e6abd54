"""The lineage of a real run, read from its trace.

Facts are ``begun(STEP)`` and ``done(STEP)`` of single occurrences (``STEP#2`` is the second), and
``done(STEP)`` at all, which any occurrence derives: that is where a retry or a replay is an
alternative. Whoever builds on a step that has ended well builds on the latter, whichever try of it
that was: so two repairs, each seen in a run of its own, are known to work together when neither
takes part in the other. Leaves are

- the delivery of a request and of its reply, falsified by losing them at that step, or by a
  partition; that it is delivered once only;
- that the disk takes what a step writes, and says so, call by call;
- that what a step has written stays, falsified by a power cut at any moment at which it is not
  durable;
- a node's life until a step, falsified by a crash just before or just after an earlier one, or by
  taking it for dead while it stands still;
- that nothing has fired which leaves other records on a node's disk
  (:mod:`bettong.harness.search.recovery`);
- what a restart or a retry owes to the fault that made it necessary, which holds only *while*
  that fault fires.

Facts that suppress a retry (an ack, a commit, a log write) are goals beside the outputs:
preventing an output loses it, preventing such a fact can duplicate it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import SERVERS, Point, PointPhase
from bettong.harness.faults.step_ids import StepId
from bettong.harness.search.leaves import Batches, LeafBuilder, is_within, owed
from bettong.harness.search.occurrences import (
    Occurrence,
    Reading,
    read_occurrences,
)
from bettong.harness.search.recovery import CleanRecords, Recoveries
from bettong.harness.search.set_digest import SetDigest
from bettong.harness.search.whole_run import WholeRun
from bettong.lineage.faults import CLASSIC, STORAGE
from bettong.lineage.graph import FACT, Lineage
from bettong.lineage.queries import holding
from bettong.lineage.trace import TraceEvent


def message_batches(events: Iterable[TraceEvent]) -> Batches:
    """A function that gives the batch of any step: its own, that of the message it names, or, of
    what begins an epoch, the first that the epoch does."""
    events = tuple(events)
    epochs = _epochs(events)
    planned = {
        (carried, batch): None
        for event in events
        if (batch := StepId.parse(event.step).batch) is not None
        for carried in event.carries
    }

    def find(step: str) -> int | None:
        id = StepId.parse(step)
        if id.batch is not None:
            return id.batch
        if id.epoch is not None:
            return epochs.get(id.epoch)
        if id.message is None:
            return None
        stream, number = id.message
        of_stream = [(carried, batch) for carried, batch in planned if carried.stream == stream]
        if number == "end":  # it belongs to the batch of the last message
            return max((batch for _, batch in of_stream), default=None)
        return next((b for c, b in of_stream if c.start <= int(number) < c.stop), None)

    return find


def _epochs(events: Iterable[TraceEvent]) -> dict[int, int]:
    """The first batch that is worked on after the beginning of each epoch."""
    found: dict[int, int] = {}
    begun: set[int] = set()
    for event in events:
        id = StepId.parse(event.step)
        if id.epoch is not None:
            begun.add(id.epoch)
        elif id.batch is not None:
            for epoch_begun in begun - found.keys():
                found[epoch_begun] = id.batch
    return found


@dataclass(slots=True)
class RunLineage:
    """What one run says.

    Attributes:
        lineage: the graph; its faults carry the ids of :attr:`faults`.
        faults: the harness's faults by id, to be put into schedules.
        reading: the occurrences that it was read from.
        batch: gives the batch of a step.
        same: faults, each with the one that stands for it.
        held: digests of what the disks of servers hold, by the place of the trace; empty where that
            is not known.
    """

    lineage: Lineage
    faults: dict[str, Fault]
    reading: Reading
    batch: Batches
    same: Mapping[str, Fault]
    held: Mapping[int, str]


@dataclass(slots=True)
class _Builder:
    reading: Reading
    events: tuple[TraceEvent, ...]
    leaves: LeafBuilder
    recoveries: Recoveries
    alive: dict[tuple[str, int], str] = field(default_factory=dict)
    lived: dict[tuple[str, int], SetDigest] = field(default_factory=dict)
    taken: set[tuple[str, int, str]] = field(default_factory=set)
    origin: dict[tuple[str, int], list[str]] = field(default_factory=dict)

    def build(self) -> RunLineage:
        moments = self._moments()
        restarts = {r.position: r for r in self.reading.restarts}
        begun: dict[int, Fault] = {s.position: s.fault for s in self.reading.injected}
        killed: dict[str, Fault] = {}
        injected = self.leaves.injected
        for position in range(len(self.events)):
            if position in begun:
                injected.append(begun[position])
                for node in begun[position].takes_away:
                    killed[node] = begun[position]
            if position in restarts:
                restart = restarts[position]
                cause = killed.get(restart.node) or next(reversed(injected), None)
                self.origin[restart.node, restart.incarnation] = [
                    *([self.leaves.owed(cause)] if cause else []),
                    *self.recoveries.found(restart.node),
                ]
            if position in moments:
                take_in, occurrence = moments[position]
                take_in(occurrence)
        self.recoveries.end()
        leaves = self.leaves
        held = self.recoveries.held
        return RunLineage(
            self.lineage, leaves.faults, self.reading, leaves.batch, leaves.same, held
        )

    @property
    def lineage(self) -> Lineage:
        return self.leaves.lineage

    def _moments(self) -> dict[int, tuple[Callable[[Occurrence], None], Occurrence]]:
        found: dict[int, tuple[Callable[[Occurrence], None], Occurrence]] = {}
        for occurrence in self.reading.occurrences:
            found[occurrence.begun] = (self._begin, occurrence)
            if occurrence.ended is not None:
                found[occurrence.ended] = (self._end, occurrence)
            elif occurrence.failed is not None:
                found[occurrence.failed] = (self.recoveries.wrote, occurrence)
        return found

    # --- facts

    def _begin(self, occurrence: Occurrence) -> None:
        premises = [self._live_until(occurrence, "before")]
        premises += self._premises(occurrence.causes, occurrence, occurrence.begun)
        here = occurrence.node, occurrence.incarnation, occurrence.step
        first_here = here not in self.taken
        self.taken.add(here)
        if not first_here and self.leaves.injected:
            premises.append(self.leaves.owed(self.leaves.injected[-1]))
        self.lineage.firing(f"begun({occurrence.name})", premises, "begin")

    def _end(self, occurrence: Occurrence) -> None:
        ended = occurrence.ended
        assert ended is not None
        name = occurrence.name
        premises = [f"begun({name})"]
        premises += self._premises(occurrence.answers, occurrence, ended)
        if occurrence.link is not None:
            premises.append(self.leaves.request(occurrence))
            if not occurrence.id.is_push:
                premises.append(self.leaves.reply(occurrence))
        premises += self.leaves.ended(occurrence)
        premises += self.leaves.stays(occurrence)
        self.lineage.fact(f"done({name})", label=name)
        self.lineage.firing(f"done({name})", premises, "end")
        goal = self.lineage.fact(_at_all(occurrence.step), goal=True, label=occurrence.step)
        self.lineage.firing(goal, [f"done({name})"], f"occurrence {occurrence.number}")
        self.recoveries.wrote(occurrence)
        self._live_until(occurrence, "after")

    def _premises(self, causes: list[Occurrence], of: Occurrence, position: int) -> Iterable[str]:
        for cause in causes:
            if cause.done_at(position):
                yield _at_all(cause.step)
            else:  # still open: a request that has arrived here, or what this step is a part of
                yield f"begun({cause.name})"
                if cause.link is not None and cause.link.endswith(f"->{of.node}"):
                    yield self.leaves.request(cause)

    def _live_until(self, occurrence: Occurrence, phase: PointPhase) -> str:
        """The fact that the node lives at this moment. Its id is a digest of all the moments it
        has lived through, in whatever order: each makes it another one, so that no circle can
        arise, and runs in which its threads have gone ahead of each other merge again."""
        who = (occurrence.node, occurrence.incarnation)
        point = Point(occurrence.step, phase, occurrence.number)
        disk = self.recoveries.moment(occurrence, point)
        leaf = self.leaves.lives(occurrence, phase)
        before = self.alive.get(who)
        origin = [] if before else self.origin.get(who, [])
        premises = [*([before] if before else origin), *disk, leaf]
        lived = self.lived.setdefault(who, SetDigest())
        lived.take_in((*origin, *disk, leaf, str(point)))
        fact = f"alive({occurrence.node}.{occurrence.incarnation}, {point}) {lived}"
        self.lineage.fact(fact, label=f"{occurrence.node} lives, {point}")
        self.lineage.firing(fact, premises, "live on")
        self.alive[who] = fact
        return fact


def make_up(lineage: Lineage, clean: Lineage, injected: Iterable[Fault]) -> None:
    """Say of a run that stayed good what it had instead of the clean run's goals that it did not
    reach: an ack that was lost is not given again when the next connection says the same.

    Such a goal then holds as well because of the faults that fired, as long as everything that
    happened only in this run does.
    """
    faults = {fault.id: fault for fault in injected}
    held = holding(lineage, frozenset(faults))
    missed = [goal for goal in clean.goals if goal not in held]
    if not missed:
        return
    instead = [
        fact
        for fact, kind in lineage.graph.nodes(data="kind")
        if kind == FACT and fact.startswith("done(") and fact in held and fact not in clean.graph
    ]
    premises = [*(owed(lineage, faults[id]) for id in sorted(faults)), *instead]
    for goal in missed:
        lineage.fact(goal, goal=True, label=str(clean.attributes(goal)["label"]))
        lineage.firing(goal, premises, "made up for")


def _at_all(step: str) -> str:
    return f"done({step}) at all"


def lineage_of(
    events: Iterable[TraceEvent],
    batches: int | None = None,
    fold: Callable[[Reading], Mapping[str, Fault]] = lambda _: {},
    kinds: AbstractSet[str] = CLASSIC,
    clean: CleanRecords | None = None,
    opaque: AbstractSet[str] = frozenset(),
) -> RunLineage:
    """The lineage of a run from its trace.

    Args:
        opaque: roles of nodes of which not all is seen that outlives them.
        clean: what the disks hold in the clean run; None where this is that run.
        batches: faults only at steps of the first so many batches.
        fold: gives crashes of a run, each with the one that stands for it.
        kinds: of the faults that are asked for.
    """
    chosen = tuple(events)
    reading = read_occurrences(chosen)
    batch_of = message_batches(chosen)
    run = WholeRun(reading, lambda step: is_within(step, batch_of, batches))
    leaves = LeafBuilder(Lineage(), batch_of, batches, kinds, fold(reading), run)
    held = run.held if STORAGE in kinds and opaque.isdisjoint(SERVERS) else {}
    records = clean or CleanRecords.of(reading, held)
    return _Builder(reading, chosen, leaves, Recoveries(leaves, records, held)).build()
