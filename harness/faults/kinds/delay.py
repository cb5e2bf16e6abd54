"""A link is slow to answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bettong.harness.faults.actuator import Disturbance
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.link_fault import ToxicFault
from bettong.lineage.faults import DELAY


@dataclass(frozen=True, slots=True)
class Delay(ToxicFault):
    """The request of one step takes longer on its link, by ``latency_ms`` milliseconds."""

    kind: ClassVar[str] = "delay"
    bound: ClassVar[str] = DELAY
    needed: ClassVar[tuple[str, ...]] = (*ToxicFault.needed, "latency_ms")

    latency_ms: int

    @property
    def id(self) -> str:
        return f"delay({self.link}, {self.at.place}, {self.latency_ms} ms)"

    @classmethod
    def parse(cls, entry: Entry) -> Delay:
        link, at = entry.text("link"), entry.place("at")
        return cls(link, at, entry.count("latency_ms"))

    def to_dict(self) -> dict[str, Any]:
        return {**ToxicFault.to_dict(self), "latency_ms": self.latency_ms}

    @property
    def disturbance(self) -> Disturbance:
        return Disturbance("latency", {"latency": self.latency_ms})
