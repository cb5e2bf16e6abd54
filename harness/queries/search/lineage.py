"""Why a run of a sink went well: the lineage of what became visible.

A batch is visible and recorded because at every moment on the way the driver lived, no attempt
failed and every request was answered, save where the run's own faults fired. At each of these
moments something could have gone wrong: that is what the search's hypotheses are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from typing import Any

from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.alike import shape
from bettong.harness.queries.faults.crash_points import (
    CrashPoint,
    lines_of_changes,
    looks,
    read_back,
)
from bettong.harness.queries.faults.driver_crash import DriverCrash
from bettong.harness.queries.faults.failed_step import FailedEachTime, FailedTask
from bettong.harness.queries.faults.half_written import half_written
from bettong.harness.queries.faults.kinds import (
    fails_attempt,
    faults_at,
    refused,
    refused_once,
    refuses,
    zombie,
)
from bettong.harness.queries.faults.operations import CORES, LATER, LONGER, OPERATIONAL_EVENTS
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.wake import WakeAtStep
from bettong.harness.queries.faults.wire import (
    WirePoint,
    endpoints_asked,
    not_placeable,
    placeable,
    wire_points,
)
from bettong.harness.queries.faults.zombie import Amid
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.across import Across
from bettong.harness.queries.search.after_restart import second_on_wire
from bettong.harness.queries.search.amid_files import (
    BEGINS,
    REMOVES,
    SHOWS,
    Operation,
    amid_files,
    amid_replay,
    begun,
)
from bettong.harness.queries.search.by_time import goes_by_time
from bettong.harness.queries.search.equivalence import CandidateFault, FaultEquivalence
from bettong.harness.queries.search.later_batches import batches_of_more
from bettong.harness.queries.search.moments import (
    begun_with,
    fired_at,
    follows,
    in_next_batch,
    one_of_many,
)
from bettong.harness.queries.sink.file_steps import CHANGED, LOCK, STATEMENTS, WRITE
from bettong.lineage.faults import CLEAN, FaultSet
from bettong.lineage.graph import Lineage

_MOST_WRITTEN = 6
_APART = 6
"""So many runs take about as long as a driver takes to start."""


class Why:
    """Reads lineage out of runs.

    Attributes:
        window: faults fire in the first so many batches.
        together: so many of them at most.
        batches: of the source.
        equivalence: what runs have shown of which faults are equal.
        wire: the requests of the clean runs that may be hit.
        across: faults in which a driver wakes where its successor turns from one place to another.
        endpoints: those that the clean run asks, each with the first batch that does, of the
            window's last one and the tail.
        unasked: endpoints of which the query asks nothing in a clean run.
        not_read: endpoints with which something was said that could not be read, each with why.
        not_placeable: the requests of the clean runs that no fault can be placed at.
        in_tasks: whether the sink's tasks leave anything behind themselves.
        tail: batches after the window in which faults fire too: those that close what is open, and
            those that do with files or servers what no earlier batch does.
        head: batches before the window's last that do what that one does not: drivers stand still
            in them too, and what they write can be left by half.
        seen: whether what the query keeps is seen; if not, nothing is known of which faults leave
            the same behind, and whether tasks leave anything.
        elsewhere: whether what the query's code changes where it is not seen to be is a step.
        by_time: whether what is put out may hang on the time at which it is.
        known: the fault sets that some lineage has put up; a search tries all of them, save those
            that contain one that breaks the query.
        times: when each fault fires, in the order of the run in which it could.
    """

    def __init__(self, window: int, batches: int, together: int) -> None:
        self.window = window
        self.together = together
        self.batches = batches
        self.equivalence = FaultEquivalence()
        self.seen = True
        self.elsewhere = False
        self.by_time = False
        self.wire: list[WirePoint] = []
        self.across: list[QueryFault] = []
        self.endpoints: dict[str, int] = {}
        self.unasked: list[str] = []
        self.not_read: list[str] = []
        self.not_placeable: list[str] = []
        self.in_tasks = False
        self.tail: frozenset[int] = frozenset()
        self.head: frozenset[int] = frozenset()
        self.times: dict[str, int] = {}
        self.known: set[FaultSet] = set()
        self._lost_in = window - 1
        self._alone: list[CandidateFault] = []
        self._lines: dict[int, list[Point]] = {}
        self._looks: dict[int, list[Point]] = {}
        self._lists: dict[int, list[Point]] = {}
        self._reads: dict[int, list[Point]] = {}
        self._many: set[int] = set()
        self._clean_runs = (QueryRun(), QueryRun())
        self._unreported: list[FaultSet] = []

    def lineage(self, faults: Sequence[QueryFault], run: QueryRun) -> Lineage:
        """The lineage of a run that went well although these faults fired."""
        schedule: FaultSet = frozenset(fault.id for fault in faults)
        lineage = Lineage()
        goals = sorted({*range(max(self.window, self.batches)), *self.tail})
        way: dict[int, list[str]] = {n: [] for n in goals}
        for fault in faults:
            fired = lineage.leaf(f"{fault.id} fired", [fault.for_search(0)], lost=True)
            for leaves in way.values():
                leaves.append(fired)
        candidates: list[CandidateFault] = []
        if not faults:
            candidates += self._clean(run)
        elif len(faults) < self.together:
            candidates += self._second(faults, run)
        kept = self.equivalence.of(schedule, candidates) if self.seen else candidates
        put_up = [schedule | {candidate.fault.id} for candidate in kept]
        self.known.update(put_up)
        self._unreported += put_up
        if not faults:
            self._alone = kept
        possible = (*self._earlier(faults, run), *kept)
        for (batch, _), group in groupby(possible, key=lambda t: (t.batch, t.time)):
            together = [t.fault.for_search(t.time) for t in group]
            self.times.update({x.id: self.times.get(x.id, x.time) for x in together})
            leaf = lineage.leaf("neither " + " nor ".join(x.id for x in together), together)
            for later in way:
                if later >= batch:
                    way[later].append(leaf)
        # Also of one that was never recorded: who rightly stands still has come to no harm in what
        # follows, and where the query was started again an earlier one may have taken its rows.
        for batch in sorted(way):
            goal = lineage.fact(f"batch {batch} is visible and recorded", goal=True)
            lineage.firing(goal, way[batch], "write")
        return lineage

    def likely(self) -> Iterator[FaultSet]:
        """All single faults: first those of the kinds that most sinks fail of, the ones that break
        the most before others, with a replay on another day behind other replays where that may
        matter, then crashes amid what the sink's own code does. Of the rest those after which a
        driver is started anew are kept apart, so that it starts while others are run, and silent
        connections come last: a server that stands still may have shown by then that they are
        waited for in vain, and where both are waited for at once no lane does anything."""
        latest_first = sorted(self._alone, key=lambda x: (-x.batch, -x.time))
        again = [x for x in latest_first if not self._is_hit(x.batch)]
        latest_first = [x for x in latest_first if self._is_hit(x.batch)]
        ranked = [(rank, x) for x in latest_first if (rank := self._rank(x.fault)) is not None]
        likely = [x for _, x in sorted(ranked, key=lambda pair: pair[0])]
        rest = [x for x in latest_first if self._rank(x.fault) is None]
        anew = [x for x in rest if x.fault.loses_executor or x.fault.cores]
        amid = [x for x in rest if x.fault.crashes and _in_own_code(x.fault)]
        silent = [x for x in rest if x.fault.unheard]
        apart = (*anew, *amid, *silent)
        others = [*amid, *(x for x in rest if x not in apart)]
        for place, candidate in enumerate(anew, 1):
            others.insert(min(place * _APART, len(others)), candidate)
        for candidate in (*likely, *others, *again, *silent):
            yield frozenset({candidate.fault.id})

    def _rank(self, fault: QueryFault) -> tuple[int, bool] | None:
        """Its rank, and whether it stands behind the others of this rank."""
        if fault == LATER and self.by_time:
            return 0, True
        return None if fault.rank is None else (fault.rank, False)

    def last_amid(self, batch: int) -> Iterator[QueryFault]:
        """The last crash amid what the query's own code does with files in a batch, and the last
        one amid what it asks of servers."""
        alone = (x for x in self._alone if x.batch == batch and x.fault.crashes)
        own = sorted((x for x in alone if _in_own_code(x.fault)), key=lambda x: x.time)
        last = {x.fault.on_wire: x.fault for x in own if x.fault.mechanism == "replay"}
        yield from last.values()

    def _clean(self, run: QueryRun) -> Iterator[CandidateFault]:
        """What can go wrong in a run without faults."""
        time, many = 0, one_of_many(run.crash_points)
        for time, crash_point in enumerate(run.crash_points):
            batch = self._batch_of(crash_point)
            if batch is None or time in many:
                continue
            if self._is_hit(batch):
                for fault in self._faults_at(crash_point):
                    left = self._left(fault, crash_point, run)
                    if not fault.loses_executor or self._loses(crash_point):
                        yield CandidateFault(fault, left, batch, time)
            elif crash_point.point == Point(f"batch={batch}/commits"):
                # Its rows may be of another kind than those before: it is done again at least.
                crash = DriverCrash(crash_point.point)
                yield CandidateFault(crash, self._left(crash, crash_point, run), batch, time)
        last = self.window - 1
        for point in self.wire:
            time += 1
            for on_wire, left in point.faults:
                yield CandidateFault(on_wire, left, point.batch, time)
        for besides in self._besides():
            time += 1
            yield CandidateFault(besides, besides.id, last, time)

    def _is_hit(self, batch: int) -> bool:
        """Whether faults of all kinds fire in a batch; one that does nothing new is done again."""
        return batch < self.window or batch in self.tail

    def _batch_of(self, crash_point: CrashPoint) -> int | None:
        """The batch in which a moment is; None for those at which nothing fires."""
        return crash_point.batch

    def _faults_at(self, crash_point: CrashPoint) -> Iterator[QueryFault]:
        """What can go wrong at a moment."""
        return faults_at(crash_point)

    def _loses(self, crash_point: CrashPoint) -> bool:
        """Whether executors are lost there: in the first task of the window's last batch, or of the
        first of the tail if it is only there that tasks leave anything. Each time Spark has to be
        started anew."""
        return (
            self.in_tasks
            and crash_point.batch == self._lost_in
            and "/p=0/a=0/" in crash_point.point.step
        )

    def _besides(self) -> Iterator[QueryFault]:
        """What comes at no single crash point: operational events, zombies, refused connections."""
        yield from self._events()
        if self.in_tasks:
            yield CORES
        once = (self.window - 1, *sorted(self.head))
        moments = [
            step for batch in once for step in (*self._in_tasks(batch), f"batch={batch}/commits")
        ]
        held = (step for batch in self._held_in for step in self._held_at(batch))
        for step in (*moments, *held):
            start = next((m.point for m in self._at(step)), None)
            if start is not None:
                yield zombie(start, self.batches - 1)
        for batch in self._held_in:
            for point in (*self._begun_past_python(batch), *self._looks.get(batch, ())):
                yield zombie(point, self.batches - 1)
        for woken in (self._amid_replay, self._amid):
            yield from self._of_first(woken)
        yield from self.across
        for batch in self._held_in:
            for write in self._writes(batch):
                yield from half_written(write)
        for batch in self._in_full:
            yield from (FailedTask(point) for point in self._first_attempts(batch))
            yield from map(FailedEachTime, self._last_own_call(batch))
        for endpoint, batch in self.endpoints.items():
            yield refused(endpoint, batch)
            yield refused_once(endpoint, batch)

    def _of_first(self, woken: Callable[[int], list[QueryFault]]) -> list[QueryFault]:
        """Of the first batch of those hit in full in which a driver can wake so."""
        return next(filter(None, map(woken, self._in_full)), [])

    def _last_own_call(self, batch: int) -> Iterator[Point]:
        """The last call of the sink's own in a batch that can fail: such as a commit."""
        of_batch = (m.point for m in reversed(self.clean_crash_points) if m.batch == batch)
        yield from islice((point for point in of_batch if refuses(point)), 1)

    def _first_attempts(self, batch: int) -> Iterator[Point]:
        """The end of the first attempt at each stage's first task: what the sink's own code has
        asked for fails there as a whole, once Spark has tried all attempts."""
        for crash_point in self.clean_crash_points:
            step = StepId.parse(crash_point.point.step)
            first = crash_point.batch == batch and step.task == (batch, 0, 0)
            if first and step.is_task and crash_point.point.phase == "after":
                yield crash_point.point

    def _in_tasks(self, batch: int) -> Iterator[str]:
        """Where a driver stands still in the midst of a batch's tasks: half way in its rows, or,
        where its source does not tell of that, at the first task of its last stage. What the batch
        rests on, such as what was there before, is read by then."""
        middle = f"batch={batch}/p=0/a=0/source.middle"
        if next(self._at(middle), None) is not None:
            yield middle
            return
        steps = [StepId.parse(m.point.step) for m in self.clean_crash_points if m.batch == batch]
        first = [
            step
            for step in steps
            if step.is_task and not step.is_concurrent and step.task == (batch, 0, 0)
        ]
        if first:
            yield str(max(first, key=lambda step: step.stage or 0))

    def _held_at(self, batch: int) -> Iterable[str]:
        """Where a driver stands still within what the sink's own code does, until its successor has
        gone on: at the renames and links by which what was written becomes visible, for a late one
        may take the other's work away; and the first and the last time that it begins to write, and
        that it changes a database in one statement, and the first time that it removes a file, and
        that it locks one, for what it has seen before may no longer hold."""
        files = list(begun(self._files_of(batch)))
        begins = [step for step, kind, _ in files if kind in BEGINS]
        alone = [step for step, kind, _ in files if kind in STATEMENTS]
        shows = (step for step, kind, _ in files if kind in SHOWS)
        removes = [step for step, kind, _ in files if kind in REMOVES]
        locks = [step for step, kind, _ in files if kind == LOCK]
        first = (*begins[:1], *alone[:1], *removes[:1], *locks[:1])
        return dict.fromkeys((*first, *shows, *begins[-1:], *alone[-1:]))

    def _writes(self, batch: int) -> Iterable[Point]:
        """The first and the last write to each kind of file of a batch: the first so many kinds."""
        by_kind: dict[str, list[str]] = {}
        for step, kind, on in self._files_of(batch):
            if kind == WRITE:
                by_kind.setdefault(on, []).append(step)
        kinds = islice(by_kind.values(), _MOST_WRITTEN)
        return dict.fromkeys(Point(step) for steps in kinds for step in (steps[0], steps[-1]))

    def _begun_past_python(self, batch: int) -> Iterable[Point]:
        """Where a driver stands still before it changes what no operation tells of beforehand: the
        first and the last time."""
        lines = self._lines.get(batch, [])
        return dict.fromkeys((*lines[:1], *lines[-1:]))

    def _amid(self, batch: int) -> list[QueryFault]:
        """A driver that stood still wakes amid its successor's work on the next batch's files."""
        lists, reads = (
            [point.step for point in at.get(batch, ())] for at in (self._lists, self._reads)
        )
        pairs = amid_files(self._seen_ahead(batch), self._seen_ahead(batch + 1), lists, reads)
        return [Amid(Point(start), WakeAtStep(Point(end))) for start, end in pairs]

    def _amid_replay(self, batch: int) -> list[QueryFault]:
        """The same amid its successor's replay of the batch."""
        pairs = amid_replay(self._seen_ahead(batch))
        return [Amid(Point(start), WakeAtStep(Point(end))) for start, end in pairs]

    def _seen_ahead(self, batch: int) -> list[Operation]:
        """The file operations of a batch that are known before they are done."""
        return [x for x in begun(self._files_of(batch)) if x[1] not in (CHANGED, LOCK)]

    def _files_of(self, batch: int) -> list[Operation]:
        """The file operations of a batch."""
        found = (
            m
            for place, m in enumerate(self.clean_crash_points)
            if m.batch == batch and place not in self._many
        )
        return [
            (m.point.step, file[1], m.on)
            for m in found
            if (file := StepId.parse(m.point.step).file)
        ]

    def _events(self) -> Iterator[QueryFault]:
        """Operational events."""
        yield from OPERATIONAL_EVENTS

    def _second(self, faults: Sequence[QueryFault], run: QueryRun) -> Iterator[CandidateFault]:
        """What could go wrong while the faults so far, in the last batch of the window, are being
        recovered from: nothing more where the query is started again by itself anyway. Of the
        recovery's tasks the first one stands for all."""
        batch = self.window - 1
        if LONGER in faults:
            yield from self._in_more_batches(run)
            return
        if batch not in map(self._batch_of_fault, faults):
            yield from self._once_more(faults, run)
            return
        ids = frozenset(fault.id for fault in faults)
        for time, crash_point in enumerate(run.crash_points):
            aside = "/p=" in crash_point.point.step and "/p=0/" not in crash_point.point.step
            is_after = all(follows(crash_point, fault, run) for fault in faults)
            if crash_point.batch == batch and not aside and is_after:
                for fault in self._faults_at(crash_point):
                    if fault.recovers_from is not None and fault.id not in ids:
                        yield CandidateFault(
                            fault, self._left(fault, crash_point, run), batch, time
                        )
        asked = {(f.point.endpoint, shape(f.label)) for point in self.wire for f, _ in point.faults}
        for time, (on_wire, left) in enumerate(
            second_on_wire(run, batch, asked), len(run.crash_points)
        ):
            if on_wire.id not in ids:
                own = " + ".join(sorted((*ids, on_wire.id)))
                yield CandidateFault(on_wire, left or own, batch, time)

    def _once_more(self, faults: Sequence[QueryFault], run: QueryRun) -> Iterator[CandidateFault]:
        """The driver's death where it died in the batch before: what the recovery does once only,
        and leaves behind, stands in the way of the second one."""
        following = [in_next_batch(self.clean_crash_points, fault) for fault in faults]
        if len(following) != 1 or following[0] is None:
            return
        batch = self.window - 1
        for time, crash_point in enumerate(run.crash_points):
            if crash_point.point == following[0] and crash_point.batch == batch:
                crash = DriverCrash(crash_point.point)
                yield CandidateFault(crash, self._left(crash, crash_point, run), batch, time)

    def _in_more_batches(self, run: QueryRun) -> Iterator[CandidateFault]:
        """The driver's death in batches that do what no batch does where there are fewer."""
        batches = batches_of_more(run, *self._clean_runs)
        many = one_of_many(run.crash_points)
        for time, crash_point in enumerate(run.crash_points):
            if crash_point.batch in batches and time not in many:
                for fault in self._faults_at(crash_point):
                    if isinstance(fault, DriverCrash):
                        left = self._left(fault, crash_point, run)
                        yield CandidateFault(fault, left, self.window - 1, time)

    def _earlier(self, faults: Sequence[QueryFault], run: QueryRun) -> Iterator[CandidateFault]:
        """What could have gone wrong before the last of these faults fired, so that this one would
        have met a recovery: of that the run shows nothing, and its lineage must not speak for a set
        of both. Such a set is put up once the run of the other one has shown that this fault can
        hit its recovery."""
        own = frozenset(fault.id for fault in faults)
        hit = {fault.recovers_from for fault in faults} - {None}
        less = {CLEAN, *(own - {id} for id in own)}
        moments = run.crash_points[: max(map(partial(fired_at, run), faults), default=0)]
        found = [
            CandidateFault(fault, "", self.window - 1, time)
            for time, crash_point in enumerate(moments)
            if crash_point.batch == self.window - 1 and crash_point.point not in hit
            for fault in self._faults_at(crash_point)
        ]
        on_wire = (x for x in self._alone if x.fault.on_wire and x.fault.crashes)
        found += [x for x in on_wire if found and x.batch == self.window - 1]
        found += (x for x in self._alone if in_next_batch(self.clean_crash_points, x.fault) in hit)
        for candidate in found:
            id = candidate.fault.id
            if id not in own and any(fewer | {id} in self.known for fewer in less):
                yield candidate

    @property
    def on_wire(self) -> dict[str, QueryFault]:
        """The faults at requests of the clean runs, by id."""
        found: list[QueryFault] = [fault for point in self.wire for fault, _ in point.faults]
        return {fault.id: fault for fault in (*found, *self.across)}

    def news(self) -> dict[str, Any]:
        """What has become known since this was asked last, for the log of a search."""
        put_up, self._unreported = self._unreported, []
        return {**self.equivalence.news(), "known": [sorted(faults) for faults in put_up]}

    def learn(self, value: Mapping[str, Iterable[Any]]) -> None:
        """Take in what a search knew, this one or an earlier one."""
        self.equivalence.learn(value)
        self.known.update(map(frozenset, value.get("known", ())))

    def _batch_of_fault(self, fault: QueryFault) -> int | None:
        if fault.recovers_from is not None:
            return StepId.parse(fault.recovers_from.step).batch
        if fault.on_wire and fault.crashes:
            return next((p.batch for p in self.wire for f, _ in p.faults if f == fault), None)
        return None

    def _left(self, fault: QueryFault, crash_point: CrashPoint, run: QueryRun) -> str:
        """What is equal for all faults that leave the same behind."""
        if StepId.parse(crash_point.point.step).is_concurrent:
            return fault.id  # what was left there is chance
        nothing_yet = fails_attempt(crash_point.point) and crash_point.durable == begun_with(
            crash_point, run.crash_points
        )
        return fault.left(crash_point, nothing_yet)

    def _at(self, step: str) -> Iterator[CrashPoint]:
        return (m for m in self.clean_crash_points if m.point.step == step)

    clean_crash_points: Sequence[CrashPoint] = ()

    def read_both(self, run: QueryRun, other: QueryRun, servers: Iterable[str]) -> None:
        """Take in a clean run, of whose requests only those may be hit that another one makes
        equally; ``servers``: endpoints whose servers are ours. Tail and head are known by then."""
        self._clean_runs = run, other
        found = placeable(run.recording, run.events, other.recording, other.events)
        wire = wire_points(
            run.recording,
            found.points,
            run.events,
            self.window,
            run.id,
            servers,
            self.tail,
            run.starts[0],
        )
        self.read_clean(run, wire)
        across = Across(run, found.points, self._seen_ahead)
        for woken in (across.of_replay, across.of_next):
            self.across += self._of_first(woken)
        self.not_placeable = not_placeable(found.unpinned, run.events, self.window, self.tail)
        self.by_time = goes_by_time(run, datetime.now().astimezone())

    def read_clean(self, run: QueryRun, wire: list[WirePoint]) -> None:
        """Take in the clean run: what may be hit, and whether tasks leave anything."""
        self.wire, self.clean_crash_points = wire, run.crash_points
        self._many = one_of_many(run.crash_points)
        self._lines = {n: lines_of_changes(run.events, n) for n in self._held_in}
        self._looks = {n: looks(run.events, n) for n in self._held_in}
        self._lists = {n: looks(run.events, n, lists=True) for n in self._in_full}
        self._reads = {n: read_back(run.events, n + 1) for n in self._in_full}
        for batch in self._in_full:
            for endpoint in endpoints_asked(run.recording, run.events, batch):
                self.endpoints.setdefault(endpoint, batch)
        leave = {
            m.batch
            for m in run.crash_points
            if m.point.phase == "after"
            and StepId.parse(m.point.step).is_task
            and m.durable != begun_with(m, run.crash_points)
        }
        self.in_tasks = not self.seen or bool(leave)
        self._lost_in = next((n for n in self._in_full if n in leave), self.window - 1)

    @property
    def _in_full(self) -> Sequence[int]:
        """The batches in which all kinds of faults are tried."""
        return (self.window - 1, *sorted(self.tail))

    @property
    def _held_in(self) -> Sequence[int]:
        """The batches in which a driver stands still, or leaves half of what it writes."""
        return (*self._in_full, *sorted(self.head))


def _in_own_code(fault: QueryFault) -> bool:
    """Whether it hits what the query's own code does: a file, or a request."""
    at = fault.recovers_from
    return fault.on_wire or (at is not None and StepId.parse(at.step).file is not None)
