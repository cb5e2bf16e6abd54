"""Requests that a query's own code has on their way at once, on several connections.

An event loop needs no thread for that. Which of them have arrived when the driver dies is chance,
as it is with what threads do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.alike import Kind, kind_of
from bettong.harness.queries.faults.wire import CLOCK, batch_at, changes
from bettong.harness.wire import Recording, Request
from bettong.lineage.trace import TraceEvent

_BATCHES = 2
"""In so many batches, or it may be something that goes on beside them and overlaps by chance, such
as the renewal of a lease."""


def at_once(recording: Recording, events: Sequence[TraceEvent]) -> set[str]:
    """Which requests that may change something a run has had on their way at once, two of each, but
    for those of tasks, of which Spark has several."""
    in_tasks = _Tasks(events)
    found: dict[tuple[Kind, Kind], set[int]] = {}
    before: Request | None = None  # of those so far, the one whose reply came last
    for request in recording.requests:
        batch = batch_at(request.order, events)
        if batch is None or not changes(request) or in_tasks.at(request.order):
            continue
        if before is not None and request.order < before.replied and _apart(before, request):
            first, second = sorted((kind_of(before), kind_of(request)))
            found.setdefault((first, second), set()).add(batch)
        if before is None or request.replied > before.replied:
            before = request
    return {
        f"the requests {first[1]} and {second[1]} were on their way at once"
        for (first, second), batches in found.items()
        if len(batches) >= _BATCHES
    }


def _apart(a: Request, b: Request) -> bool:
    return (a.endpoint, a.connection) != (b.endpoint, b.connection)


class _Tasks:
    """When tasks were under way, by the wire's logical time."""

    def __init__(self, events: Sequence[TraceEvent]) -> None:
        self._times: list[int] = []
        self._under_way: list[int] = []
        open_now: set[str] = set()
        for event in events:
            if StepId.parse(event.step).is_task and CLOCK in event.detail:
                (open_now.add if event.phase == "before" else open_now.discard)(event.step)
                self._times.append(event.detail[CLOCK])
                self._under_way.append(len(open_now))

    def at(self, order: int) -> bool:
        place = bisect_right(self._times, order) - 1
        return place >= 0 and self._under_way[place] > 0
