"""Faults on the wire: at which requests of the clean runs' conversations they are placed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from bettong.harness.sinks.moments import batch_of
from bettong.harness.wire import CutPoint, Recording, Request, cut_points
from bettong.lineage.trace import TraceEvent

CLOCK = "clock"
"""In an event's detail: the wire's logical time when it arrived."""

How = Literal["lost", "always lost", "crash"]


@dataclass(frozen=True, slots=True)
class WireFault:
    """What strikes at a request.

    Attributes:
        point: the request, and whether it is lost before it arrives or after it was carried out.
        how: ``lost`` once; ``always lost``, however often this incarnation sends it again;
            ``crash``: the driver dies there.
    """

    point: CutPoint
    how: How

    @property
    def id(self) -> str:
        """Stable; tells the request by connection, number and label."""
        if self.how == "crash":
            when = "before" if self.point.kind == "omit" else "after"
            return f"crash(driver, {when} {self.point.request})"
        return self.point.id + (" and each time again" if self.how == "always lost" else "")


@dataclass(frozen=True, slots=True)
class WirePoint:
    """A request that may be struck: its faults, and the batch in which it is made."""

    batch: int
    faults: tuple[WireFault, ...]


def wire_points(
    first: Recording, second: Recording, events: Sequence[TraceEvent], batches: range
) -> list[WirePoint]:
    """The places for faults on the wire within some batches.

    Of requests that follow each other with the same label on one connection, the first and the
    last stand for all: an insert of many rows is a hundred requests that differ in their row only.
    """
    pinned = cut_points(first, second, ("omit", "omit-reply")).points
    by_request: dict[str, list[CutPoint]] = {}
    for point in pinned:
        by_request.setdefault(point.request, []).append(point)
    found = []
    for request in _telling(first.requests):
        batch = _batch_at(request.order, events)
        if batch in batches and request.id in by_request:
            faults = tuple(f for point in by_request[request.id] for f in _faults(point))
            found.append(WirePoint(batch, faults))
    return found


def _faults(point: CutPoint) -> Iterator[WireFault]:
    yield WireFault(point, "lost")
    if point.kind == "omit-reply":
        yield WireFault(point, "always lost")
    yield WireFault(point, "crash")


def _telling(requests: Sequence[Request]) -> Iterator[Request]:
    for _, group in groupby(requests, key=lambda r: (r.endpoint, r.connection, r.label)):
        members = list(group)
        yield members[0]
        if len(members) > 1:
            yield members[-1]


def _batch_at(order: int, events: Sequence[TraceEvent]) -> int:
    """The batch under way when a request was met: that of the step before it."""
    batch = 0
    for event in events:
        if event.detail.get(CLOCK, order) >= order and CLOCK in event.detail:
            break
        found = batch_of(event.step)
        batch = batch if found is None else found
    return batch
