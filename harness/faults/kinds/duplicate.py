"""A request comes twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from bettong.harness.faults.actuator import LinkActuator
from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.fault import Premise, TakenStep, TakenSteps
from bettong.harness.faults.link_fault import LinkFault, is_repeated
from bettong.harness.faults.point import Point, Topology
from bettong.harness.faults.step_ids import StepId
from bettong.harness.faults.wording import ends_in_words, moment
from bettong.lineage.faults import DUPLICATE
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class Duplicate(LinkFault):
    """The request of one step is delivered twice: when it has been answered, a copy of it arrives
    on a connection of its own, and nobody waits for what the copy is answered."""

    kind: ClassVar[str] = "duplicate"
    bound: ClassVar[str] = DUPLICATE
    premises: ClassVar[tuple[Premise, ...]] = ("ends",)

    def describe(self) -> str:
        return f"the request from {ends_in_words(self.link)} arrived twice, {moment(self.at)}"

    @property
    def repeated_links(self) -> tuple[str, ...]:
        return (self.link,)

    def check(self, topology: Topology) -> None:
        if StepId.parse(self.at.step).connects:
            raise ScheduleError(f"{self.id}: a connection is made once, and is no request")
        if not is_repeated(self.link):
            raise ScheduleError(
                f"{self.id}: only what senders and the driver ask of the gateway and the receiver "
                "can be delivered twice; an answer belongs to the connection of its request"
            )

    def arm(self, links: LinkActuator) -> str:
        return links.repeat(self.id, self.link)

    @classmethod
    def singles(cls, event: TraceEvent, topology: Topology, occurrence: int) -> Iterable[Duplicate]:
        if event.link in topology.links and _is_request(event.link, event.step):
            yield cls(event.link, Point(event.step, "before", occurrence))

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[Duplicate]:
        if step.link is not None and _is_request(step.link, step.step):
            yield cls(step.link, Point(step.step, "before", step.number))

    @property
    def leaves_step(self) -> bool:
        return True


def _is_request(link: str, step: str) -> bool:
    """Whether it can be delivered twice; a connection is made once."""
    return is_repeated(link) and not StepId.parse(step).connects
