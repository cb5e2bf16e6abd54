"""Moments of a run in logical time, and the names that faults may use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from bettong.harness.faults.errors import ScheduleError
from bettong.lineage.trace import TraceEvent

DRIVER = "driver"
SERVERS = ("gateway", "receiver")

PointPhase = Literal["before", "after"]

_POINT = re.compile(r"(?:(?P<phase>before|after) +)?(?P<step>[^\s#]+)(?:#(?P<n>[1-9]\d{0,5}))?$")


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """A moment of a run: just before or just after a step's n-th occurrence.

    Written ``before batch=1/sink.commit``, ``after batch=1/commits#2``; "before" may be left out.
    """

    step: str
    phase: PointPhase = "before"
    occurrence: int = 1

    @property
    def place(self) -> str:
        """The step with its occurrence when that is not the first."""
        return self.step if self.occurrence == 1 else f"{self.step}#{self.occurrence}"

    @property
    def written(self) -> str:
        """The key of a schedule file for what happens within the step, or after it."""
        return "at" if self.phase == "before" else self.phase

    @property
    def short(self) -> str:
        """As a schedule file has it: without "before"."""
        return self.place if self.phase == "before" else str(self)

    @property
    def order(self) -> tuple[int, bool]:
        """Of two moments of one step the later one has the greater order."""
        return self.occurrence, self.phase == "after"

    def may_follow(self, start: Point) -> bool:
        """Whether it may come after another moment: it is later in that step, or in another one."""
        return self.step != start.step or self.order > start.order

    def __str__(self) -> str:
        return f"{self.phase} {self.place}"

    def is_of(self, event: TraceEvent) -> bool:
        """Whether an event is of this step and phase, whichever time the step is taken."""
        return (event.step, event.phase) == (self.step, self.phase)

    @classmethod
    def parse(cls, text: str) -> Point:
        """The moment written as ``[before|after] STEP[#n]``; raises ScheduleError."""
        found = _POINT.match(text)
        if found is None:
            raise ScheduleError(f"{text!r} is not a step: write [before|after] STEP[#occurrence]")
        phase: PointPhase = "after" if found["phase"] == "after" else "before"
        return cls(found["step"], phase, int(found["n"] or 1))


def span(start: Point, until: Point | None, within: str = "") -> str:
    """From one moment, or from ``within`` its step, until another, as ids have it."""
    return f"from {start.short}{within}" + ("" if until is None else f" until {until.short}")


@dataclass(frozen=True, slots=True)
class Topology:
    """The names that a schedule may use: nodes, and directed links ``a->b`` between them."""

    nodes: tuple[str, ...]
    links: tuple[str, ...]
