"""A connection is reset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bettong.harness.faults.actuator import Disturbance
from bettong.harness.faults.link_fault import ToxicFault


@dataclass(frozen=True, slots=True)
class Reset(ToxicFault):
    """The connection of one step is reset (RST) when its request is on the way."""

    kind: ClassVar[str] = "reset"

    @property
    def disturbance(self) -> Disturbance:
        return Disturbance("reset_peer", {"timeout": 0}, loses=True)
