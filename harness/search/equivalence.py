"""Which fault sets of a real run are the same, so that only one of them needs to be run.

A crash leaves nothing of a node but what it has written and sent: two crashes of a node between
which it has only read, and asked nobody, are the same, and the earlier is moved to the later.

What can follow a fault is decided by what was durable when it fired and by what the system did
then. Two faults of the same batch position with the same durable facts before and the same steps
after, both read from their own runs, are *alike*: a second fault on the way of recovery is tried
behind one of them only. A second fault in a later batch is tried behind one of those faults after
which that batch began with the same. And a second fault of the same server is tried behind one of
those faults after which it came to the same step in the same *state*: with the same on its disk,
after the same steps of its life, and with all nodes doing the same from there on.

What was folded away is kept, so that a sample of it can be run as a check.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Any

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Crash, PowerCut
from bettong.harness.faults.point import SERVERS, Point, PointPhase
from bettong.harness.faults.step_ids import StepId, counted_from, counted_on
from bettong.harness.search.leaves import Batches
from bettong.harness.search.occurrences import (
    Occurrence,
    Reading,
    leaving,
)
from bettong.harness.search.set_digest import SetDigest
from bettong.lineage.faults import STORAGE, FaultSet

_NUMBER = re.compile(r"\d+")

_State = tuple[str, PointPhase, str]
"""A state of a server, with the moment of the step to which it came in it."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a run with a single fault showed.

    Attributes:
        batch: the batch in which the fault fired, or None.
        epoch: the epoch that was open then.
        before, taken: how often each step had been begun when it fired, and in the end.
        signature: equal for faults that are alike.
        settled: equal for faults of one batch and place after which the next one began with the
            same: the same durable facts of the batch, the same incarnations; empty when none began.
        states: in which state the server that the fault has hit came to each later moment of its.
    """

    batch: int | None
    epoch: int
    before: Mapping[str, int]
    taken: Mapping[str, int]
    signature: str
    settled: str
    states: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def recovery_of(
    fault: Fault, reading: Reading, batch_at: Batches, held: Mapping[int, str]
) -> Recovery | None:
    """What followed a fault in a run that had no other; None when it did not fire. ``held``:
    digests of what the disks of servers hold, by the place of the trace."""
    fired_at = next((s.position for s in reading.injected if s.fault.id == fault.id), None)
    if fired_at is None:
        return None
    faulted_step = fault.points[0].step
    batch = batch_at(faulted_step)
    earlier = [o for o in reading.occurrences if o.begun <= fired_at]
    later = [o for o in reading.occurrences if o.begun > fired_at]
    epoch = max((o.id.epoch for o in earlier if o.id.epoch is not None), default=0)

    def here(o: Occurrence) -> bool:
        found = batch_at(o.step)
        if o.id.message and not _of_a_batch(o):  # of senders' messages a recovery knows nothing
            return found == batch and StepId.parse(faulted_step).message is not None
        return found is None or found == batch

    durable = _records(o for o in earlier if o.over_at(fired_at) and here(o))
    durable = [counted_from(step, batch, epoch) for step in durable]
    after = [
        f"{counted_from(o.record, batch, epoch)} {'failed' if o.failed or o.ended is None else ''}"
        for o in later
        if here(o)
    ]
    signature = _digest(fault.kind, fault.place, *sorted(durable), "", *sorted(after))
    before, taken = (Counter(o.step for o in some) for some in (earlier, reading.occurrences))
    settled = "" if batch is None else _settled(fault, reading, batch, fired_at, here)
    states = dict(_states(fault, reading, fired_at, held))
    return Recovery(batch, epoch, dict(before), dict(taken), signature, settled, states)


def _states(
    fault: Fault, reading: Reading, fired_at: int, held: Mapping[int, str]
) -> Iterator[tuple[str, str]]:
    """In which state the server that a fault has hit came to each moment after it. What it
    remembers follows from what its disk held when this life of it began, and from what it was asked
    since: a request that finds its work done leaves another memory than one that does it."""
    if not held or fault.nodes not in {(server,) for server in SERVERS}:
        return
    done = sorted(
        (position, what, o)
        for o in reading.occurrences
        for position, what in ((o.begun, "begun"), (o.ended, "ended"), (o.failed, "failed"))
        if position is not None
    )
    to_come: dict[int, str] = {}
    rest = _Tally()
    for position, what, o in reversed(done):
        to_come[position] = str(rest)
        rest.take_in(f"{o.node}.{o.incarnation} {what} {o.record}")
    lives: dict[int, _Tally] = {}
    found: dict[int, str] = {}
    for position, what, o in done:
        if (o.node,) != fault.nodes:
            continue
        life = lives.setdefault(o.incarnation, _Tally())
        begun_on = found.setdefault(o.incarnation, held.get(position, ""))
        if position > fired_at and position in held and what != "failed":
            phase: PointPhase = "before" if what == "begun" else "after"
            known = held[position], str(o.incarnation), begun_on, str(life), to_come[position]
            moment = str(Point(o.step, phase, o.number))
            yield moment, _digest(fault.kind, *fault.nodes, *known)
        life.take_in(f"{what} {o.record}")


@dataclass(slots=True)
class _Tally:
    """How often each of some texts was taken in, as a digest."""

    _often: Counter[str] = field(default_factory=Counter)
    _seen: SetDigest = field(default_factory=SetDigest)

    def __str__(self) -> str:
        return str(self._seen)

    def take_in(self, text: str) -> None:
        self._often[text] += 1
        self._seen.take_in([f"{text} {self._often[text]}"])


def _settled(
    fault: Fault,
    reading: Reading,
    batch: int,
    fired_at: int,
    here: Callable[[Occurrence], bool],
) -> str:
    """With what the next batch began after a fault; empty when it did not begin. What nodes that
    live on remember of it no disk tells: that is alike at most where it has hit the same place. A
    node whose own disk has refused something remembers what that was."""
    begun = next(
        (
            o.begun
            for o in reading.occurrences
            if o.begun > fired_at and o.step.startswith(f"batch={batch + 1}/")
        ),
        None,
    )
    if begun is None:
        return ""
    durable = _records(o for o in reading.occurrences if o.over_at(begun) and here(o))
    lives = {r.node: r.incarnation for r in reading.restarts if r.position < begun}
    alive = (f"{node}.{n}" for node, n in sorted(lives.items()))
    placed = fault.kills or fault.bound == STORAGE
    hit = [fault.place] if placed else [*fault.nodes, *fault.links]
    return _digest(fault.kind, *hit, *sorted(durable), "", *alive)


def _of_a_batch(o: Occurrence) -> bool:
    """Whether it was done with a message because a batch has asked for it."""
    return any(cause.id.batch is not None for cause in o.causes)


def _records(steps: Iterable[Occurrence]) -> list[str]:
    """What outlives the processes that took these steps, each as often as it was written: also what
    nothing names yet, for the disk has it."""
    written: list[str] = []
    writing: set[str] = set()
    lasting: set[str] = set()
    for o in steps:
        records = [f"{o.record} {_unnumbered(*record)}" for record in o.records.elements()]
        if records:
            written += records
            writing.add(o.record)
        elif o.ended is not None and _lasts(o.id):
            lasting.add(o.record)
    return [*written, *(lasting - writing)]


def _unnumbered(operation: str, file: str) -> str:
    """An operation and its file without the numbers, which are others in each batch and epoch."""
    return f"{operation} {_NUMBER.sub('', file)}"


def _lasts(step: StepId) -> bool:
    """Whether a step leaves what outlives its process, or opens an epoch that fences others."""
    return step.is_durable or step.begins_epoch


def _digest(*reported: str) -> str:
    return blake2b("\n".join(reported).encode(), digest_size=12).hexdigest()


def same_crashes(reading: Reading) -> dict[str, Fault]:
    """Crashes, each with the later one that is the same: all that the node did between the two
    was to read, so that nothing is left of it."""
    events: dict[tuple[str, int], list[tuple[int, bool, Occurrence]]] = {}
    for o in reading.occurrences:
        of_node = events.setdefault((o.node, o.incarnation), [])
        of_node.append((o.begun, True, o))
        if o.ended is not None:
            of_node.append((o.ended, False, o))
    effects = {
        (cause.step, cause.number)
        for o in reading.occurrences
        if o.id.is_durable
        for cause in o.causes
        if cause.node != o.node
    }
    found: dict[str, Fault] = {}
    for reported in events.values():
        reported.sort(key=lambda event: event[0])
        found |= _same_of_node(reported, effects)
    return found


def _same_of_node(
    reported: Sequence[tuple[int, bool, Occurrence]], effects: AbstractSet[tuple[str, int]]
) -> dict[str, Fault]:
    found: dict[str, Fault] = {}
    later: Occurrence | None = None  # a crash just before it is the same as one here
    writing = 0  # how many steps that change something go on here
    for position, begins, o in reversed(reported):
        reads = _only_reads(o) and (o.step, o.number) not in effects
        if not begins and leaving(o.later_calls):
            later = None
        if begins and not reads:
            writing -= o.ended is not None
            later = None if writing else o
            continue
        if later is not None and not _heard(later, position) and not o.id.is_push:
            here = Point(o.step, "before" if begins else "after", o.number)
            stands = Point(later.step, "before", later.number)
            found[Crash(o.node, here).id] = Crash(o.node, stands)
        elif begins and not writing:
            later = o
        if not begins and not reads:
            writing += 1
            later = None
    return found


def _only_reads(o: Occurrence) -> bool:
    """Whether a step leaves nothing but what its process knows: neither on its disk, nor with a
    server, which may remember whom it has answered."""
    return o.id.is_read and o.link is None and not leaving(o.calls)


def _heard(occurrence: Occurrence, since: int) -> bool:
    """Whether a step was caused by what another node did since a place of the trace."""
    return any(
        c.node != occurrence.node and (c.ended or c.begun) > since for c in occurrence.causes
    )


@dataclass(slots=True)
class FaultEquivalence:
    """The classes of faults that are alike, as far as runs have shown them.

    Attributes:
        faults: every fault known, by id.
        stand_ins: crashes, each with the one that stands for it.
        clean: faults of the clean run; what stands for these is known from it.
        folded: fault sets that were not run, each with the one that was run in its stead.
    """

    faults: dict[str, Fault] = field(default_factory=dict)
    stand_ins: dict[str, str] = field(default_factory=dict)
    clean: set[str] = field(default_factory=set)
    folded: dict[FaultSet, FaultSet] = field(default_factory=dict)
    _recoveries: dict[str, Recovery] = field(default_factory=dict)
    _first: dict[str, str] = field(default_factory=dict)
    _settled: dict[str, str] = field(default_factory=dict)
    _members: dict[str, list[str]] = field(default_factory=dict)
    _in_state: dict[_State, list[tuple[str, int]]] = field(default_factory=dict)

    def learn(self, fault: str, recovery: Recovery) -> None:
        """Take in what the run of a single fault showed."""
        self._recoveries[fault] = recovery
        self._first.setdefault(recovery.signature, fault)
        self._settled.setdefault(recovery.settled, fault)
        for same in filter(None, (recovery.signature, recovery.settled)):
            self._members.setdefault(same, []).append(fault)
        for moment, state in recovery.states.items():
            at = Point.parse(moment)
            came = self._in_state.setdefault((state, at.phase, at.step), [])
            came.append((fault, at.occurrence))

    def classes(self) -> int:
        """How many classes of single faults there are so far."""
        return len(self._first)

    def again(self) -> list[FaultSet]:
        """Each fault with the same one at the next time that its moment comes: a repair that fails
        as what it repairs has."""
        found = []
        for id, recovery in self._recoveries.items():
            fault = self.faults[id]
            point = fault.points[0]
            next_time = recovery.before.get(point.step, 0) + 1
            moved = fault.moved(replace(point, occurrence=next_time))
            shown = next_time <= recovery.taken.get(point.step, 0)
            if shown and moved is not None and moved.id in self.faults:
                found.append(frozenset({id, self.stand_ins.get(moved.id, moved.id)}))
        return found

    def canonical(self, schedule: FaultSet) -> FaultSet:
        """The fault set to run in the stead of this one; itself when it stands for itself."""
        run = self._run_for(schedule)
        if run != schedule:
            self.folded[schedule] = run
        return run

    def alike(self, schedule: FaultSet) -> list[FaultSet]:
        """Known fault sets in whose stead this one is run: those that hold a fault of the same
        class as one of its own, with the other fault at the same place of that one's recovery."""
        found = []
        for first in sorted(schedule) if len(schedule) == 2 else ():
            (second,) = schedule - {first}
            place = self._place(first, second)
            if place is None:
                continue
            again, relative = place
            for id in self._same_class(first):
                other = self._recoveries[id]
                step = counted_on(relative, other.batch, other.epoch)
                moved = self._shown(second, step, again, other)
                pair = frozenset({id, moved}) if moved is not None else schedule
                found.append(pair)
            found += self._in_the_same_state(first, second)
        others = [pair for pair in dict.fromkeys(found) if pair != schedule]
        alike = [pair for pair in others if self._run_for(pair) == schedule]
        self.folded |= dict.fromkeys(alike, schedule)
        return alike

    def _same_class(self, fault: str) -> list[str]:
        """The others of a fault's classes that bounds count as it."""
        recovery, bound = self._recoveries[fault], self.faults[fault].bound
        classes = (recovery.signature, recovery.settled)
        members = dict.fromkeys(id for c in classes for id in self._members.get(c, ()))
        return [id for id in members if id != fault and self.faults[id].bound == bound]

    def _run_for(self, schedule: FaultSet) -> FaultSet:
        schedule = self._without_needless(schedule)
        for first in sorted(schedule) if len(schedule) == 2 else ():
            (second,) = schedule - {first}
            moved = self._moved(first, second)
            if moved is not None and moved != schedule:
                return moved
            same = self._in_the_same_state(first, second)
            if same:
                return same[0]
        return schedule

    def _in_the_same_state(self, first: str, second: str) -> list[FaultSet]:
        """Both faults, where the second one hits the same server, with that moved to each run in
        which the server came to its step in the same state; the earliest that was run first."""
        recovery, fault = self._recoveries.get(first), self.faults.get(second)
        if recovery is None or fault is None or fault.nodes != self.faults[first].nodes:
            return []
        if not fault.kills and not self.faults[first].kills:
            return []  # it remembers how the first one has hit it
        at = fault.points[0]
        state = recovery.states.get(str(at), "")
        found = []
        for other, number in self._in_state.get((state, at.phase, at.step), ()):
            moved = fault.moved(replace(at, occurrence=number))
            if moved is not None and moved.id in self.faults:
                found.append(frozenset({other, self.stand_ins.get(moved.id, moved.id)}))
        return found

    def _without_needless(self, schedule: FaultSet) -> FaultSet:
        """Without crashes at the moment at which the power of the same node is cut: that kills it
        too."""
        known = [self.faults[id] for id in schedule if id in self.faults]
        cuts = {(f.node, f.at) for f in known if isinstance(f, PowerCut) and f.sync == 0}
        crashes = (f for f in known if isinstance(f, Crash))
        return schedule - {f.id for f in crashes if (f.node, f.at) in cuts}

    def _moved(self, first: str, second: str) -> FaultSet | None:
        """Both faults, the second on the way of the first one's recovery, moved to the run that
        stands for the first one's class."""
        place = self._place(first, second)
        if place is None:
            return None
        again, relative = place
        recovery = self._recoveries[first]
        chosen = self._first[recovery.signature]
        own, later = recovery.batch, StepId.parse(self.faults[second].points[0].step).batch
        if recovery.settled and own is not None and later is not None and later > own:
            chosen = self._settled[recovery.settled]
        target = self._recoveries[chosen]
        step = counted_on(relative, target.batch, target.epoch)
        moved = self._shown(second, step, again, target)
        return None if moved is None else frozenset({chosen, self.stand_ins.get(moved, moved)})

    def _place(self, first: str, second: str) -> tuple[int, str] | None:
        """Where in the recovery from the first fault the second one fires: at which time after it
        that its step is begun, and that step, counted from the first one's batch and epoch. None
        where it fires before, or too little is known."""
        recovery, fault = self._recoveries.get(first), self.faults.get(second)
        if recovery is None or fault is None:
            return None
        point = fault.points[0]
        again = point.occurrence - recovery.before.get(point.step, 0)
        if again < 1:
            return None
        return again, counted_from(point.step, recovery.batch, recovery.epoch)

    def _shown(self, fault: str, step: str, again: int, by: Recovery) -> str | None:
        """A fault moved to where another run begins a step for the ``again``-th time after its own
        fault; None where that run does not, or such a fault is not known."""
        number = by.before.get(step, 0) + again
        if number > by.taken.get(step, 0):
            return None
        known = self.faults[fault]
        moved = known.moved(Point(step, known.points[0].phase, number))
        return moved.id if moved is not None and moved.id in self.faults else None
