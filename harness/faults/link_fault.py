"""What the faults have in common that hit what one step sends on one link."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from bettong.harness.faults.actuator import Disturbance, LinkActuator, RunActuator
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.fault import Begun, Ended, Fault
from bettong.harness.faults.point import Point
from bettong.harness.faults.wording import ends_in_words, moment


@dataclass(frozen=True, slots=True)
class LinkFault(Fault):
    """A fault on a directed link ``a->b`` as long as one step lasts."""

    needed: ClassVar[tuple[str, ...]] = ("link", "at")

    link: str
    at: Point

    @property
    def id(self) -> str:
        return f"{self.kind}({self.link}, {self.at.place})"

    @classmethod
    def parse(cls, entry: Entry) -> Self:
        link = entry.text("link")
        return cls(link, entry.place("at"))

    def to_dict(self) -> dict[str, Any]:
        return {"link": self.link, "at": self.at.place}

    def describe(self) -> str:
        return f"the link from {ends_in_words(self.link)} was disturbed {moment(self.at)}"

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.at,)

    @property
    def links(self) -> tuple[str, ...]:
        return (self.link,)

    @property
    def place(self) -> str:
        return self.link

    @property
    def link_held(self) -> str | None:
        return self.link

    @abstractmethod
    def arm(self, links: LinkActuator) -> str:
        """Put it in force on its link; the evidence."""

    def begin(self, run: RunActuator) -> Begun:
        return Begun(self.arm(run))

    def end(self, run: RunActuator, met: int, step_failed: bool) -> Ended:
        healed = run.heal(self.id, step_failed)
        unseen = healed.fired is None and self.loses and not step_failed
        return Ended([healed.evidence], fired=not (healed.fired is False or unseen))

    def moved(self, point: Point) -> Self:
        return replace(self, at=point)


@dataclass(frozen=True, slots=True)
class ToxicFault(LinkFault):
    """A fault that a toxic on the link brings about."""

    @property
    @abstractmethod
    def disturbance(self) -> Disturbance:
        """What it does to the link."""

    @property
    def loses(self) -> bool:
        return self.disturbance.loses

    def arm(self, links: LinkActuator) -> str:
        return links.disturb(self.id, self.link, self.disturbance)


def is_repeated(link: str) -> bool:
    """Whether a repeater can stand before a link: what the senders and the driver ask of the
    gateway and the receiver."""
    a, _, b = link.partition("->")
    return b in ("gateway", "receiver") and a.split("-")[0] in ("sender", "driver")
