"""What the faults have in common by which a node dies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import Point


@dataclass(frozen=True, slots=True)
class DeadlyFault(Fault):
    """A fault that ends every process of one node at one moment."""

    node: str
    at: Point

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.at,)

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,)

    @property
    def kills(self) -> tuple[str, ...]:
        return (self.node,)

    def moved(self, point: Point) -> Self:
        return replace(self, at=point)
