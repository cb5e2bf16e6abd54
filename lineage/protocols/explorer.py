"""The exhaustive explorer: every schedule that the bounds allow, run and counted.

It shares nothing with the search but the simulator: no lineage, no solver. On small bounds it is
the judge of what the search says.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic

from bettong.lineage.faults import FaultSet
from bettong.lineage.protocols.executor import RoundExecutor, judge, unasked
from bettong.lineage.results import Outcome
from bettong.lineage.search.events import Advanced, Handler, ignore

WORTH_SHARING = 20_000
"""Below so many schedules a second process costs more than it saves."""
LOOK = 1000


@dataclass(slots=True)
class Exploration:
    """What running every schedule found.

    Attributes:
        outcomes: how many runs had which outcome.
        minimal: violating schedules of which no proper subset violates, smallest first.
        first: position of the first violation, in the order of :meth:`FailureSpec.schedules`,
            counted from 1 (the clean run), or None.
        unasked: the first run with a goal of which nothing is asked (see
            :func:`bettong.lineage.protocols.executor.unasked`): its position, and its schedule.
        executions: how many runs there were.
        complete: whether that was all of them.
        seconds: wall time.
    """

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    minimal: list[FaultSet] = field(default_factory=list)
    first: int | None = None
    unasked: tuple[int, FaultSet] | None = None
    executions: int = 0
    complete: bool = True
    seconds: float = 0.0

    def add(self, schedule: FaultSet, outcome: Outcome, position: int) -> None:
        """Count one run."""
        self.executions += 1
        self.outcomes[outcome] += 1
        if outcome != "violation":
            return
        self.first = position if self.first is None else min(self.first, position)
        self._keep(schedule)

    def _keep(self, schedule: FaultSet) -> None:
        if not any(known <= schedule for known in self.minimal):
            self.minimal = [known for known in self.minimal if not schedule < known]
            self.minimal.append(schedule)

    def join(self, other: Exploration) -> None:
        """Take in what another process found."""
        self.outcomes += other.outcomes
        self.executions += other.executions
        self.complete &= other.complete
        firsts = [f for f in (self.first, other.first) if f is not None]
        self.first = min(firsts, default=None)
        open_ones = [u for u in (self.unasked, other.unasked) if u is not None]
        self.unasked = min(open_ones, key=lambda u: u[0], default=None)
        for schedule in other.minimal:
            self._keep(schedule)


def explore(
    executor: RoundExecutor,
    *,
    processes: int = 0,
    runs: int | None = None,
    seconds: float | None = None,
    on_event: Handler = ignore,
) -> Exploration:
    """Run every schedule of the executor's failure specification.

    ``processes``: how many to use; 0 for as many as there are processors (one for a small space).
    ``runs``, ``seconds``: stop after so many; the exploration is then not complete.
    ``on_event``: given from time to time how far one process has come; several report nothing
    before they end.
    """
    began = monotonic()
    size = executor.spec.size()
    few = min(size, runs) if runs is not None else size
    count = processes or (len(os.sched_getaffinity(0)) if few >= WORTH_SHARING else 1)
    baseline = executor.baseline  # before forking, so that all share it
    assert baseline is not None
    if count == 1:
        found = _share(executor, 0, 1, runs, seconds, on_event)
    else:
        found = _forked(executor, count, runs, seconds)
    found.minimal.sort(key=lambda s: (len(s), sorted(s)))
    found.complete = found.executions == size
    found.seconds = monotonic() - began
    return found


def _share(
    executor: RoundExecutor,
    index: int,
    of: int,
    runs: int | None,
    seconds: float | None,
    on_event: Handler,
) -> Exploration:
    found = Exploration()
    end = None if seconds is None else monotonic() + seconds
    schedules: Iterator[FaultSet] = islice(executor.spec.schedules(), index, runs, of)
    for number, schedule in enumerate(schedules):
        if number % LOOK == 0:
            if end is not None and monotonic() > end:
                break
            on_event(Advanced(found.executions, found.outcomes["violation"]))
        seen, position = executor.judged(schedule), number * of + index + 1
        found.add(schedule, judge(executor.baseline, seen)[0], position)
        if found.unasked is None and unasked(executor.baseline, seen):
            found.unasked = position, schedule
    return found


def _forked(
    executor: RoundExecutor, count: int, runs: int | None, seconds: float | None
) -> Exploration:
    context = multiprocessing.get_context("fork")
    ends, workers = [], []
    for index in range(count):
        reading, writing = context.Pipe(duplex=False)

        def work(index: int = index, writing: object = writing) -> None:
            writing.send(_share(executor, index, count, runs, seconds, ignore))  # type: ignore[attr-defined]

        worker = context.Process(target=work, daemon=True)
        worker.start()
        writing.close()
        ends.append(reading)
        workers.append(worker)
    found = Exploration()
    for reading in ends:
        found.join(reading.recv())
    for worker in workers:
        worker.join()
    return found
