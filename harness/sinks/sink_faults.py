"""The faults that a sink is tried with, and their stable ids."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bettong.harness import faults as f
from bettong.harness.faults import Fault, Point
from bettong.harness.schedule import ScheduleError, parse_point
from bettong.harness.sinks.moments import Moment
from bettong.harness.sinks.nodes import DRIVER
from bettong.harness.sinks.situations import Situation
from bettong.harness.sinks.wire_faults import WireFault
from bettong.lineage.faults import Fault as LineageFault

_CRASH = re.compile(r"crash\(driver, (.+)\)$")
_STORAGE = re.compile(r"storage\(EIO, (.+)\)$")
_RAISING = ("open", "rename", "remove", "mkdir", "link")
_PAUSE = re.compile(r"pause\(driver, from (.+) until (.+)\)$")


def faults_at(moment: Moment) -> Iterator[Fault]:
    """What can strike at a moment: the driver dies; an attempt fails, half way or at its end."""
    yield f.Crash(DRIVER, moment.point)
    if fails_attempt(moment.point) or refuses(moment.point):
        yield f.Storage(moment.point, "EIO")


def fails_attempt(point: Point) -> bool:
    """Whether an error at this point makes Spark try a task again."""
    step = point.step
    half_way = point.phase == "before" and step.endswith("/source.middle")
    at_end = point.phase == "after" and step.endswith("/task")
    return half_way or at_end


def refuses(point: Point) -> bool:
    """Whether an error at this point is one that the sink's own call raises."""
    return "/sink.file=" in point.step and point.step.rpartition(".")[2] in _RAISING


def zombie(start: Point, last_batch: int) -> Fault:
    """The driver is paused, another one takes over and ends the work, then the first goes on."""
    return f.Pause(DRIVER, start, Point(f"batch={last_batch}/commits", "after"))


def parse_fault(id: str) -> Fault:
    """The fault of a stable id; raises ScheduleError."""
    if found := _CRASH.match(id):
        return f.Crash(DRIVER, parse_point(found[1]))
    if found := _STORAGE.match(id):
        point = parse_point(found[1])
        phase: f.PointPhase = "after" if point.step.endswith("/task") else "before"
        return f.Storage(Point(point.step, phase, point.occurrence), "EIO")
    if found := _PAUSE.match(id):
        return f.Pause(DRIVER, parse_point(found[1]), parse_point(found[2]))
    raise ScheduleError(f"{id!r} is no fault of check-sink: copy one from a result")


def for_search(fault: Fault | WireFault | Situation, time: int) -> LineageFault:
    """The fault as the search knows it."""
    if isinstance(fault, Situation):
        return LineageFault(fault.id, "situation", "", DRIVER, time)
    if isinstance(fault, WireFault):
        kind = "crash" if fault.how == "crash" else "loss"
        return LineageFault(fault.id, kind, "", fault.point.endpoint, time)
    kind = {f.Crash: "crash", f.Storage: "loss", f.Pause: "pause"}[type(fault)]
    return LineageFault(fault.id, kind, "", DRIVER, time)
