"""Which batches after the window do what none before them does, such as those that merge what the
others have written: faults fire in them too."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Set

from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.alike import shape, shapes_that_tell
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.faults.read_only_requests import harmless
from bettong.harness.queries.faults.wire import batch_at
from bettong.harness.queries.run.observation import QueryRun

_Done = Iterator[tuple[int, Hashable]]
"""What is done in which batch."""


def later_batches(run: QueryRun, other: QueryRun, window: int) -> frozenset[int]:
    """Those of a clean run with a file operation of a kind, a file with a name or a request of a
    kind that no batch before has. Names and what requests say count only as far as the other clean
    run has them as well: what is made at random tells nothing."""
    found = by_operation(run.crash_points, window)
    for done in (_names, _requests):
        found |= _unlike(done(run), window, {what for _, what in done(other)})
    return found


def by_operation(crash_points: Iterable[CrashPoint], window: int) -> frozenset[int]:
    """Those with a file operation of a kind that no batch before has."""
    return _unlike(_operations(crash_points), window)


def _unlike(done: _Done, window: int, common: Set[Hashable] | None = None) -> frozenset[int]:
    known: set[Hashable] = set()
    found: set[int] = set()
    for batch, what in done:
        if what not in known and batch >= window and (common is None or what in common):
            found.add(batch)
        known.add(what)
    return frozenset(found)


def _operations(crash_points: Iterable[CrashPoint]) -> _Done:
    for point in crash_points:
        file = StepId.parse(point.point.step).file
        if file is not None and point.batch is not None:
            yield point.batch, file[1]


def _names(run: QueryRun) -> _Done:
    for event in run.events:
        step = StepId.parse(event.step)
        if step.file is not None and step.batch is not None:
            yield step.batch, (step.file[1], shape(str(event.detail.get("path", ""))))


def _requests(run: QueryRun) -> _Done:
    asked = [request for request in run.recording.requests if not harmless(request.label)]
    shape_of = shapes_that_tell(asked)
    for request in asked:
        batch = batch_at(request.order, run.events)
        if batch is not None:
            yield batch, shape_of(request)
