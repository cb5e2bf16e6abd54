"""A driver lives on beside its successor: until that one has ended the work, or is amid a batch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from bettong.harness.faults.kinds import Pause
from bettong.harness.faults.point import DRIVER, Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.query_fault import Injection, QueryFault
from bettong.harness.queries.faults.wake import Wake, parse_wake
from bettong.harness.queries.faults.wording import point_in_words
from bettong.harness.queries.sink.file_steps import CHANGED, HALF, LINE, LOOK, OUTSIDE
from bettong.lineage.trace import TraceEvent

WOKEN = "the one that took over was amid a batch"
WAITED = "the one that took over waited for it"
MISSED = "the one that took over had found the batch done and ended the work"
"""The evidence of what a driver that had stood still went on at."""
_ID = re.compile(r"pause\(driver, from (.+) until (.+)\)$")


@dataclass(frozen=True, slots=True)
class Zombie(QueryFault):
    """The driver is paused, another one takes over and ends the work, then the first goes on."""

    start: Point
    until: Point

    @property
    def takes_over(self) -> bool:
        return True

    @property
    def placed(self) -> tuple[Pause]:
        return (Pause(DRIVER, self.start, self.until),)

    @classmethod
    def parse(cls, id: str) -> Zombie | None:
        found = _ID.match(id)
        if found is None:
            return None
        start, until = Point.parse(found[1]), Point.parse(found[2])
        return cls(start, until) if StepId.parse(until.step).ends_batch else None

    def describe(self) -> str:
        return (
            f"The driver stood still {point_in_words(self.start)}, and a new one took over; when "
            "that had ended the work, or waited for what the old one had locked, the old one went "
            "on."
        )

    @property
    def bound(self) -> str:
        return "pause"

    @property
    def rank(self) -> int | None:
        return 3 if StepId.parse(self.start.step).file is None else None

    @property
    def mechanism(self) -> str:
        return "zombie"

    @property
    def doubled(self) -> str:
        return "Both drivers wrote the same rows."


@dataclass(frozen=True, slots=True)
class Amid(QueryFault):
    """The driver stands still, another one takes over, and when that is amid the same batch or the
    next one it waits there until what the first one still does has come to its end: both share what
    is meant for one, such as a file aside."""

    beside_steps: ClassVar[bool] = True

    start: Point
    until: Wake

    @property
    def takes_over(self) -> bool:
        return True

    @property
    def wakes_amid(self) -> bool:
        return True

    @property
    def id(self) -> str:
        return f"pause({DRIVER}, from {self.start.short} until {self.until})"

    @classmethod
    def parse(cls, id: str) -> Amid | None:
        found = _ID.match(id)
        return None if found is None else cls(Point.parse(found[1]), parse_wake(found[2]))

    def describe(self) -> str:
        return (
            f"The driver stood still {point_in_words(self.start)}, and a new one took over; "
            f"{self.until.in_words}, and the old one went on."
        )

    def arm(self, run: Injection, again: bool) -> None:
        self.until.arm(self.id, run, again)

    def met(self, event: TraceEvent, run: Injection) -> None:
        if self.start.is_of(event):
            run.hold_driver_at(self.id)
            return
        self.until.met(self.id, event, run)
        if self._is_past(event):
            run.goes_past(self.id)

    def proven(self, evidence: str) -> bool:
        """A driver that had to wait for the first one could not come so far, and one that finds the
        batch done has nothing to replay: the first one was late, and no more."""
        missed = self._in_replay and MISSED in evidence
        return WOKEN in evidence or WAITED in evidence or missed

    @property
    def _in_replay(self) -> bool:
        return self.until.batch in (None, StepId.parse(self.start.step).batch)

    def _is_past(self, event: TraceEvent) -> bool:
        """Whether it is of the same batch, and comes later there than where the first one stands;
        what does not change files is counted apart, and so is what starts the query."""
        step, start = StepId.parse(event.step), StepId.parse(self.start.step)
        if step.batch != start.batch or step.file is None or start.file is None:
            return False
        if event.detail.get(OUTSIDE):
            return False
        return step.file[1] not in (CHANGED, HALF, LINE, LOOK) and step.file[0] > start.file[0]

    @property
    def bound(self) -> str:
        return "pause"

    @property
    def mechanism(self) -> str:
        return "zombie"

    @property
    def doubled(self) -> str:
        return "Both drivers wrote the same rows."
