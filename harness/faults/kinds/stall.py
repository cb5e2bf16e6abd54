"""One thread of a node stands still, and its others go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from bettong.engine.steps import DISK_STALL
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
from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.faults.wording import moment, ordinal
from bettong.lineage.faults import PAUSE
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class Stall(Fault):
    """The thread that takes a step stands still right before its n-th call to the disk there, as on
    a disk that takes its time, and whoever has asked for the step asks again meanwhile. It goes on
    when the node has taken the step once more, or at a given moment: where a lock keeps the second
    request from being served, that never comes. Or it goes on when the second request waits for it
    too, and where none does, last of all.

    Or it stands still before the step, with a request that it has read and no lock, and goes on
    right before what has been asked for once more, or when what follows that is done as well.

    Attributes:
        call: before which call; 0: at the beginning of the step.
        until: that moment, or the one at which the second request begins.
        meets: whether it goes on when, from then on, nobody can go on without it, or all others
            have done their work.
    """

    kind: ClassVar[str] = "stall"
    bound: ClassVar[str] = PAUSE
    needed: ClassVar[tuple[str, ...]] = ("node", "at", "until")
    optional: ClassVar[tuple[str, ...]] = ("call", "meets")
    premises: ClassVar[tuple[Premise, ...]] = ("ends",)
    reports: ClassVar[str] = DISK_STALL

    node: str
    at: Point
    call: int
    until: Point
    meets: bool = False

    @property
    def id(self) -> str:
        end = f"met by {self.until}" if self.meets else f"until {self.until}"
        which = f", call {self.call}" if self.call else ""
        return f"stall({self.node}, {self.at.place}{which} {end})"

    @classmethod
    def parse(cls, entry: Entry) -> Stall:
        until, meets = entry.point("until"), entry.flag("meets", False)
        call = entry.count("call") if "call" in entry or meets else 0
        return cls(entry.text("node"), entry.place("at"), call, until, meets)

    def to_dict(self) -> dict[str, Any]:
        meets = {"meets": True} if self.meets else {}
        until = self.until.short
        which = {"call": self.call} if self.call else {}
        return {"node": self.node, "at": self.at.place, **which, "until": until, **meets}

    def describe(self) -> str:
        if not self.call:
            start = moment(self.at)
            return f"a thread of the {self.node} stood still {start} until {moment(self.until)}"
        while_ = moment(self.at).partition(" ")[2]
        end = f"the step had been taken once more, or {moment(self.until)}"
        if self.meets:
            end = "who had asked again was waiting too, or all others had done their work"
        return (
            f"a thread of the {self.node} stood still while {while_}, before its "
            f"{ordinal(self.call)} call to the disk there, until {end}"
        )

    @property
    def points(self) -> tuple[Point, ...]:
        if self.meets:
            return (self.at,)
        if not self.call:
            return (self.at, self.until)
        once_more = replace(self.at, phase="after", occurrence=self.at.occurrence + 1)
        return (self.at, self.until, once_more)

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,)

    @property
    def place(self) -> str:
        return self.node

    @property
    def variety(self) -> str:
        late = not self.call and self.until.step != self.at.step
        return f"call {self.call}{', met' * self.meets}{', late' * late}"

    @property
    def is_silent(self) -> bool:
        return True

    @property
    def until_idle(self) -> bool:
        return self.meets

    @property
    def until_still(self) -> bool:
        return self.meets

    def lasts(self, met: int) -> bool:
        return self.meets  # nobody came to the end of their work beside it

    @property
    def still_from(self) -> Point | None:
        return self.until if self.meets else None

    @property
    def holds_thread(self) -> bool:
        return self.call > 0

    @property
    def holds_step(self) -> bool:
        return not self.call

    @property
    def steps_first(self) -> int:
        return int(not self.call)  # who has come once more would overtake it as if it were dead

    @property
    def leaves_step(self) -> bool:
        return True

    def is_among(self, use: DiskUse) -> bool:
        return use.has_call(self.call)

    def begin(self, run: RunActuator) -> Begun | None:
        if self.node != run.node:
            return None  # another node takes this step
        if not self.call:
            return Begun("stood still")
        return Begun("", answer=Go(hold=self.call))

    def reported(self, event: TraceEvent, run: RunActuator) -> Begun | None:
        if not self.call or event.step != f"{self.reports}{self.at.step}":
            return None
        operation, path = event.detail.get("operation"), event.detail.get("path")
        return Begun(f"stood still before call {self.call}, {operation} of {path}")

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[Stall]:
        """Right before the first ``sync``, and before each one of more that is written after it:
        something is there, and nobody has been told. What one file needs a lock for is not always
        within the lock of the next. Who asks again has given up waiting when it goes on, and what
        it has asked for is done all the same; or it is answered by somebody who had looked how
        things were before it had to wait; or it has got all that it wanted, and what comes late
        meets what was made of that. Or a request was read before its client gave it up, and is
        carried out when the same client has been let in anew and has asked again, or is further
        than that: what compares a commit with the last one alone takes it for new then, and an
        epoch that is begun once more has rows that were staged in it."""
        again = run.tried_again(step)
        if again is None:
            return
        at = Point(step.step, "before", step.number)
        syncs = _before_syncs(step.calls)
        for sync in syncs:
            yield cls(step.node, at, sync, replace(again, occurrence=again.occurrence + 1))
        for sync in syncs[:1]:
            yield cls(step.node, at, sync, again, meets=True)
        if not StepId.parse(step.step).is_ahead:  # once made, nobody makes it a second time
            yield cls(step.node, at, 0, replace(at, occurrence=at.occurrence + 1))
        if (later := run.overtaken_by(step)) is not None:
            yield cls(step.node, at, 0, later)


def _before_syncs(calls: Sequence[DiskCall]) -> list[int]:
    """The calls by which a step waits for its disk: its first sync of all, and each of a file to
    which it has written since the one before."""
    found: list[int] = []
    written = False
    for call in calls:
        if call.operation.startswith("sync"):
            if written or not found:
                found.append(call.number)
            written = False
        written |= call.operation == "append"
    return found
