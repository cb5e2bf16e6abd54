"""Where a driver wakes between what its successor does in one place and what it does in another,
such as when a file is staged and not yet loaded into a server: what is put down in the first is
taken up from there in the second, and both drivers may share it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.alike import kind_of
from bettong.harness.queries.faults.amid import called, first_changes
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.wake import (
    Wake,
    WakeAtRequest,
    WakeAtStep,
    at_request,
    in_batch,
)
from bettong.harness.queries.faults.wire import CLOCK, batch_at
from bettong.harness.queries.faults.wire_fault import WireFault
from bettong.harness.queries.faults.zombie import Amid
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.amid_files import Operation, held_at
from bettong.harness.wire import CutPoint, Request

_FILES = ""
_MOST = 12
_MOST_OF_ONE = 6


@dataclass(frozen=True, slots=True)
class Act:
    """What a batch does in one place.

    Attributes:
        place: an endpoint; empty for files.
        order: the wire's logical time.
        kind: what it does, the same in each batch and for each row.
        at: its step, or request.
        held: whether a driver may stand still before it.
    """

    place: str
    order: int
    kind: Hashable
    at: str | Request
    held: bool


def across(own: Sequence[Act], following: Sequence[Act]) -> list[tuple[Act, Act]]:
    """Pairs of what a driver stands still before, and of what its successor is about to do in
    another place than before when it wakes: the last of each kind. First those that stand still
    where that one has been last, for what is there may be changed beside it."""
    latest: dict[Hashable, tuple[str, Act]] = {}
    for before, act in pairwise(sorted(following, key=_order)):
        if before.place != act.place:
            latest[before.place, act.place, act.kind] = before.place, act
    held = [act for act in own if act.held]
    last_first = sorted(latest.values(), key=lambda found: _order(found[1]), reverse=True)
    pairs = sorted(product(last_first, held), key=lambda pair: pair[0][0] != pair[1].place)
    return [(start, until) for (_, until), start in pairs]


def _order(act: Act) -> tuple[int, bool]:
    """A request that is made at a step has the same time, and follows it."""
    return act.order, act.place != _FILES


class Across:
    """The acts of a clean run's batches, and the faults that go by them.

    Args:
        run: the clean run.
        points: of its requests that can be told again.
        files: the operations of a batch on files that are known before they are done.
    """

    def __init__(
        self, run: QueryRun, points: Iterable[CutPoint], files: Callable[[int], list[Operation]]
    ) -> None:
        self._files = files
        self._lost = {point.request: point for point in points if point.kind == "omit"}
        self._times = {e.step: e.detail[CLOCK] for e in reversed(run.events) if CLOCK in e.detail}
        self._asked: dict[int | None, list[Request]] = {}
        for request in run.recording.requests:
            if request.order > run.starts[0]:
                batch = batch_at(request.order, run.events)
                self._asked.setdefault(batch, []).append(request)

    def of_next(self, batch: int) -> list[QueryFault]:
        """A driver that stood still wakes amid its successor's work on the next batch."""
        pairs = across(self._acts(batch), self._acts(batch + 1))
        return [self._fault(x, self._within(until, batch + 1)) for x, until in pairs[:_MOST]]

    def of_replay(self, batch: int) -> list[QueryFault]:
        """The same amid its successor's replay of the batch, before what comes later there."""
        acts = self._acts(batch)
        pairs = [(x, until) for x, until in across(acts, acts) if _order(x) < _order(until)]
        return [self._fault(x, self._again(until, batch)) for x, until in pairs[:_MOST_OF_ONE]]

    def _acts(self, batch: int) -> list[Act]:
        operations = self._files(batch)
        held = set(held_at(operations))
        acts = [
            Act(_FILES, self._times[step], (kind, on), step, step in held)
            for step, kind, on in operations
        ]
        asked = [request for request in self._asked.get(batch, ()) if request.id in self._lost]
        for endpoint in dict.fromkeys(request.endpoint for request in asked):
            there = [request for request in asked if request.endpoint == endpoint]
            first = set(first_changes(there))
            acts += [Act(endpoint, r.order, kind_of(r), r, r.id in first) for r in there]
        return acts

    def _fault(self, start: Act, until: Wake) -> QueryFault:
        if isinstance(start.at, str):
            return Amid(Point(start.at), until)
        return WireFault(self._lost[start.at.id], "amid", until)

    def _within(self, until: Act, batch: int) -> Wake:
        """Told within its batch."""
        if isinstance(until.at, str):
            return WakeAtStep(Point(until.at))
        name, number = called(until.at, self._there(until, batch))
        return WakeAtRequest(in_batch("omit", until.place, until.at.id, name, number, batch))

    def _again(self, until: Act, batch: int) -> Wake:
        """Told since the restart, with which the batch begins, after what is asked before any."""
        if isinstance(until.at, str):
            return WakeAtStep(Point(until.at))
        name, number = called(until.at, self._there(until, None, batch))
        return WakeAtRequest(at_request("omit", until.place, name, number))

    def _there(self, until: Act, *batches: int | None) -> list[Request]:
        asked = (request for batch in batches for request in self._asked.get(batch, ()))
        return [request for request in asked if request.endpoint == until.place]
