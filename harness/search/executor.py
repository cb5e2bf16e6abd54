"""A scenario as a system that the search can run: schedules of fault ids in, lineage out."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any

from bettong.harness.conductor.order import FiringOrder
from bettong.harness.events import search_progress
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import PointPhase
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.campaign import Campaign
from bettong.harness.runs.run import RunRecord
from bettong.harness.search.equivalence import FaultEquivalence, Recovery, recovery_of
from bettong.harness.search.occurrences import Reading, read_occurrences
from bettong.harness.search.recovery import CleanRecords
from bettong.harness.search.trace_lineage import RunLineage, lineage_of, make_up
from bettong.harness.search.turns import in_turn
from bettong.lineage.faults import CLASSIC, CLEAN, FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.search.events import Executed, SearchEvent
from bettong.lineage.search.executor import Execution

Likely = Callable[[Sequence[Fault]], Sequence[FaultSet]]
"""Given the faults of the clean run, in its order: fault sets that are put up before others of
their size, if they are hypotheses."""

_TURNS = 3
"""So many faults in turn come between two that the solver finds."""
_TRIES = 3
"""So often each order is tried in which a moment has come: where a node is soon back, its client
has less to try again."""


def fingerprint(seen: RunRecord, reading: Reading) -> str:
    """Equal for runs with the same steps, the same causes and the same outputs."""
    steps = sorted(
        f"{o.name} <- {sorted(c.name for c in [*o.causes, *o.answers])}"
        for o in reading.occurrences
    )
    reported = "\n".join([*steps, *sorted(f"{id} {value}" for id, value in seen.outputs)])
    return blake2b(reported.encode(), digest_size=16).hexdigest()


Moment = tuple[str, int, PointPhase]
"""A step, which time it is taken, and whether before or after it."""


def moments(reading: Reading) -> Iterator[Moment]:
    """Those that came in a run."""
    for o in reading.occurrences:
        yield o.step, o.number, "before"
        if o.ended is not None:
            yield o.step, o.number, "after"


def impossible(seen: RunRecord, reading: Reading) -> tuple[str, ...]:
    """Planned faults whose moments never came in a good run because another fault had fired:
    the run is that of the others alone. Empty when a fault failed to fire for any other reason."""
    if seen.outcome != "not-injected" or len(seen.not_fired) == len(seen.schedule.faults):
        return ()
    came = set(moments(reading))
    return () if _come(seen, seen.not_fired, came) else seen.not_fired


def _come(seen: RunRecord, ids: Collection[str], came: AbstractSet[Moment]) -> bool:
    """Whether the moment of any of these faults is among those that came."""
    points = (fault.points[0] for fault in seen.schedule.faults if fault.id in ids)
    return any((point.step, point.occurrence, point.phase) in came for point in points)


_Came = tuple[frozenset[Moment], FiringOrder | None]


def _what_came(seen: RunRecord, reading: Reading) -> _Came:
    """The moments that came in a run, and the order in which its one fault fired."""
    faults = seen.schedule.faults
    order = FiringOrder.of(faults[0], seen.events) if len(faults) == 1 else None
    return frozenset(moments(reading)), order


@dataclass(slots=True)
class ScenarioExecutor:
    """Runs a campaign's scenario for the search.

    Attributes:
        batches: faults are placed in the first so many batches; None for all of them.
        kinds: of the faults that are asked for.
        likely: gives fault sets that are suggested before others, once the clean run is known.
        equivalence: what runs have shown of which faults are alike.
        clean: the lineage of the clean run, once it is known.
        records: what the disks hold in the clean run, once it is known.
        starts_again: whether the clean run is as good when every node is started again at its end.
            If not, runs end without that: it would say nothing about their faults.
        lineage_seconds: time spent on reading traces.
    """

    campaign: Campaign
    batches: int | None
    kinds: AbstractSet[str] = CLASSIC
    likely: Likely = lambda _: ()
    equivalence: FaultEquivalence = field(default_factory=FaultEquivalence)
    clean: Lineage | None = None
    records: CleanRecords | None = None
    starts_again: bool = True
    lineage_seconds: float = 0.0
    _first: Sequence[FaultSet] = ()
    _turns: Iterator[str] | None = None
    _runs: dict[FaultSet, RunRecord] = field(default_factory=dict)
    _came: dict[FaultSet, _Came] = field(default_factory=dict)

    def schedule(self, ids: FaultSet) -> Schedule:
        """The schedule of known faults."""
        return Schedule(tuple(self.equivalence.faults[id] for id in sorted(ids)))

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        """Run the scenario from its beginning with exactly these faults, and read why so."""
        return self.settled(self.attempt(schedule))

    def attempt(self, schedule: FaultSet = CLEAN) -> Execution:
        """The same with all that the trace tells left to :meth:`settled`, so that several may be
        under way."""
        seen = self.campaign.run(self.schedule(schedule), None if schedule else "clean")
        if not schedule and seen.again_changed:
            self._without_start()
            seen = self.campaign.run(seen.schedule, "clean")
        self._runs[schedule] = seen
        return Execution(schedule, seen.outcome)

    def run_to_start(self) -> Execution:
        """The clean run with every node started again at its end."""
        self.campaign.again = True
        seen = self.campaign.run(Schedule(), "again")
        self._runs[CLEAN] = seen
        return self.settled(Execution(CLEAN, seen.outcome))

    def _without_start(self) -> None:
        self.starts_again = self.campaign.again = False

    def settled(self, execution: Execution) -> Execution:
        """The execution with its lineage and all that depends on what was learned before it; to
        be called in the order in which fault sets were put up, whichever run ended first."""
        schedule = execution.schedule
        seen = self._runs.pop(schedule)
        read = self._read(seen)
        never = impossible(seen, read.reading)
        if never and self._come_without(seen, never):
            # A matter of timing, then: again, in the order in which it came, and if it does not
            # come, nothing is known.
            for order in self._orders(seen, never) * _TRIES:
                self.campaign.forget(seen)
                seen, never = self.campaign.run(seen.schedule, order=order), ()
                if not seen.not_fired:
                    break
            read = self._read(seen)
        if len(schedule) <= 1:  # larger ones are many, and seldom asked for
            self._came[schedule] = _what_came(seen, read.reading)
        kept = self.campaign.trace_of(seen)
        self.campaign.forget(seen)
        outcome, not_fired, note = seen.outcome, seen.not_fired, seen.note
        if schedule and outcome == "good" and self.clean is not None:
            make_up(read.lineage, self.clean, seen.schedule.faults)
        if never:
            outcome, not_fired = "good", ()
            note = f"{', '.join(never)}: its moment cannot come once the others have fired"
        if outcome == "violation" and schedule and len(not_fired) == len(schedule):
            outcome = "unknown"
            note = f"it broke although no fault had fired: {note}"
        execution = Execution(
            schedule,
            outcome,
            read.lineage,
            seen.anomalies,
            dict(seen.evidence),
            not_fired,
            "" if schedule else fingerprint(seen, read.reading),
            round(seen.seconds, 3),
            kept,
            note,
            {**self._details(seen, read), "impossible": list(never)},
        )
        if not schedule and seen.outcome == "good" and read.reading.unread:
            return _blind(execution, read.reading.unread)
        return execution

    def _read(self, seen: RunRecord) -> RunLineage:
        began = time.monotonic()
        clean = self.records if seen.schedule.faults else None
        read = lineage_of(
            seen.events, self.batches, self.equivalence.standing_for, self.kinds, clean
        )
        self.lineage_seconds += time.monotonic() - began
        return read

    def _come_without(self, seen: RunRecord, never: Collection[str]) -> bool:
        """Whether the moments of faults that did not fire come when the others fire alone."""
        others = frozenset(seen.schedule.ids).difference(never)
        if others not in self._came:  # not run yet, or answered from the log
            alone = self.campaign.run(self.schedule(others))
            self._came[others] = _what_came(alone, read_occurrences(alone.events))
            self.campaign.forget(alone)
        came, _ = self._came[others]
        return _come(seen, never, came)

    def _orders(self, seen: RunRecord, never: Collection[str]) -> list[FiringOrder | None]:
        """The order in which moments that did not come have come, and the same with the node that
        comes to them held back: its request may have been under way, which no order says."""
        _, order = self._came[frozenset(seen.schedule.ids).difference(never)]
        steps = {f.points[0].step for f in seen.schedule.faults if f.id in never}
        node = next((event.node for event in seen.events if event.step in steps), "")
        held = order.held_back(node) if order is not None else None
        return [order] if held is None else [order, held]

    def _details(self, seen: RunRecord, read: RunLineage) -> dict[str, Any]:
        """What a later look at this run needs, also when it comes from the search's log."""
        faults = [fault for id, fault in read.faults.items() if id not in self.equivalence.faults]
        found: dict[str, Any] = {
            "faults": Schedule(tuple(faults)).to_dict()["faults"],
            "ordering": seen.judgement.ordering,
            "timings": dict(seen.timings),
        }
        if seen.driver_crashed:
            found["jvm_spared"] = seen.jvms_spared > 0
        if seen.again_changed:
            found["again"] = True
        if not seen.schedule.faults and not self.starts_again:
            found["starts_again"] = False
        if read.reading.unread:
            found["unread"] = read.reading.unread
        found["stand_ins"] = {
            id: crash.id
            for id, crash in read.same.items()
            if id in read.faults and crash.id in read.lineage.faults
        }
        if not seen.schedule.faults:
            found["records"] = CleanRecords.of(read.reading).to_dict()
        if len(seen.schedule.faults) == 1:
            recovery = recovery_of(seen.schedule.faults[0], read.reading, read.batch)
            if recovery is not None:
                found["recovery"] = recovery.to_dict()
        return found

    def suggest(self) -> list[FaultSet]:
        """What is likely to break something: what was said to be, repairs that fail as what they
        repair has, and the next single faults in turn."""
        if self._turns is None:
            known = self.equivalence.faults
            clean = [fault for id, fault in known.items() if id in self.equivalence.clean]
            self._first = self.likely(clean)
            self._turns = iter(in_turn(fault for fault in clean if fault.bound not in CLASSIC))
        turns = (frozenset({id}) for id in islice(self._turns, _TURNS))
        return [*self._first, *self.equivalence.again(), *turns]

    def on_event(self, event: SearchEvent) -> None:
        """Take in what the search has run, and pass on how far it has come."""
        if isinstance(event, Executed):
            self.learn(event.execution)
        search_progress(self.campaign.on_event)(event)

    def learn(self, execution: Execution) -> None:
        """Take in an execution, a fresh one or one from the log."""
        faults: Sequence[Fault] = Schedule.from_dict(
            {"faults": execution.details.get("faults", [])}
        ).faults
        for fault in faults:
            self.equivalence.faults.setdefault(fault.id, fault)
        if not execution.schedule:
            self.clean = execution.lineage
            if not execution.details.get("starts_again", True):
                self._without_start()
            self.records = CleanRecords.from_dict(execution.details["records"])
            self.equivalence.clean = {fault.id for fault in faults}
        self.equivalence.stand_ins |= execution.details.get("stand_ins", {})
        recovery = execution.details.get("recovery")
        if recovery is not None and len(execution.schedule) == 1:
            (fault_id,) = execution.schedule
            self.equivalence.learn(fault_id, Recovery(**recovery))


def _blind(execution: Execution, unread: Sequence[str]) -> Execution:
    """The clean run, with steps whose causes cannot be read: nothing can be built on it."""
    return Execution(
        execution.schedule,
        "unknown",
        execution.lineage,
        fingerprint=execution.fingerprint,
        seconds=execution.seconds,
        trace=execution.trace,
        note=f"the trace does not say why {len(unread)} steps happened: {'; '.join(unread[:3])}",
        details=execution.details,
    )
