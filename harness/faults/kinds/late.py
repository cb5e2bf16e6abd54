"""The wait of a batch ends later than in the clean run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from bettong.harness.faults.actuator import RunActuator
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.fault import Begun, Fault, Go, Premise, TakenStep, TakenSteps
from bettong.harness.faults.point import Point, Topology
from bettong.harness.faults.step_ids import StepId
from bettong.lineage.faults import MOMENT
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class Late(Fault):
    """The wait of a live batch ends one moment later than the scenario says: the driver is told the
    next moment, by which more has come."""

    kind: ClassVar[str] = "late"
    bound: ClassVar[str] = MOMENT
    needed: ClassVar[tuple[str, ...]] = ("at",)
    premises: ClassVar[tuple[Premise, ...]] = ("ends",)

    at: Point

    @property
    def id(self) -> str:
        return f"late({self.at.place})"

    @classmethod
    def parse(cls, entry: Entry) -> Late:
        return cls(entry.place("at"))

    def to_dict(self) -> dict[str, Any]:
        return {"at": self.at.place}

    def describe(self) -> str:
        return f"the wait of batch {StepId.parse(self.at.step).batch} ended one moment later"

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.at,)

    def begin(self, run: RunActuator) -> Begun:
        return Begun("the driver was told the next moment", done=True, answer=Go(later=1))

    @classmethod
    def singles(cls, event: TraceEvent, topology: Topology, occurrence: int) -> Iterable[Late]:
        if StepId.parse(event.step).is_wait:
            yield cls(Point(event.step, "before", occurrence))

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[Late]:
        if StepId.parse(step.step).is_wait:
            yield cls(Point(step.step, "before", step.number))

    @property
    def leaves_step(self) -> bool:
        return True

    def moved(self, point: Point) -> Late:
        return replace(self, at=point)
