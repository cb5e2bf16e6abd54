"""A node dies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from bettong.harness.faults.actuator import RunActuator
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.fault import Begun, Premise, TakenStep, TakenSteps
from bettong.harness.faults.node_fault import DeadlyFault
from bettong.harness.faults.point import Point, PointPhase, Topology
from bettong.harness.faults.wording import moment
from bettong.lineage.faults import CRASH
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class Crash(DeadlyFault):
    """SIGKILL of every process of a node; no clean-up code runs.

    Attributes:
        restart: whether the node comes back, with its durable state and nothing else.
    """

    kind: ClassVar[str] = "crash"
    bound: ClassVar[str] = CRASH
    needed: ClassVar[tuple[str, ...]] = ("node",)
    optional: ClassVar[tuple[str, ...]] = ("before", "after", "restart")
    premises: ClassVar[tuple[Premise, ...]] = ("lives before", "lives after")

    restart: bool = True

    @property
    def id(self) -> str:
        return f"crash({self.node}, {self.at}{'' if self.restart else ', for good'})"

    @classmethod
    def parse(cls, entry: Entry) -> Crash:
        restart = entry.flag("restart", True)
        return cls(entry.text("node"), entry.moment(), restart)

    def to_dict(self) -> dict[str, Any]:
        last = {} if self.restart else {"restart": False}
        return {"node": self.node, self.at.phase: self.at.place, **last}

    def describe(self) -> str:
        after = " and came back" if self.restart else " for good"
        return f"the {self.node} was killed {moment(self.at)}{after}"

    @property
    def place(self) -> str:
        return self.node

    @property
    def parts_for_good(self) -> bool:
        return not self.restart

    def begin(self, run: RunActuator) -> Begun:
        outcome = run.crash(self.node, self.restart)
        return Begun(outcome.evidence, done=bool(outcome.fired))

    @classmethod
    def singles(cls, event: TraceEvent, topology: Topology, occurrence: int) -> Iterable[Crash]:
        phases: tuple[PointPhase, ...] = ("before", "after")
        for node in topology.nodes:
            if node in (event.node, *(event.link or "").split("->")):
                yield from (cls(node, Point(event.step, phase, occurrence)) for phase in phases)

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[Crash]:
        phase: PointPhase = "before" if premise == "lives before" else "after"
        yield cls(step.node, Point(step.step, phase, step.number))
