"""The moments of a run as they stand to each other: which are alike, which follow a fault, and
which stand for many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.alike import MOST_AGAIN, MOST_SHAPES, repeated
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.faults.driver_crash import DriverCrash
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.sink.file_steps import CHANGED, STATEMENTS, WRITE


def in_next_batch(crash_points: Sequence[CrashPoint], fault: QueryFault) -> Point | None:
    """Where the driver is in the next batch when it is about to do what it was about to do as it
    died by this fault, before Spark records a batch or amid what the query's own code does with
    files: it has done the like as often in that batch by then. None for all other faults, and where
    there is no such moment."""
    if not isinstance(fault, DriverCrash) or fault.at.phase != "before":
        return None
    at = StepId.parse(fault.at.step)
    if at.batch is None or not (at.ends_batch or at.file):
        return None
    kind = next((_kind_of_moment(x) for x in crash_points if x.point == fault.at), None)
    alike = [x for x in crash_points if _kind_of_moment(x) == kind]
    before = [x.point for x in alike if x.batch == at.batch]
    after = [x.point for x in alike if x.batch == at.batch + 1]
    place = before.index(fault.at) if fault.at in before else len(after)
    return next(iter(after[place : place + 1]), None)


def _kind_of_moment(crash_point: CrashPoint) -> tuple[object, ...]:
    """Equal for moments at which different batches do the same."""
    step = StepId.parse(crash_point.point.step)
    did = step.file[1] if step.file is not None else step.last
    return crash_point.on, did, crash_point.point.phase


def one_of_many(crash_points: Sequence[CrashPoint]) -> set[int]:
    """The places of those at which nothing new can be left behind: of the writes, or statements,
    that follow each other the first two and the last on each kind of file, or of each kind, stand
    for all. Where there are too many kinds, what differs is the row after all, save in those that
    come in several batches. So it is with what is repeated as a whole, such as a file for each
    row that is opened, written and renamed."""
    found = _of_repeated(crash_points)
    batches: dict[str, set[int | None]] = {}
    for x in crash_points:
        batches.setdefault(x.on, set()).add(x.batch)
    for kind, group in groupby(enumerate(crash_points), key=lambda at: _kind_of_many(at[1])):
        members = list(group) if kind else []
        kinds = {x.on for _, x in members}
        if len(kinds) > MOST_SHAPES:
            kinds = {on for on in kinds if len(batches[on]) > 1}
            kinds = kinds if len(kinds) <= MOST_AGAIN else set()
        alike: dict[str, list[int]] = {}
        for place, x in members:
            alike.setdefault(x.on if x.on in kinds else "", []).append(place)
        found.update(place for places in alike.values() for place in places[2:-1])
    return found


def _of_repeated(crash_points: Sequence[CrashPoint]) -> set[int]:
    """The places of operations on files that are repeated as a whole, but for the first two times
    and the last one."""
    found: set[int] = set()
    symbols = [_operation(x) for x in crash_points]
    at = 0
    while at < len(symbols):
        length, times = repeated(symbols, at) if symbols[at][-1] else (1, 1)
        found.update(range(at + 2 * length, at + (times - 1) * length))
        at += length * times
    return found


def _operation(crash_point: CrashPoint) -> tuple[object, ...]:
    """Which operation on which kind of file it is, of which batch or attempt at a task; a moment of
    another kind is like no other one."""
    step = StepId.parse(crash_point.point.step)
    if step.file is None:
        return crash_point.point, crash_point.incarnation, ""
    return step.batch, step.task, crash_point.on, step.file[1]


def _kind_of_many(crash_point: CrashPoint) -> str:
    file = StepId.parse(crash_point.point.step).file
    many = file is not None and file[1] in {WRITE, CHANGED, *STATEMENTS}
    return file[1] if file is not None and many else ""


def begun_with(crash_point: CrashPoint, crash_points: Iterable[CrashPoint]) -> str | None:
    """What was durable when the attempt began within which a moment is."""
    found = StepId.parse(crash_point.point.step).task
    durable = None
    for earlier in crash_points:
        attempt = StepId.parse(earlier.point.step)
        begins = earlier.point.phase == "before" and attempt.is_task
        if found is not None and begins and attempt.task == found:
            durable = earlier.durable
        if earlier == crash_point:
            break
    return durable


def fired_at(run: QueryRun, fault: QueryFault) -> int:
    """The place of the moment at which a fault at a step fired; 0 for any other fault."""
    if fault.recovers_from is None:
        return 0
    fired = (i for i, m in enumerate(run.crash_points) if m.point == fault.recovers_from)
    return next(fired, next(iter(tried_again(run)), 0))


def tried_again(run: QueryRun) -> list[int]:
    """The places of the moments of second attempts at tasks."""
    steps = (StepId.parse(m.point.step) for m in run.crash_points)
    return [place for place, step in enumerate(steps) if step.attempt == 1]


def follows(crash_point: CrashPoint, first: QueryFault, run: QueryRun) -> bool:
    """Whether a moment came after a fault had fired."""
    fired = [i for i, m in enumerate(run.crash_points) if m.point == first.recovers_from]
    if first.crashes:
        dead = run.crash_points[fired[0]].incarnation if fired else 1
        return crash_point.incarnation > dead
    # A step that failed after its work is no moment; the attempt that follows it is.
    begun = min([*fired, *tried_again(run)], default=len(run.crash_points))
    return run.crash_points.index(crash_point) > begun
