"""The runners of a search that wait for work, for several threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.run.runner import QueryRunner


class FreeRunners:
    """Those that nobody uses.

    Args:
        first: the one that makes all runs in which Spark has two cores: each runner would have to
            start drivers of its own for them.
    """

    def __init__(self, first: QueryRunner) -> None:
        self._first = first
        self._all = [first]
        self._free = [first]
        self._alone = 0
        self._changed = threading.Condition()

    def add(self, runner: QueryRunner) -> None:
        """One that is free from now on."""
        with self._changed:
            self._all.append(runner)
        self._give_back(runner)

    def start_no_more(self) -> None:
        """The last runs are made: none of them has a driver started for one that dies."""
        with self._changed:
            for runner in self._all:
                runner.start_no_more()

    @contextmanager
    def taken_for(self, faults: Sequence[QueryFault]) -> Iterator[QueryRunner]:
        """A runner for a run with these faults, once it is free; nobody else's meanwhile."""
        two_cores = _first_only(faults)

        def is_free() -> bool:
            free = self._first in self._free if two_cores else bool(self._free)
            return free and not self._alone

        with self._changed:
            self._changed.wait_for(is_free)
            runner = self._first if two_cores else self._free[-1]
            self._free.remove(runner)
        try:
            yield runner
        finally:
            self._give_back(runner)

    @contextmanager
    def alone_for(self, faults: Sequence[QueryFault]) -> Iterator[QueryRunner]:
        """A runner for a run with these faults, beside which no other run goes on: what is under
        way ends first, and what would begin waits until it is over."""
        with self._changed:
            self._alone += 1
            self._changed.wait_for(lambda: len(self._free) == len(self._all))
            runner = self._first if _first_only(faults) else self._free[-1]
            self._free.remove(runner)
        try:
            yield runner
        finally:
            with self._changed:
                self._alone -= 1
            self._give_back(runner)

    def _give_back(self, runner: QueryRunner) -> None:
        with self._changed:
            self._free.append(runner)
            self._changed.notify_all()


def _first_only(faults: Sequence[QueryFault]) -> bool:
    return any(fault.loses_executor or fault.cores for fault in faults)
