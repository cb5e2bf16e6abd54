"""A scenario as a system that the search can run: schedules of fault ids in, lineage out."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

from bettong.harness.conductor.order import FiringOrder
from bettong.harness.events import search_progress
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import OmitReply
from bettong.harness.faults.point import Point
from bettong.harness.faults.schedule import Schedule
from bettong.harness.faults.step_ids import StepId
from bettong.harness.runs.campaign import Campaign
from bettong.harness.runs.record import RunRecord
from bettong.harness.search.equivalence import FaultEquivalence, Recovery
from bettong.harness.search.occurrences import Occurrence, read_occurrences
from bettong.harness.search.read_run import (
    Came,
    CleanRun,
    ReadRun,
    RunReader,
    opaque,
    what_came,
)
from bettong.harness.search.reading_process import Reading, ReadingProcess
from bettong.harness.search.recovery import CleanRecords
from bettong.harness.search.repairs import RepairTurns
from bettong.harness.search.turns import in_turn, sort_of
from bettong.lineage.faults import CLASSIC, CLEAN, CRASH, LOSS, Bounds, FaultSet
from bettong.lineage.search.events import Executed, SearchEvent
from bettong.lineage.search.executor import Execution

Likely = Callable[[Sequence[Fault]], Sequence[FaultSet]]
"""Given the faults of the clean run, in its order: fault sets that are put up before others of
their size, if they are hypotheses."""

_TURNS = 7
"""So many faults in turn come between two that the solver finds."""
_TRIES = 3
"""So often each order is tried in which a moment has come, and a fault which has hit nothing at its
moment: where a node is soon back, its client has less to try again; where a node is quick, it is
past what the fault was to hit."""


def fingerprint(seen: RunRecord, read: ReadRun) -> str:
    """Equal for runs with the same steps, the same causes and the same outputs."""
    reported = "\n".join([read.behaviour, *sorted(f"{id} {value}" for id, value in seen.outputs)])
    return blake2b(reported.encode(), digest_size=16).hexdigest()


def impossible(seen: RunRecord, came: Came) -> tuple[str, ...]:
    """Planned faults whose moments never came in a good run because another fault had fired, or
    which had fewer calls to the disk for it: the run is that of the others alone. Empty when a
    fault failed to fire for any other reason."""
    if seen.outcome != "not-injected" or len(seen.not_fired) == len(seen.schedule.faults):
        return ()
    return () if _come(seen, seen.not_fired, came) else seen.not_fired


def unanswered(seen: RunRecord) -> tuple[str, ...]:
    """Planned faults that were to lose an answer which nobody gave, as another fault killed who was
    to give it: the run is that of the others alone, in which whoever asked hears nothing either.
    Empty when a fault failed to fire for any other reason."""
    if seen.outcome != "not-injected":
        return ()
    faults = seen.schedule.faults
    fired = [fault for fault in faults if fault.id not in seen.not_fired]
    lost = [fault for fault in faults if fault.id in seen.not_fired]
    taken = {(o.step, o.number): o for o in read_occurrences(seen.events).occurrences}
    in_vain = all(_nobody_answers(fault, fired, taken) for fault in lost)
    return seen.not_fired if in_vain else ()


def _nobody_answers(
    fault: Fault, others: Sequence[Fault], taken: Mapping[tuple[str, int], Occurrence]
) -> bool:
    """Whether one of the others kills the server while it is asked: after its client has come to
    the step, and before it is done with that."""
    point = fault.points[0]
    asked = taken.get((point.step, point.occurrence))
    if not isinstance(fault, OmitReply) or asked is None:
        return False
    server = fault.link.partition("->")[2]
    killed = (_position(other.points[0], taken) for other in others if server in other.kills)
    return any(at is not None and asked.begun < at and not asked.over_at(at) for at in killed)


def _position(point: Point, taken: Mapping[tuple[str, int], Occurrence]) -> int | None:
    """Where a moment is in the trace, if it came."""
    found = taken.get((point.step, point.occurrence))
    return None if found is None else found.begun if point.phase == "before" else found.ended


def _come(seen: RunRecord, ids: Collection[str], came: Came) -> bool:
    """Whether the moment of any of these faults is among those that came, with its call to the
    disk if it hits one."""
    for fault in seen.schedule.faults:
        at = fault.points[0]
        use = came.get((at.step, at.occurrence, at.phase))
        if fault.id in ids and use is not None and fault.is_among(use):
            return True
    return False


_Came = tuple[Came, FiringOrder | None]


def _what_came(seen: RunRecord, came: Came) -> _Came:
    """The moments that came in a run, and the order in which its one fault fired."""
    faults = seen.schedule.faults
    order = FiringOrder.of(faults[0], seen.events) if len(faults) == 1 else None
    return came, order


class _Ended(NamedTuple):
    """A run that has ended, and what reads it, if another process does."""

    seen: RunRecord
    reading: Reading | None = None


@dataclass(slots=True)
class ScenarioExecutor:
    """Runs a campaign's scenario for the search. Where several runs go on at a time, they are read
    by a process of its own, until it is closed.

    Attributes:
        batches: faults are placed in the first so many batches; None for all of them.
        bounds: within which faults are combined.
        likely: gives fault sets that are suggested before others, once the clean run is known.
        equivalence: what runs have shown of which faults are alike.
        starts_again: whether the clean run is as good when every node is started again at its end.
            If not, runs end without that: it would say nothing about their faults.
        lineage_seconds: time spent on reading traces.
    """

    campaign: Campaign
    batches: int | None
    bounds: Bounds = Bounds({CRASH: 1, LOSS: 1})  # noqa: RUF009 - immutable
    likely: Likely = lambda _: ()
    equivalence: FaultEquivalence = field(default_factory=FaultEquivalence)
    starts_again: bool = True
    lineage_seconds: float = 0.0
    _first: Sequence[FaultSet] = ()
    _turns: Iterator[str] | None = None
    _until_pairs: float = math.inf
    _repairs: RepairTurns = field(init=False)
    _reader: RunReader = field(init=False)
    _beside: ReadingProcess | None = None
    _runs: dict[FaultSet, _Ended] = field(default_factory=dict)
    _came: dict[FaultSet, _Came] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kinds, unseen = frozenset(self.bounds.at_most), opaque(self.campaign.scenario)
        self._reader = RunReader(self.batches, kinds, opaque=unseen)
        self._repairs = RepairTurns(self.equivalence.faults, self.bounds)

    def close(self) -> None:
        """End the process that reads runs, if there is one."""
        if self._beside is not None:
            self._beside.close()

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
        self._runs[schedule] = _Ended(seen, self._read_beside(seen))
        return Execution(schedule, seen.outcome)

    def run_to_start(self) -> Execution:
        """The clean run with every node started again at its end."""
        self.campaign.again = True
        seen = self.campaign.run(Schedule(), "again")
        self._runs[CLEAN] = _Ended(seen)
        return self.settled(Execution(CLEAN, seen.outcome))

    def _without_start(self) -> None:
        self.starts_again = self.campaign.again = False

    def settled(self, execution: Execution) -> Execution:
        """The execution with its lineage and all that depends on what was learned before it; to
        be called in the order in which fault sets were put up, whichever run ended first."""
        schedule = execution.schedule
        seen, reading = self._runs.pop(schedule)
        seen, read = self._once_more(seen, self._read(seen, reading))
        in_vain = unanswered(seen)
        never, why = in_vain or impossible(seen, read.came), ""
        if never and not in_vain and self._come_without(seen, never):
            # A matter of timing, then: again, in the order in which it came, and if it does not
            # come, nothing is known.
            for order in self._orders(seen, never) * _TRIES:
                self.campaign.forget(seen)
                seen, never = self.campaign.run(seen.schedule, order=order), ()
                if not seen.not_fired:
                    break
            else:
                seen, why = self._instead(seen)
            read = self._read(seen)
        if len(schedule) <= 1:  # larger ones are many, and seldom asked for
            self._came[schedule] = _what_came(seen, read.came)
        kept = self.campaign.trace_of(seen)
        self.campaign.forget(seen)
        outcome, not_fired, note = seen.outcome, seen.not_fired, seen.note
        if never:
            outcome, not_fired = "good", ()
            cannot = "nobody is left to answer" if in_vain else "its moment cannot come"
            note = f"{', '.join(never)}: {cannot} once the others have fired"
        if why:
            note = f"run as {' + '.join(seen.schedule.ids)}: {why}"
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
            "" if schedule else fingerprint(seen, read),
            round(seen.seconds, 3),
            kept,
            note,
            {**self._details(seen, read), "impossible": list(never)},
        )
        if not schedule and seen.outcome == "good" and read.unread:
            return _blind(execution, read.unread)
        return execution

    def _read_beside(self, seen: RunRecord) -> Reading | None:
        """Have a run read by another process, once the clean one is known."""
        if self._beside is not None:
            with contextlib.suppress(BrokenExecutor):  # then it is read here
                return self._beside.read(seen.events, seen.schedule, seen.outcome)
        return None

    def _read(self, seen: RunRecord, reading: Reading | None = None) -> ReadRun:
        read = None
        if reading is not None:
            with contextlib.suppress(BrokenExecutor):
                read = reading.result()
        if read is None:
            read = self._reader.read(seen.events, seen.schedule, seen.outcome)
        self.lineage_seconds += read.seconds
        return read

    def _once_more(self, seen: RunRecord, read: ReadRun) -> tuple[RunRecord, ReadRun]:
        """Run again what has hit nothing although its moment came."""
        for _ in range(_TRIES):
            moot = unanswered(seen) or not _come(seen, seen.not_fired, read.came)
            if seen.outcome != "not-injected" or moot:
                break
            self.campaign.forget(seen)
            seen = self.campaign.run(seen.schedule)
            read = self._read(seen)
        return seen, read

    def _come_without(self, seen: RunRecord, never: Collection[str]) -> bool:
        """Whether the moments of faults that did not fire come when the others fire alone."""
        others = frozenset(seen.schedule.ids).difference(never)
        if others not in self._came:  # not run yet, or answered from the log
            alone = self.campaign.run(self.schedule(others))
            self._came[others] = _what_came(alone, what_came(read_occurrences(alone.events)))
            self.campaign.forget(alone)
        came, _ = self._came[others]
        return _come(seen, never, came)

    def _instead(self, seen: RunRecord) -> tuple[RunRecord, str]:
        """Instead of a run in which a moment does not come that is up to chance: a run of faults at
        moments that leave the same behind, and why they do. Only if that is good: else it is a
        counterexample by itself."""
        faults = seen.schedule.faults
        missed = {fault.points[0].step for fault in faults if fault.id in seen.not_fired}
        unsent = tuple(_before_sending(fault, missed) for fault in faults)
        candidates = [(unsent, "what was sent had not arrived")] if unsent != faults else []
        up_to_clock = "how often a sender connects is up to the clock"
        candidates += [(sooner, up_to_clock) for sooner in _as_it_connects(seen)]
        for elsewhere, why in candidates:
            instead = self.campaign.run(Schedule(elsewhere))
            if instead.outcome == "good":
                self.campaign.forget(seen)
                return instead, why
            self.campaign.forget(instead)
        return seen, ""

    def _orders(self, seen: RunRecord, never: Collection[str]) -> list[FiringOrder | None]:
        """The order in which moments that did not come have come, and the same with the node that
        comes to them slowed or held back: its request may have been under way, which no order
        says. Nor does one say how often a sender connects."""
        _, order = self._came[frozenset(seen.schedule.ids).difference(never)]
        steps = {f.points[0].step for f in seen.schedule.faults if f.id in never}
        if order is None or any(StepId.parse(step).connects for step in steps):
            return [None]
        node = next((event.node for event in seen.events if event.step in steps), "")
        less_far = (order.slowed(node), order.held_back(node))
        return [order, *(other for other in less_far if other is not None)]

    def _details(self, seen: RunRecord, read: ReadRun) -> dict[str, Any]:
        """What a later look at this run needs, also when it comes from the search's log."""
        faults = [fault for fault in read.faults if fault.id not in self.equivalence.faults]
        found: dict[str, Any] = {
            "faults": Schedule(tuple(faults)).to_dict()["faults"],
            "ordering": seen.judgement.ordering,
            "timings": dict(seen.timings),
        }
        if seen.driver_crashed:
            found["jvm_spared"] = seen.jvms_spared > 0
        if seen.again_changed:
            found["again"] = seen.again_changed
        if not seen.schedule.faults and not self.starts_again:
            found["starts_again"] = False
        if read.unread:
            found["unread"] = list(read.unread)
        found["stand_ins"] = dict(read.stand_ins)
        if read.records is not None:
            found["records"] = read.records.to_dict()
        if read.recovery is not None:
            found["recovery"] = read.recovery.to_dict()
        return found

    def suggest(self) -> list[FaultSet]:
        """What is likely to break something: what was said to be, repairs that fail as what they
        repair has, and the next single faults in turn."""
        if self._turns is None:
            known = self.equivalence.faults
            clean = [fault for id, fault in known.items() if id in self.equivalence.clean]
            self._first = self.likely(clean)
            taking_turns = [fault for fault in clean if fault.bound not in CLASSIC]
            if 2 * len(taking_turns) > len(clean):  # crashes and losses would come last
                taking_turns = clean
                self._until_pairs = len({sort_of(fault) for fault in clean})
            self._turns = iter(in_turn(taking_turns))
        turns = [frozenset({id}) for id in islice(self._turns, _TURNS)]
        self._until_pairs -= _TURNS
        return [*self._first, *self.equivalence.again(), *turns]

    def suggest_pairs(self) -> Iterator[FaultSet]:
        """Pairs that are likely to break something although single faults are left, where these
        are many: as soon as as many of them were suggested as there are sorts of them."""
        if self._until_pairs <= 0:
            yield from self._repairs.in_turn()

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
        self.equivalence.stand_ins |= execution.details.get("stand_ins", {})
        if not execution.schedule:
            self._learn_clean(execution, frozenset(fault.id for fault in faults))
        recovery = execution.details.get("recovery")
        if recovery is not None and len(execution.schedule) == 1:
            (fault_id,) = execution.schedule
            shown = Recovery(**recovery)
            self.equivalence.learn(fault_id, shown)
            self._repairs.learn(fault_id, shown, self.equivalence.clean)

    def _learn_clean(self, execution: Execution, faults: frozenset[str]) -> None:
        if not execution.details.get("starts_again", True):
            self._without_start()
        known = self.equivalence
        known.clean = set(faults)
        stand_ins = {id: known.faults[b] for id, b in known.stand_ins.items() if id in faults}
        records = CleanRecords.from_dict(execution.details["records"])
        clean = CleanRun(execution.lineage, records, faults, stand_ins)
        self._reader = replace(self._reader, clean=clean)
        if self.campaign.reads_beside and self._beside is None:
            self._beside = ReadingProcess(self._reader)


def _before_sending(fault: Fault, again: Collection[str]) -> Fault:
    """A fault that kills a node which has sent what is to be sent again: before it has."""
    at = fault.points[0]
    sent = at.phase == "after" and at.step in again and StepId.parse(at.step).is_push
    return (fault.moved(replace(at, phase="before")) or fault) if fault.kills and sent else fault


def _as_it_connects(seen: RunRecord) -> list[tuple[Fault, ...]]:
    """The faults of a run with the one at a time that a sender connects which did not come at those
    that did: the last first, and none at which it connects for the first time."""
    faults = seen.schedule.faults
    times = Counter(event.step for event in seen.events if event.phase == "before")
    found = []
    for place, fault in enumerate(faults):
        at = fault.points[0]
        if fault.id in seen.not_fired and StepId.parse(at.step).connects:
            sooner = range(min(times[at.step], at.occurrence - 1), 1, -1)
            moved = (fault.moved(replace(at, occurrence=time)) for time in sooner)
            found += [(*faults[:place], one, *faults[place + 1 :]) for one in moved if one]
    return found


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
