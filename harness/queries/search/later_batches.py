"""Which batches after the window do what none before them does, such as those that merge what the
others have written, and which of those before its last one do what that one does not, such as a
first one that empties its target: faults fire in them too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Set
from dataclasses import replace

from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.alike import shape, shapes_that_tell
from bettong.harness.queries.faults.read_only_requests import harmless
from bettong.harness.queries.faults.wire import batch_at
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.sink.file_steps import CHANGED, is_look
from bettong.lineage.trace import TraceEvent

_Done = Iterator[tuple[int, Hashable]]
"""What is done in which batch."""

_MAKES_FOLDER = "mkdir"


def later_batches(run: QueryRun, other: QueryRun, window: int) -> frozenset[int]:
    """Those of a clean run with a stage, a file operation, a file with a name or a request of a
    kind that no batch before has, with more stages or file operations, or with another order of
    what threads do. What the other clean run does not have as well counts for nothing: what is
    made at random tells nothing."""
    found: set[int] = set()
    for done in (_steps, _names, _requests):
        found |= _unlike(done(run), window, {what for _, what in done(other)})
    if run.in_turn:
        found.add(window)
    return frozenset(found)


def earlier_batches(run: QueryRun, other: QueryRun, window: int) -> frozenset[int]:
    """Those before the window's last with a stage, a file operation or a kind of request that this
    one does not have, or more often. A folder that is made once is nothing of its own."""
    found: set[int] = set()
    folders = [what[1] for _, what in _names(run) if what[0] == _MAKES_FOLDER]
    made = {(op, folder) for folder in folders for op in (_MAKES_FOLDER, CHANGED)}
    for done in (_stages, _names, _requests):
        by_batch: dict[int, Counter[Hashable]] = {}
        for batch, what in done(run):
            if what not in made:
                by_batch.setdefault(batch, Counter())[what] += 1
        last = by_batch.get(window - 1, Counter())
        common = {what for _, what in done(other)}
        for batch, counts in by_batch.items():
            if batch < window - 1 and (counts - last).keys() & common:
                found.add(batch)
    return frozenset(found)


def batches_of_more(run: QueryRun, clean: QueryRun, other: QueryRun) -> frozenset[int]:
    """Those of a run of more batches that do what no batch of clean runs does, such as to join ten
    small files into one. What is done again after its driver has died counts for nothing, and so
    do names that are made at random."""
    died_in = max((e.batch or 0 for e in run.crash_points if e.incarnation == 1), default=0)
    once = replace(run, events=[e for e in run.events if _is_first(e, died_in)])
    found: set[int] = set()
    for done in (_steps, _names, _requests):
        known = {what for _, what in done(clean)}
        if known != {what for _, what in done(other)}:
            continue
        # Which of its requests a batch has made again is not told here.
        twice = {died_in} if done == _requests else set()
        found.update(n for n, what in done(once) if what not in known and n not in twice)
    return frozenset(found)


def _is_first(event: TraceEvent, died_in: int) -> bool:
    batch = StepId.parse(event.step).batch
    return event.incarnation == 1 or (batch is not None and batch > died_in)


def _stages(run: QueryRun) -> _Done:
    for event in run.events:
        step = StepId.parse(event.step)
        if step.is_task and not step.is_concurrent and event.phase == "before":
            assert step.task is not None
            batch, partition, _ = step.task
            if partition == 0:
                yield batch, step.stage


def _unlike(done: _Done, window: int, common: Set[Hashable]) -> set[int]:
    known: set[Hashable] = set()
    found: set[int] = set()
    for batch, what in done:
        if what not in known and batch >= window and what in common:
            found.add(batch)
        known.add(what)
    return found


def _steps(run: QueryRun) -> _Done:
    """Stages are numbered within their batch, file operations counted: more of them is work that
    those before did not have. The files of the state are those of its version in every batch."""
    for event in run.events:
        step = StepId.parse(event.step)
        if step.batch is None or step.is_state_file or is_look(event):
            continue
        yield step.batch, (step.shape, step.stage) if step.file is None else step.within_batch


def _names(run: QueryRun) -> Iterator[tuple[int, tuple[str, str]]]:
    for event in run.events:
        step = StepId.parse(event.step)
        if step.file is not None and step.batch is not None and not is_look(event):
            yield step.batch, (step.file[1], shape(str(event.detail.get("path", ""))))


def _requests(run: QueryRun) -> _Done:
    asked = [request for request in run.recording.requests if not harmless(request.label)]
    shape_of = shapes_that_tell(asked)
    for request in asked:
        batch = batch_at(request.order, run.events)
        if batch is not None:
            yield batch, shape_of(request)
