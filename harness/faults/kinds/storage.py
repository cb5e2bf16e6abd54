"""The disk does not take what is written."""

from __future__ import annotations

import errno as errno_codes
import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from bettong.engine.steps import DISK_FAULT
from bettong.harness.faults.actuator import RunActuator
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.fault import (
    Begun,
    DiskCall,
    DiskUse,
    Fault,
    Go,
    Premise,
    TakenStep,
    TakenSteps,
)
from bettong.harness.faults.point import Point, Topology
from bettong.harness.faults.step_ids import StepId
from bettong.harness.faults.wording import moment, ordinal
from bettong.lineage.faults import STORAGE, WRITE
from bettong.lineage.trace import Phase, TraceEvent

SHORT = "SHORT"
_SERVERS = ("gateway.", "receiver.")
_ONCE = frozenset({"append", "link", "remove", "rename"})
"""Calls that do something else, or fail, when they have been done before."""
_NOT_REMOVED = re.compile(r"call \d+, remove of (.+): \w+$")


@dataclass(frozen=True, slots=True)
class Storage(Fault):
    """The operating system refuses what a step writes, e.g. ``ENOSPC`` for a full disk; after
    the step: it was written, but the writer is told that it failed. With ``call`` it is the n-th
    call to the disk that is refused: within the step, or, after it, before the thread's next one.

    Attributes:
        errno: the error's name; ``SHORT`` for a write of which the system takes a part and says
            so. With ``ENOSPC`` a write is taken in part before it fails.
        call: which call; 0 for the step as a whole.
        read: which time that a file or a folder is opened to be read, in place of a call.
        lasting: every call of the thread fails from that one on until its next step, so that
            nothing can be undone either; without a call the step fails each time that the same
            process takes it again.
        done: the call has done its work when it fails, as an answer that is lost on the way from a
            file server: whoever tries again finds that it is done.
        node: that takes the step; empty for whichever does.
    """

    kind: ClassVar[str] = "storage"
    bound: ClassVar[str] = STORAGE
    optional: ClassVar[tuple[str, ...]] = (
        "node",
        "at",
        "before",
        "after",
        "call",
        "read",
        "errno",
        "lasting",
        "done",
    )
    premises: ClassVar[tuple[Premise, ...]] = ("ends", "lives after")
    reports: ClassVar[str] = DISK_FAULT

    at: Point
    errno: str = "ENOSPC"
    call: int = 0
    node: str = ""
    lasting: bool = False
    read: int = 0
    done: bool = False

    @property
    def id(self) -> str:
        where = f"{self.node}, " if self.node else ""
        which = f", call {self.call}" if self.call else f", read {self.read}" if self.read else ""
        on = "" if not self.lasting else " and on" if self.call else ", each time"
        on = " done" if self.done else on
        return f"storage({self.errno}, {where}{self.at}{which}{on})"

    def counts_as(self, kinds: AbstractSet[str]) -> str:
        """A server answers that it has failed, and goes on; a driver or a sender ends by that. What
        could not be read leaves nothing that a crash would make matter, save where a server starts,
        which reads what there is after a crash."""
        of_server = self.at.step.startswith(_SERVERS)
        if self.done:  # what a server makes of it shows when it tries again, not when it dies
            return self.bound
        if self.read and not StepId.parse(self.at.step).starts:
            return self.bound
        return WRITE if of_server and WRITE in kinds else self.bound

    @property
    def variety(self) -> str:
        how = " lasting" if self.lasting else " done" if self.done else ""
        return f"{self.errno}{how} call {self.call} read {self.read}"

    @property
    def code(self) -> int:
        """The error's number on this system; 0 for none."""
        return 0 if self.errno == SHORT else int(getattr(errno_codes, self.errno))

    @classmethod
    def parse(cls, entry: Entry) -> Storage:
        if "at" in entry and ("before" in entry or "after" in entry):
            raise entry.error("give one of at, before and after")
        at = entry.place("at") if "at" in entry else entry.moment()
        code = entry.one_of("errno", (*errno_codes.errorcode.values(), SHORT), "ENOSPC")
        call = entry.count("call") if "call" in entry else 0
        read = entry.count("read") if "read" in entry else 0
        if read and (call or code != "EIO" or entry.flag("lasting", False)):
            raise entry.error("read goes with errno EIO, and with neither call nor lasting")
        if code == SHORT and not call:
            raise entry.error("errno SHORT is of one write: say which call it is")
        lasting = entry.flag("lasting", False)
        if lasting and code == SHORT:
            raise entry.error("a fault that is lasting begins with a call that fails")
        done = entry.flag("done", False)
        if done and (not call or code == SHORT or lasting):
            raise entry.error("done goes with a call that fails, and not with lasting")
        node = entry.text("node") if "node" in entry else ""
        return cls(at, code, call, node, lasting, read, done)

    def to_dict(self) -> dict[str, Any]:
        node = {"node": self.node} if self.node else {}
        which = {"call": self.call} if self.call else {"read": self.read} if self.read else {}
        how = {"lasting": True} if self.lasting else {"done": True} if self.done else {}
        return {**node, self.at.phase: self.at.place, **which, "errno": self.errno, **how}

    def describe(self) -> str:
        if self.read:
            nth, whose = ordinal(self.read), f" of the {self.node}" if self.node else ""
            when = moment(self.at)
            when = when if self.at.phase == "after" else f"while {when.partition(' ')[2]}"
            return f"the disk{whose} failed at the {nth} file or folder that was read {when}"
        if not self.call:
            again = ", and each time that was tried again" if self.lasting else ""
            return f"the disk failed with {self.errno} {moment(self.at)}{again}"
        whose, nth = f" of the {self.node}" if self.node else "", ordinal(self.call)
        when = moment(self.at)
        when = when if self.at.phase == "after" else f"while {when.partition(' ')[2]}"
        if self.errno == SHORT:
            return f"the disk{whose} took only a part of a write ({nth} call) {when}"
        if self.done:
            done = f"did its work and failed with {self.errno} all the same"
            return f"the {nth} call to the disk{whose} {done} {when}"
        on = " and all that followed in the step" if self.lasting else ""
        return f"the {nth} call to the disk{whose}{on} failed with {self.errno} {when}"

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.at,)

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,) if self.node else ()

    @property
    def recurs(self) -> bool:
        return self.lasting and not self.call

    def recurs_at(self, step: str, phase: Phase) -> bool:
        if phase != self.at.phase:
            return False
        first, again = StepId.parse(self.at.step), StepId.parse(step)
        if first.file is None or again.file is None:
            return step == self.at.step
        # What a sink does to its files is counted on.
        return (first.batch, first.file[1]) == (again.batch, again.file[1])

    def is_among(self, use: DiskUse) -> bool:
        if self.read:
            return use.has_read(self.read)
        if self.errno != SHORT or use.calls is None:
            return use.has_call(self.call)
        return use.calls[self.call - 1 : self.call] == ("append",)

    def begin(self, run: RunActuator) -> Begun | None:
        if self.node and self.node != run.node:
            return None  # another node takes this step
        if self.call:
            go = Go(self.code, call=self.call, lasting=self.lasting, done=self.done)
            return Begun("", answer=go)
        if self.read:
            return Begun("", answer=Go(self.code, read=self.read))
        return Begun(f"the step failed with {self.errno}", done=True, answer=Go(self.code))

    def reported(self, event: TraceEvent, run: RunActuator) -> Begun | None:
        if event.step != f"{self.reports}{self.at.step}":
            return None
        if not self.call and not self.read:
            return None
        operation, path = event.detail.get("operation"), event.detail.get("path")
        which = f"call {self.call}" if self.call else f"read {self.read}"
        how = "done, and " if self.done else ""
        return Begun(f"{which}, {operation} of {path}: {how}{self.errno}", done=True)

    @staticmethod
    def left_by(evidence: str) -> str | None:
        """The name of the file that was to be removed when this was the evidence of such a fault;
        None where it was another call."""
        found = _NOT_REMOVED.match(evidence)
        return found[1] if found else None

    @classmethod
    def singles(cls, event: TraceEvent, topology: Topology, occurrence: int) -> Iterable[Storage]:
        if StepId.parse(event.step).is_stored(event.link):
            yield cls(Point(event.step, "before", occurrence), "ENOSPC")
            yield cls(Point(event.step, "after", occurrence), "EIO")

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[Storage]:
        if premise == "lives after":
            after = Point(step.step, "after", step.number)
            yield from _calls(step.node, after, step.later_calls)
            yield from _reads(step.node, after, step.later_reads)
            return
        before = Point(step.step, "before", step.number)
        yield from _calls(step.node, before, step.calls)
        yield from _reads(step.node, before, step.reads)
        if StepId.parse(step.step).is_stored(step.link):
            if not step.calls:  # what it does to the disk is not known
                yield cls(before, "ENOSPC")
            yield cls(Point(step.step, "after", step.number), "EIO")

    @property
    def leaves_step(self) -> bool:
        return self.at.phase == "after" or self.call > 0 or self.read > 0

    def moved(self, point: Point) -> Storage:
        return replace(self, at=point)


def _reads(node: str, at: Point, reads: Sequence[str]) -> Iterable[Storage]:
    """Of what is opened again and again, such as a log for each record, the first and the last
    time."""
    last = {name: number for number, name in enumerate(reads, 1)}
    first = {name: number for number, name in reversed(list(enumerate(reads, 1)))}
    for number in sorted({*first.values(), *last.values()}):
        yield Storage(at, "EIO", 0, node, read=number)


def _calls(node: str, at: Point, calls: Sequence[DiskCall]) -> Iterable[Storage]:
    """A full disk takes no more bytes; a broken one fails at whatever it is asked. One that goes on
    failing matters where there is something to undo: what was written and cannot be synced. That a
    call was done all the same matters where it does something else the second time."""
    before = ""
    for call in calls:
        code = "ENOSPC" if call.operation in ("append", "open", "mkdir") else "EIO"
        yield Storage(at, code, call.number, node)
        if call.operation == "append":
            yield Storage(at, SHORT, call.number, node)
        if call.operation == "sync" and before == "append":
            yield Storage(at, code, call.number, node, lasting=True)
        if call.operation in _ONCE:
            yield Storage(at, "EIO", call.number, node, done=True)
        before = call.operation
