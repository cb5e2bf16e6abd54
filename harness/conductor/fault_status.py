"""The faults of a run's schedule, and how far each of them has come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import Point
from bettong.harness.faults.schedule import Schedule
from bettong.lineage.trace import TraceEvent

_MOST_TRIES = 12
"""So often one that recurs hits: more than those try who give up, and who never does goes on."""


@dataclass(slots=True)
class Planned:
    """A fault of the schedule and how far it has come.

    Attributes:
        since: when it came into force, in seconds of a monotonic clock.
        met: how many requests have met it.
        node: the node that took the step at which it began; empty while it has not.
        times: how often it has hit again, if it recurs.
        is_met: the moment has come from which on it matters that nobody goes on without it.
    """

    fault: Fault
    evidence: list[str] = field(default_factory=list)
    in_force: bool = False
    done: bool = False
    since: float = 0.0
    met: int = 0
    node: str = ""
    times: int = 0
    is_met: bool = False

    @property
    def ends_when_still(self) -> bool:
        """Whether it is to end as soon as nobody goes on."""
        met = self.is_met or self.fault.still_from is None
        return self.in_force and self.fault.until_still and met


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault that has been in force.

    Attributes:
        node: the node that took the step at which it began.
    """

    fault: Fault
    node: str


class PlannedFaults:
    """All of them, found by the moments at which they begin and end."""

    def __init__(self, schedule: Schedule) -> None:
        self._all = [Planned(fault) for fault in schedule.faults]
        self._starts: dict[Point, list[Planned]] = {}
        self._ends: dict[Point, list[Planned]] = {}
        self._met: dict[Point, list[Planned]] = {}
        self._recurring: list[tuple[Planned, tuple[str, int]]] = []
        for planned in self._all:
            start, *end = planned.fault.points
            self._starts.setdefault(start, []).append(planned)
            for until in end:
                self._ends.setdefault(until, []).append(planned)
            if planned.fault.still_from is not None:
                self._met.setdefault(planned.fault.still_from, []).append(planned)

    @property
    def reports(self) -> tuple[str, ...]:
        """What the steps' ids begin with by which processes say what a fault has made of them."""
        return tuple({p.fault.reports for p in self._all if p.fault.reports})

    def __iter__(self) -> Iterator[Planned]:
        return iter(self._all)

    @property
    def evidence(self) -> dict[str, str]:
        """For each fault that fired, by id, the proof that it did."""
        return {p.fault.id: "; ".join(p.evidence) for p in self._all if p.done}

    @property
    def not_fired(self) -> tuple[str, ...]:
        """Ids of those that were not carried out from beginning to end."""
        return tuple(p.fault.id for p in self._all if not p.done)

    @property
    def injected(self) -> list[Injected]:
        """Those that have been in force, or are."""
        return [Injected(p.fault, p.node) for p in self._all if p.in_force or p.done or p.evidence]

    @property
    def held(self) -> frozenset[str]:
        """Nodes of which a thread stands still until nobody else goes on."""
        threads = (p for p in self._all if p.fault.holds_thread and p.ends_when_still)
        return frozenset(node for planned in threads for node in planned.fault.nodes)

    @property
    def unended(self) -> tuple[str, ...]:
        """Ids of those in force that are to end at a moment that has not come."""
        return tuple(p.fault.id for p in self._all if p.in_force and len(p.fault.points) > 1)

    def crossed(self, event: TraceEvent) -> list[Planned]:
        """Somebody begins a request: the faults that end before it, having lost what they are
        to."""
        ended = []
        for planned in self._all:
            if not (planned.in_force and planned.fault.crosses(event.link)):
                continue
            if planned.fault.worn_off(planned.met):
                ended.append(planned)
            else:
                planned.met += 1
        return ended

    def due(self, event: TraceEvent, occurrence: int) -> tuple[list[Planned], list[Planned]]:
        """Those that end at this moment, and those that begin."""
        known = self._starts or self._ends or self._met or self._recurring
        if event.phase == "failed" or not known:
            return [], []
        point = Point(event.step, event.phase, occurrence)
        for planned in self._met.pop(point, []):
            planned.is_met = True
        process, starts = (event.node, event.incarnation), self._starts.pop(point, [])
        again = [
            planned
            for planned, hit in self._recurring
            if hit == process and planned.fault.recurs_at(event.step, event.phase)
            if planned.times < _MOST_TRIES - 1
        ]
        for planned in again:
            planned.times += 1
        self._recurring += [(planned, process) for planned in starts if planned.fault.recurs]
        return self._ends.pop(point, []), [*starts, *again]
