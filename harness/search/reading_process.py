"""A process that reads runs while others go on: the search's own process has to answer the steps
of these, and everything that it does else holds them up."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context, parent_process
from typing import Any

from bettong.harness.faults.schedule import Schedule
from bettong.harness.search.read_run import ReadRun, RunReader
from bettong.lineage.graph import Lineage
from bettong.lineage.results import Outcome
from bettong.lineage.search.lineage_table import LineageTable
from bettong.lineage.trace import TraceEvent

_reader: RunReader | None = None
_table = LineageTable()

_Written = tuple[ReadRun, dict[str, Any]]
"""A run without its lineage, and what a table has written of that."""


class Reading:
    """A run that another process reads.

    Attributes:
        received: what this process knows of it.
    """

    def __init__(self, process: ReadingProcess, pending: Future[_Written]) -> None:
        self.received: Future[ReadRun] = Future()
        self._process = process
        self._pending = pending

    def result(self) -> ReadRun:
        """What the run shows, its lineage in a table; BrokenExecutor when the process was killed.
        One thread asks for all of them."""
        self._process.receive(self)
        return self.received.result()

    def take_in(self, table: LineageTable) -> None:
        """Wait for it, and read its lineage into the table."""
        try:
            read, written = self._pending.result()
        except Exception as e:
            self.received.set_exception(e)
        else:
            self.received.set_result(replace(read, lineage=table.read_lazily(written)))


class ReadingProcess:
    """Reads the runs of a search, one after the other."""

    def __init__(self, reader: RunReader) -> None:
        self._pool = ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=_begin, initargs=(reader,)
        )
        # An interrupt from the keyboard goes to all processes, and is for the search alone to take.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._pool.submit(os.getpid)  # starts the process
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._table = LineageTable()
        self._given: deque[Reading] = deque()
        self._in_order = threading.Lock()

    def read(self, events: Sequence[TraceEvent], schedule: Schedule, outcome: Outcome) -> Reading:
        """Begin to read a run as :meth:`RunReader.read` does."""
        with self._in_order:
            reading = Reading(self, self._pool.submit(_read, events, schedule, outcome))
            self._given.append(reading)
        return reading

    def receive(self, until: Reading) -> None:
        """Take in what was read up to this one: a table is read as it was written."""
        while not until.received.done():
            self._given.popleft().take_in(self._table)

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown(cancel_futures=True)


def _begin(reader: RunReader) -> None:
    global _reader
    _reader = reader
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End as the parent does, be it killed: a pool does not see to that."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _read(events: Sequence[TraceEvent], schedule: Schedule, outcome: Outcome) -> _Written:
    assert _reader is not None
    read = _reader.read(events, schedule, outcome)
    return replace(read, lineage=Lineage()), _table.write(read.lineage)
