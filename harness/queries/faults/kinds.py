"""The faults that a sink is tried with, and their stable ids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bettong.harness.faults import kinds as f
from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import DRIVER, Point
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.faults.operations import KNOWN, OperationalEvent
from bettong.harness.queries.faults.wire import How, WireFault
from bettong.harness.queries.search.after_restart import at_request
from bettong.harness.wire import CutPoint
from bettong.harness.wire.cutpoints import Kind
from bettong.lineage.faults import Fault as LineageFault

_CRASH = re.compile(r"crash\(driver, (.+)\)$")
_STORAGE = re.compile(r"storage\(EIO, (.+)\)$")
_RAISING = ("open", "rename", "remove", "mkdir", "link")
_PAUSE = re.compile(r"pause\(driver, from (.+) until (.+)\)$")
_LOST = re.compile(r"lost-executor\((before|after) ([^,]+?)(, goes on)?\)$")
_REFUSED_ONCE = re.compile(r"refuse-once\(([^,]+), (.+)\)$")
_REFUSED = re.compile(r"cut\(driver\|([^,]+), from (.+)\)$")


@dataclass(frozen=True, slots=True)
class LostExecutor:
    """Spark loses sight of the executor that is at a step of a task, and runs the task again while
    the first attempt is still there: two attempts at once, as with speculation.

    Attributes:
        at: where the first attempt stands meanwhile.
        goes_on: when the second one is done, the first one goes on; else it is never seen again,
            and none of its clean-up code runs.
    """

    at: Point
    goes_on: bool

    @property
    def id(self) -> str:
        return f"lost-executor({self.at}{', goes on' if self.goes_on else ''})"


@dataclass(frozen=True, slots=True)
class RefusedOnce:
    """From a step on an endpoint turns one connection away, and has closed those that were open.

    Attributes:
        endpoint: its name.
        at: when.
    """

    endpoint: str
    at: Point

    @property
    def id(self) -> str:
        return f"refuse-once({self.endpoint}, {self.at})"


_NUMBERED = re.compile(
    r"(omit|omit-reply|cut|crash|restart|pause)\((?:(?:driver|server), (before|after) )?"
    r"([^/=]+)/(restarted/)?(.+)=(\d+)\)( and each time again)?$"
)
_HOW: Mapping[str, How] = {"crash": "crash", "restart": "restarted", "pause": "paused"}

AnyFault = Fault | WireFault | OperationalEvent | LostExecutor | RefusedOnce


def faults_at(crash_point: CrashPoint) -> Iterator[Fault | LostExecutor]:
    """What can go wrong at a crash point: the driver dies; an attempt fails, half way or at its
    end, or is lost sight of there."""
    yield f.Crash(DRIVER, crash_point.point)
    if fails_attempt(crash_point.point) or refuses(crash_point.point):
        yield f.Storage(crash_point.point, "EIO")
    if fails_attempt(crash_point.point):
        yield LostExecutor(crash_point.point, goes_on=False)
    if fails_attempt(crash_point.point) and crash_point.point.phase == "before":
        # At its end nothing would be left to do.
        yield LostExecutor(crash_point.point, goes_on=True)


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


def refused(endpoint: str, batch: int) -> f.Cut:
    """From this batch on the endpoint refuses connections, for as long as the driver tries."""
    return f.Cut((DRIVER,), (endpoint,), Point(f"batch={batch}/offsets", "after"))


def refused_once(endpoint: str, batch: int) -> RefusedOnce:
    """The first connection that is made in this batch is refused."""
    return RefusedOnce(endpoint, Point(f"batch={batch}/offsets", "after"))


def parse_fault(id: str) -> AnyFault:
    """The fault of a stable id, other than one at a request that a connection of the clean runs
    made; raises ScheduleError."""
    if id in KNOWN:
        return KNOWN[id]
    if on_wire := parse_numbered(id):
        return on_wire
    if found := _CRASH.match(id):
        return f.Crash(DRIVER, Point.parse(found[1]))
    if found := _STORAGE.match(id):
        return f.Storage(Point.parse(found[1]), "EIO")
    if found := _PAUSE.match(id):
        return f.Pause(DRIVER, Point.parse(found[1]), Point.parse(found[2]))
    if found := _LOST.match(id):
        return LostExecutor(Point.parse(f"{found[1]} {found[2]}"), goes_on=bool(found[3]))
    if found := _REFUSED.match(id):
        return f.Cut((DRIVER,), (found[1],), Point.parse(found[2]))
    if found := _REFUSED_ONCE.match(id):
        return RefusedOnce(found[1], Point.parse(found[2]))
    raise ScheduleError(f"{id!r} is no fault of check-sink: copy one from a result")


def parse_numbered(id: str) -> WireFault | None:
    """The fault of an id that tells its request by label and number, over the run or since the
    restart: in another run it may come on another connection. None when it is another kind's."""
    found = _NUMBERED.match(id)
    if found is None:
        return None
    what, when, endpoint, restarted, label, number, again = found.groups()
    kind: Kind = "omit-reply" if "omit-reply" in what or when == "after" else "omit"
    if what == "cut":
        kind = "cut"
    how = _HOW.get(what, "always lost" if again else "lost")
    if restarted:
        return WireFault(at_request(kind, endpoint, label, int(number)), how)
    return WireFault(CutPoint(kind, endpoint, "", "nth", label, int(number), label), how)


_KINDS = {f.Crash: "crash", f.Storage: "loss", f.Pause: "pause", f.Cut: "cut"}


def for_search(fault: AnyFault, time: int) -> LineageFault:
    """The fault as the search knows it."""
    if isinstance(fault, OperationalEvent):
        return LineageFault(fault.id, "operation", "", DRIVER, time)
    if isinstance(fault, LostExecutor):
        return LineageFault(fault.id, "crash", "", "executor", time)
    if isinstance(fault, RefusedOnce):
        return LineageFault(fault.id, "cut", "", fault.endpoint, time)
    if isinstance(fault, WireFault):
        kind = "crash" if fault.how == "crash" else "loss"
        return LineageFault(fault.id, kind, "", fault.point.endpoint, time)
    return LineageFault(fault.id, _KINDS[type(fault)], "", DRIVER, time)
