"""A link deals out what it carries in pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bettong.harness.faults.actuator import Disturbance
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.link_fault import ToxicFault
from bettong.lineage.faults import DELAY


@dataclass(frozen=True, slots=True)
class Slice(ToxicFault):
    """The request of one step arrives in pieces of about ``size`` bytes."""

    kind: ClassVar[str] = "slice"
    bound: ClassVar[str] = DELAY
    needed: ClassVar[tuple[str, ...]] = (*ToxicFault.needed, "size")

    size: int

    @property
    def id(self) -> str:
        return f"slice({self.link}, {self.at.place}, {self.size} bytes)"

    @classmethod
    def parse(cls, entry: Entry) -> Slice:
        link, at = entry.text("link"), entry.place("at")
        return cls(link, at, entry.count("size"))

    def to_dict(self) -> dict[str, Any]:
        return {**ToxicFault.to_dict(self), "size": self.size}

    @property
    def disturbance(self) -> Disturbance:
        return Disturbance("slicer", {"average_size": self.size})
