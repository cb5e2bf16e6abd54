"""The power of a node fails while it writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from bettong.harness.faults.actuator import RunActuator
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.fault import Begun, Fault, Go, Premise, TakenStep, TakenSteps
from bettong.harness.faults.point import Point
from bettong.harness.faults.wording import moment
from bettong.lineage.faults import STORAGE
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class PowerCut(Fault):
    """The power of a node is cut within a step, right before the step's n-th ``sync``: of the last
    write only half is kept, or a new name is lost. The node comes back."""

    kind: ClassVar[str] = "power-cut"
    bound: ClassVar[str] = STORAGE
    needed: ClassVar[tuple[str, ...]] = ("node", "at")
    optional: ClassVar[tuple[str, ...]] = ("sync",)
    premises: ClassVar[tuple[Premise, ...]] = ("ends",)
    reports: ClassVar[str] = "power-cut/"

    node: str
    at: Point
    sync: int = 1

    @property
    def id(self) -> str:
        which = "" if self.sync == 1 else f", sync {self.sync}"
        return f"power-cut({self.node}, {self.at.place}{which})"

    @classmethod
    def parse(cls, entry: Entry) -> PowerCut:
        at = entry.place("at")
        sync = entry.count("sync", 1)
        return cls(entry.text("node"), at, sync)

    def to_dict(self) -> dict[str, Any]:
        which = {} if self.sync == 1 else {"sync": self.sync}
        return {"node": self.node, "at": self.at.place, **which}

    def describe(self) -> str:
        return f"the power of the {self.node} was cut while {moment(self.at).partition(' ')[2]}"

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.at,)

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,)

    @property
    def place(self) -> str:
        return self.node

    @property
    def kills(self) -> tuple[str, ...]:
        return (self.node,)

    def begin(self, run: RunActuator) -> Begun | None:
        if self.node != run.node:
            return None  # another node takes this step
        return Begun("", answer=Go(cut=self.sync))

    def reported(self, event: TraceEvent, run: RunActuator) -> Begun | None:
        if event.step != f"{self.reports}{self.at.step}":
            return None
        outcome = run.crash(self.node, restart=True)
        lost = f"lost: {event.detail.get('lost')}"
        return Begun(f"{lost}; {outcome.evidence}", done=bool(outcome.fired))

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[PowerCut]:
        at = Point(step.step, "before", step.number)
        return (cls(step.node, at, sync) for sync in range(1, step.synced + 1))

    def moved(self, point: Point) -> PowerCut:
        return replace(self, at=point)
