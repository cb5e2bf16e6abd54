"""The disk does not take what is written."""

from __future__ import annotations

import errno as errno_codes
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from bettong.harness.faults.actuator import RunActuator
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.fault import Begun, Fault, Go, Premise, TakenStep, TakenSteps
from bettong.harness.faults.point import Point, Topology
from bettong.harness.faults.step_ids import is_stored
from bettong.harness.faults.wording import moment
from bettong.lineage.faults import STORAGE
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class Storage(Fault):
    """The operating system refuses what a step writes, e.g. ``ENOSPC`` for a full disk; after
    the step: it was written, but the writer is told that it failed."""

    kind: ClassVar[str] = "storage"
    bound: ClassVar[str] = STORAGE
    optional: ClassVar[tuple[str, ...]] = ("before", "after", "errno")
    premises: ClassVar[tuple[Premise, ...]] = ("ends",)

    at: Point
    errno: str = "ENOSPC"

    @property
    def id(self) -> str:
        return f"storage({self.errno}, {self.at})"

    @property
    def code(self) -> int:
        """The error's number on this system."""
        return int(getattr(errno_codes, self.errno))

    @classmethod
    def parse(cls, entry: Entry) -> Storage:
        code = entry.one_of("errno", tuple(errno_codes.errorcode.values()), "ENOSPC")
        return cls(entry.moment(), code)

    def to_dict(self) -> dict[str, Any]:
        return {self.at.phase: self.at.place, "errno": self.errno}

    def describe(self) -> str:
        return f"the disk failed with {self.errno} {moment(self.at)}"

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.at,)

    def begin(self, run: RunActuator) -> Begun:
        return Begun(f"the step failed with {self.errno}", done=True, answer=Go(self.code))

    @classmethod
    def singles(cls, event: TraceEvent, topology: Topology, occurrence: int) -> Iterable[Storage]:
        if is_stored(event.step, event.link):
            yield from cls._both(event.step, occurrence)

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[Storage]:
        if is_stored(step.step, step.link):
            yield from cls._both(step.step, step.number)

    @classmethod
    def _both(cls, step: str, number: int) -> Iterable[Storage]:
        """It is refused for want of room; it was written, but nobody can be sure of it."""
        yield cls(Point(step, "before", number), "ENOSPC")
        yield cls(Point(step, "after", number), "EIO")

    @property
    def spares_step(self) -> bool:
        return self.at.phase == "after"

    def moved(self, point: Point) -> Storage:
        return replace(self, at=point)
