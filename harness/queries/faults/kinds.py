"""The kinds of faults that a query is tried with, and where each can be placed."""

from __future__ import annotations

from collections.abc import Iterator

from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.faults.driver_crash import DriverCrash
from bettong.harness.queries.faults.failed_step import FailedEachTime, FailedStep, FailedTask
from bettong.harness.queries.faults.half_written import CrashAmidWrite, FullDisk
from bettong.harness.queries.faults.lost_executor import LostExecutor
from bettong.harness.queries.faults.operations import OperationalEvent
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.refused import Refused, RefusedOnce
from bettong.harness.queries.faults.wire_fault import WireFault
from bettong.harness.queries.faults.zombie import Amid, Zombie
from bettong.harness.queries.sink.file_steps import STATEMENTS

KINDS: tuple[type[QueryFault], ...] = (
    OperationalEvent,
    WireFault,
    CrashAmidWrite,
    FullDisk,
    DriverCrash,
    FailedTask,
    FailedEachTime,
    FailedStep,
    Zombie,
    Amid,
    LostExecutor,
    Refused,
    RefusedOnce,
)
"""In the order in which they are asked for an id."""
_FAIL_ATTEMPTS = (("before", "source.middle"), ("after", "task"))
_RAISING = (
    *("open", "connect", "rename", "remove", "mkdir", "rmdir", "link", "symlink", "truncate"),
    *("commit", "end"),
    *STATEMENTS,
)


def faults_at(crash_point: CrashPoint) -> Iterator[QueryFault]:
    """What can go wrong at a crash point: the driver dies; an attempt fails, half way or at its
    end, or is lost sight of there."""
    yield DriverCrash(crash_point.point)
    if fails_attempt(crash_point.point) or refuses(crash_point.point):
        yield FailedStep(crash_point.point)
    if StepId.parse(crash_point.point.step).is_concurrent:
        return  # the executor would be lost to the tasks beside it, too
    if fails_attempt(crash_point.point):
        yield LostExecutor(crash_point.point, goes_on=False)
    if fails_attempt(crash_point.point) and crash_point.point.phase == "before":
        # At its end nothing would be left to do.
        yield LostExecutor(crash_point.point, goes_on=True)


def fails_attempt(point: Point) -> bool:
    """Whether an error at this point makes Spark try a task again."""
    return (point.phase, StepId.parse(point.step).last) in _FAIL_ATTEMPTS


def refuses(point: Point) -> bool:
    """Whether an error at this point is one that the sink's own call raises."""
    step = StepId.parse(point.step)
    return step.batch is not None and step.file is not None and step.file[1] in _RAISING


def zombie(start: Point, last_batch: int) -> Zombie:
    """From this moment on there is another driver, until the last batch is done."""
    return Zombie(start, Point(f"batch={last_batch}/commits", "after"))


def refused(endpoint: str, batch: int) -> Refused:
    """From this batch on the endpoint refuses connections."""
    return Refused(endpoint, Point(f"batch={batch}/offsets", "after"))


def refused_once(endpoint: str, batch: int) -> RefusedOnce:
    """The first connection that is made in this batch is refused."""
    return RefusedOnce(endpoint, Point(f"batch={batch}/offsets", "after"))


def parse_fault(id: str) -> QueryFault:
    """The fault of a stable id, other than one at a request that a connection of the clean runs
    made; raises ScheduleError."""
    for kind in KINDS:
        if (fault := kind.parse(id)) is not None:
            return fault
    raise ScheduleError(f"{id!r} is no fault of check-sink: copy one from a result")
