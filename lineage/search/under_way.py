"""Schedules that were started and whose executions nobody has taken yet."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from bettong.lineage.faults import FaultSet
from bettong.lineage.search.executor import Execution, Executor
from bettong.lineage.search.journal import Journal


class _Started(NamedTuple):
    """A schedule with its execution: from the log, from a thread, or (neither) still to be run."""

    schedule: FaultSet
    known: Execution | None
    running: Future[Execution] | None


@dataclass(slots=True)
class UnderWay:
    """Schedules that were started, the oldest first: as many at a time as the executor allows,
    which is asked while nothing runs. As long as that is one at a time, each is run when it is
    taken.
    """

    executor: Executor
    journal: Journal | None
    _started: deque[_Started] = field(default_factory=deque)
    _threads: ThreadPoolExecutor | None = None

    def __len__(self) -> int:
        return len(self._started)

    def __contains__(self, schedule: FaultSet) -> bool:
        return any(started.schedule == schedule for started in self._started)

    @property
    def size(self) -> int:
        """Of how many faults the smallest is; there must be one."""
        return min(len(started.schedule) for started in self._started)

    def start(self, schedule: FaultSet) -> None:
        """Begin to run a schedule, unless the log has it."""
        known = self.journal.get(schedule) if self.journal else None
        if not self._started:
            self._widen()
        self._started.append(self._begun(_Started(schedule, known, None)))

    def oldest(self) -> tuple[Execution, bool]:
        """The execution of the oldest, which is under way no longer, and whether it is from the
        log. Raises what the executor raises."""
        if self._threads is None and self._started[0].known is None:
            self._widen()
        schedule, known, running = self._started.popleft()
        try:
            if known is not None:
                return known, True
            return (self.executor.run(schedule) if running is None else running.result()), False
        finally:
            if not self._started:
                self._close()

    def leave(self) -> None:
        """Forget what has not begun to run."""
        begun = [s for s in self._started if s.running is not None and not s.running.cancel()]
        self._started = deque(begun)
        if not begun:
            self._close()

    def __enter__(self) -> UnderWay:
        return self

    def __exit__(self, *error: object) -> None:
        self.leave()
        self._close()

    def _widen(self) -> None:
        """Begin to run what waits, if the executor allows several at a time by now."""
        workers = self.executor.parallel
        if workers > 1:
            self._threads = ThreadPoolExecutor(workers)
            self._started = deque(map(self._begun, self._started))

    def _begun(self, started: _Started) -> _Started:
        if started.known is not None or self._threads is None:
            return started
        return started._replace(running=self._threads.submit(self.executor.run, started.schedule))

    def _close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None
