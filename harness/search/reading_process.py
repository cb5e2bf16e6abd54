"""A process that reads runs while others go on: the search's own process has to answer the steps
of these, and everything that it does else holds them up."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process

from bettong.harness.faults.schedule import Schedule
from bettong.harness.search.read_run import ReadRun, RunReader
from bettong.lineage.results import Outcome
from bettong.lineage.trace import TraceEvent

_reader: RunReader | None = None


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

    def read(
        self, events: Sequence[TraceEvent], schedule: Schedule, outcome: Outcome
    ) -> Future[ReadRun]:
        """What :meth:`RunReader.read` gives; BrokenExecutor when the process was killed."""
        return self._pool.submit(_read, events, schedule, outcome)

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


def _read(events: Sequence[TraceEvent], schedule: Schedule, outcome: Outcome) -> ReadRun:
    assert _reader is not None
    return _reader.read(events, schedule, outcome)
