"""Where a driver that has taken over has come to when the one that stands still goes on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.faults.wording import ordinal
from bettong.harness.queries.faults.query_fault import Injection
from bettong.harness.queries.faults.wording import point_in_words
from bettong.harness.wire import CutPoint
from bettong.harness.wire.cutpoints import Kind
from bettong.lineage.trace import TraceEvent

_REQUEST = re.compile(r"([^/=]+)/(?:restarted|batch=(\d+))/(.+)=(\d+)$")


@dataclass(frozen=True, slots=True)
class WakeAtStep:
    """It is about to take a step."""

    point: Point

    def __str__(self) -> str:
        return self.point.short

    @property
    def batch(self) -> int | None:
        """The batch that the step belongs to."""
        return StepId.parse(self.point.step).batch

    @property
    def in_words(self) -> str:
        return f"{point_in_words(self.point)} that one stood still"

    def arm(self, fault: str, run: Injection, again: bool) -> None:
        """A run has begun, or the query is started ``again``."""

    def met(self, fault: str, event: TraceEvent, run: Injection) -> None:
        """A step is taken."""
        if self.point.is_of(event):
            run.wake_now(fault)


@dataclass(frozen=True, slots=True)
class WakeAtRequest:
    """It is about to make a request: one that is counted within a later batch, or since the
    restart."""

    request: CutPoint

    def __str__(self) -> str:
        return self.request.place

    @property
    def batch(self) -> int | None:
        """The batch within which it is counted; None since the restart."""
        return self.request.batch

    @property
    def in_words(self) -> str:
        later = f"its {ordinal(self.request.occurrence)} {self.request.key}"
        if self.batch is not None:
            later += f" of batch {self.batch}"
        return f"when that one was about to send {later} it stood still"

    def arm(self, fault: str, run: Injection, again: bool) -> None:
        """A run has begun, or the query is started ``again``."""
        if again and self.batch is None:
            run.wake_amid(fault, self.request)

    def met(self, fault: str, event: TraceEvent, run: Injection) -> None:
        """A step is taken."""
        if self.batch is not None and begins(self.batch).is_of(event):
            run.wake_amid(fault, self.request)


Wake = WakeAtStep | WakeAtRequest


def parse_wake(text: str) -> Wake:
    """What is written in an id; raises ScheduleError."""
    found = _REQUEST.match(text)
    if found is None:
        return WakeAtStep(Point.parse(text))
    endpoint, batch, label, number = found.groups()
    if batch is None:
        return WakeAtRequest(at_request("omit", endpoint, label, int(number)))
    return WakeAtRequest(in_batch("omit", endpoint, "", label, int(number), int(batch)))


def at_request(kind: Kind, endpoint: str, label: str, number: int) -> CutPoint:
    """The request of that number, from 1, among those of its label since the restart."""
    request = f"{endpoint}/restarted/{label}={number}"
    return CutPoint(kind, endpoint, request, "since", label, number, label)


def in_batch(
    kind: Kind, endpoint: str, request: str, label: str, number: int, batch: int
) -> CutPoint:
    """The request of that number, from 1, among those of its label in a batch."""
    return CutPoint(kind, endpoint, request, "batch", label, number, label, batch)


def begins(batch: int) -> Point:
    """The moment at which a batch begins."""
    return Point(f"batch={batch}/offsets", "after")
