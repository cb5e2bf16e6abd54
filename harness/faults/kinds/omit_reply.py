"""A reply is lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from bettong.harness.faults.actuator import Disturbance
from bettong.harness.faults.fault import Premise, TakenStep, TakenSteps
from bettong.harness.faults.link_fault import ToxicFault
from bettong.harness.faults.point import Point, Topology
from bettong.harness.faults.step_ids import StepId
from bettong.harness.faults.wording import ends_in_words, moment
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class OmitReply(ToxicFault):
    """The request of one step arrives and is carried out, but its reply is lost."""

    kind: ClassVar[str] = "omit-reply"
    premises: ClassVar[tuple[Premise, ...]] = ("answered",)

    def describe(self) -> str:
        return (
            f"the request from {ends_in_words(self.link)} was carried out, but its answer was "
            f"lost, {moment(self.at)}"
        )

    @property
    def disturbance(self) -> Disturbance:
        return Disturbance("limit_data", {"bytes": 0}, of_reply=True, loses=True)

    @classmethod
    def singles(cls, event: TraceEvent, topology: Topology, occurrence: int) -> Iterable[OmitReply]:
        if event.link in topology.links and not StepId.parse(event.step).is_push:
            yield cls(event.link, Point(event.step, "before", occurrence))

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[OmitReply]:
        if step.link is not None:
            yield cls(step.link, Point(step.step, "before", step.number))
