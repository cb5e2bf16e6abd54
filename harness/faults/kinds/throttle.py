"""A link is narrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bettong.harness.faults.actuator import Disturbance
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.link_fault import ToxicFault
from bettong.lineage.faults import DELAY


@dataclass(frozen=True, slots=True)
class Throttle(ToxicFault):
    """The request of one step crosses its link at ``rate_kb`` kilobytes a second."""

    kind: ClassVar[str] = "throttle"
    bound: ClassVar[str] = DELAY
    needed: ClassVar[tuple[str, ...]] = (*ToxicFault.needed, "rate_kb")

    rate_kb: int

    @property
    def id(self) -> str:
        return f"throttle({self.link}, {self.at.place}, {self.rate_kb} kB/s)"

    @classmethod
    def parse(cls, entry: Entry) -> Throttle:
        link, at = entry.text("link"), entry.place("at")
        return cls(link, at, entry.count("rate_kb"))

    def to_dict(self) -> dict[str, Any]:
        return {**ToxicFault.to_dict(self), "rate_kb": self.rate_kb}

    @property
    def disturbance(self) -> Disturbance:
        return Disturbance("bandwidth", {"rate": self.rate_kb})
