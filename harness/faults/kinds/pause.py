"""A node stands still."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from bettong.engine.steps import DISK_STALL
from bettong.harness.faults.actuator import RunActuator
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.fault import (
    Begun,
    DiskUse,
    Ended,
    Fault,
    Go,
    Premise,
    TakenStep,
    TakenSteps,
)
from bettong.harness.faults.point import DRIVER, Point, Topology, span
from bettong.harness.faults.step_ids import StepId
from bettong.harness.faults.wording import moment, ordinal
from bettong.lineage.faults import PAUSE
from bettong.lineage.trace import TraceEvent

_SHARED = frozenset(
    {
        "batch=N/p=N/a=N/sink.prepare",
        "batch=N/state.manifest",
        "batch=N/sink.commit",
        "batch=N/source.commit",
    }
)
"""What a driver changes for others too, and another one that does its batch again changes again."""

_FENCED = _SHARED - {"batch=N/source.commit"}
"""Of these what is refused once another driver has begun: its process is to end."""

_MADE_ONCE = frozenset({"epoch=N/take", "batch=N/source.note"})
"""What is made only where there is none, by whatever call."""

_UNDER_OWN_NAME = frozenset({"batch=N/state.manifest"})
"""What a driver makes, when it has looked whether it was replaced, under a name that nobody else
gives: what its successor made stays, and the two stand beside each other."""

_STAGES = frozenset({"sink.open", "sink.prepare"})
"""What a driver does to files of a sink before it commits, when it has looked whether another epoch
has begun there: no server keeps the two apart."""


@dataclass(frozen=True, slots=True)
class Pause(Fault):
    """SIGSTOP of every process of a node, then SIGCONT: what it held in flight goes on late.

    Attributes:
        until: when it goes on; None: when all others stand still too, waiting for it.
        replace: whether a supervisor takes the node for dead meanwhile and starts another one of
            its name; what goes on late is a zombie then, at the latest when all others have done
            their work.
        call: it begins within the step, right before the call of this number to the disk there; 0:
            at its edge.
    """

    kind: ClassVar[str] = "pause"
    bound: ClassVar[str] = PAUSE
    needed: ClassVar[tuple[str, ...]] = ("node", "from")
    optional: ClassVar[tuple[str, ...]] = ("call", "until", "replace")
    premises: ClassVar[tuple[Premise, ...]] = ("lives before", "lives after", "ends")
    reports: ClassVar[str] = DISK_STALL

    node: str
    start: Point
    until: Point | None = None
    replace: bool = False
    call: int = 0

    @property
    def id(self) -> str:
        which = f", call {self.call}" if self.call else ""
        replaced = ", replaced" if self.replace else ""
        return f"pause({self.node}, {span(self.start, self.until, which)}{replaced})"

    @classmethod
    def parse(cls, entry: Entry) -> Pause:
        replace = entry.flag("replace", False)
        call = entry.count("call") if "call" in entry else 0
        start = entry.place("from") if call else entry.point("from")
        until = entry.end("until", start)
        return cls(entry.text("node"), start, until, replace, call)

    def to_dict(self) -> dict[str, Any]:
        until = {} if self.until is None else {"until": self.until.short}
        which = {"call": self.call} if self.call else {}
        last = {"replace": True} if self.replace else {}
        return {"node": self.node, "from": self.start.short, **which, **until, **last}

    def describe(self) -> str:
        beside = ", while another one took its place" if self.replace else ""
        idle = "all others had done their work" if self.replace else "all others waited for it"
        last = moment(self.until) if self.until else idle
        first = f"from {moment(self.start)}"
        if self.call:
            while_ = moment(self.start).partition(" ")[2]
            first = f"while {while_}, before its {ordinal(self.call)} call to the disk there,"
        return f"the {self.node} stood still {first} until {last}{beside}"

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.start,) if self.until is None else (self.start, self.until)

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,)

    @property
    def place(self) -> str:
        return self.node

    @property
    def takes_away(self) -> tuple[str, ...]:
        return (self.node,) if self.until is not None or self.replace else ()

    @property
    def variety(self) -> str:
        if self.call:
            again = self.until is None or self.until.step == self.start.step
            return "within" if again else "within, beside"
        return "beside" if self.replace and self.until is not None else ""

    @property
    def steps_first(self) -> int:
        if not self.replace or self.until is None or self.until.phase != "before":
            return 0
        is_fenced = _shape(StepId.parse(self.start.step)) in _FENCED
        return 2 if is_fenced and self.start.step != self.until.step else 1

    @property
    def until_idle(self) -> bool:
        return self.until is None or self.replace

    @property
    def until_still(self) -> bool:
        return self.until is None and not self.replace

    @property
    def holds_thread(self) -> bool:
        return self.call > 0

    @property
    def leaves_step(self) -> bool:
        return self.until_still

    def check(self, topology: Topology) -> None:
        if self.replace and self.node != DRIVER:
            raise ScheduleError(f"{self.id}: only a driver can be replaced while it stands still")

    @property
    def replaces(self) -> bool:
        return self.replace

    def is_among(self, use: DiskUse) -> bool:
        return use.has_call(self.call)

    def begin(self, run: RunActuator) -> Begun | None:
        if self.call:
            # None where another node takes this step
            return Begun("", answer=Go(hold=self.call)) if self.node == run.node else None
        outcome = run.pause(self.node, self.replace)
        return Begun(outcome.evidence) if outcome.fired else None

    def reported(self, event: TraceEvent, run: RunActuator) -> Begun | None:
        if not self.call or event.step != f"{self.reports}{self.start.step}":
            return None
        outcome = run.pause(self.node, self.replace)
        operation, path = event.detail.get("operation"), event.detail.get("path")
        evidence = f"{outcome.evidence} before call {self.call}, {operation} of {path}"
        return Begun(evidence) if outcome.fired else None

    def end(self, run: RunActuator, met: int, step_failed: bool) -> Ended:
        return Ended([run.resume(self.node)])

    @classmethod
    def singles(cls, event: TraceEvent, topology: Topology, occurrence: int) -> Iterable[Pause]:
        start = Point(event.step, "before", occurrence)
        if StepId.parse(event.step).starts:
            return  # all others wait for it by themselves
        yield cls(event.node, start)
        if event.node == DRIVER:
            yield cls(event.node, start, replace=True)

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[Pause]:
        """All others get ahead of the node, which goes on where it was. Or it is taken for dead:
        the driver is replaced meanwhile, by one that has done all its work when it goes on, or is
        amid it; a server goes on when the client that has asked for this step is about to ask
        again. Amid a step the driver has looked whether something is there, and makes it when its
        successor has; or whether it has a successor, and makes what that one goes without when it
        has done all its work, or when it has looked what there is and is about to begin; or whether
        another epoch has begun at a sink of files, and writes there when its successor has staged
        all and is about to commit."""
        start = Point(step.step, "before", step.number)
        if StepId.parse(step.step).starts:
            return  # all others wait for it by themselves
        if premise == "lives after":
            made, call = Point(step.step, "after", step.number + 1), _making(step)
            if step.node == DRIVER and call:
                own = StepId.parse(step.step).shape in _UNDER_OWN_NAME
                yield cls(step.node, start, None if own else made, replace=True, call=call)
                if own and (opened := run.opened_next(step)) is not None:
                    yield cls(step.node, start, opened, replace=True, call=call)
            commit, written = _commit_of(step), _writing(step)
            if step.node == DRIVER and commit is not None and written:
                yield cls(step.node, start, commit, replace=True, call=written)
        elif premise == "ends":
            yield cls(step.node, start)
        elif step.node == DRIVER:
            yield cls(step.node, start, replace=True)
            id = StepId.parse(step.step)
            if id.shape == "epoch=N/take":  # two drivers start at once
                taken = Point(step.step, "after", step.number + 1)
                yield cls(step.node, start, taken, replace=True)
            elif id.shape == "batch=N/source.note":  # two drivers have looked, and both note
                looked = Point(f"batch={id.batch}/source.wait", "after", step.number + 1)
                yield cls(step.node, start, looked, replace=True)
            else:
                for met in _met_at(id, step.number):
                    yield cls(step.node, start, met, replace=True)
        elif (again := run.tried_again(step)) is not None:
            yield cls(step.node, start, again)


def _met_at(step: StepId, number: int) -> Iterable[Point]:
    """Where the next driver is amid its work when one that was taken for dead takes this step:
    about to read the batch again, or to take the step too, or, where the other begins its epoch at
    a sink, about to commit there."""
    if _shape(step) in _SHARED:
        yield Point(f"batch={step.batch}/p=0/a=0/source.read", "before", number + 1)
        yield Point(str(step), "before", number + 1)
    if step.shape == "epoch=N/sink.open" and step.epoch == 1:
        yield _commit(0, step)


def _shape(step: StepId) -> str:
    """What a step is, at whichever level of the application."""
    return step.shape.replace("/level=N", "")


def _commit_of(step: TakenStep) -> Point | None:
    """Where the next driver is about to commit what it has staged at the sink to which a step
    does something before; None for other steps."""
    id = StepId.parse(step.step)
    if id.unnamed.rpartition("/")[2] not in _STAGES:
        return None
    if id.batch is None:
        return _commit(0, id) if id.epoch == 1 else None
    return _commit(id.batch, id)


def _commit(batch: int, at: StepId) -> Point:
    """Where a batch is committed at the sink that a step is at."""
    return Point(f"batch={batch}/sink.commit{f'/{at.name}' if at.name else ''}", "before")


def _writing(step: TakenStep) -> int:
    """Of a step's calls to the disk the one by which it begins a file; 0 for none."""
    return next((call.number for call in step.calls if call.operation == "open"), 0)


def _making(step: TakenStep) -> int:
    """Of a step's calls to the disk the one by which it makes what it has looked for before; 0 for
    none."""
    by_rename = _MADE_ONCE | _UNDER_OWN_NAME
    makes = {"link", "rename"} if StepId.parse(step.step).shape in by_rename else {"link"}
    return next((call.number for call in step.calls if call.operation in makes), 0)
