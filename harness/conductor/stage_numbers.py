"""Stage numbers that are the same in each run: counted from 0 within a batch, in the order in
which they are first seen, for Spark counts them over the life of a session."""

from __future__ import annotations

import threading
from dataclasses import replace

from bettong.harness.faults.step_ids import StepId
from bettong.lineage.trace import TraceEvent


class StageNumbers:
    """Renames the task steps of one run; processes that work side by side are at steps at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[tuple[int, bool, int], int] = {}
        self._open: dict[str, str] = {}

    def restart(self) -> None:
        """The query starts again: what it does again has the same numbers again."""
        with self._lock:
            self._numbers.clear()

    def __call__(self, event: TraceEvent) -> TraceEvent:
        """The event with its stage as counted here."""
        id = StepId.parse(event.step)
        if id.batch is None or id.stage is None:
            if event.phase == "before" and id.begins_epoch:
                self.restart()
            return event
        with self._lock:
            if event.phase == "before":
                among = id.batch, id.is_concurrent
                counted = sum(1 for *known, _ in self._numbers if tuple(known) == among)
                number = self._numbers.setdefault((*among, id.stage), counted)
                self._open[event.step] = str(id.with_number("stage", number))
            return replace(event, step=self._open.get(event.step, event.step))
