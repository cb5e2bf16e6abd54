"""Stage numbers that are the same in each run: counted from 0 within a batch, in the order in
which they are first seen, for Spark counts them over the life of a session."""

from __future__ import annotations

import re
from dataclasses import replace

from bettong.lineage.trace import TraceEvent

_TASK = re.compile(r"(batch=\d+)/stage=(\d+)/(.*)$")


class StageNumbers:
    """Renames the task steps of one run."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._open: dict[str, str] = {}

    def restart(self) -> None:
        """The query starts again: what it does again has the same numbers again."""
        self._numbers.clear()

    def __call__(self, event: TraceEvent) -> TraceEvent:
        """The event with its stage as counted here."""
        found = _TASK.match(event.step)
        if found is None:
            if event.phase == "before" and event.step.startswith("epoch="):
                self.restart()
            return event
        if event.phase == "before":
            batch, stage, rest = found.groups()
            counted = sum(1 for known, _ in self._numbers if known == batch)
            number = self._numbers.setdefault((batch, stage), counted)
            self._open[event.step] = f"{batch}/stage={number}/{rest}"
        return replace(event, step=self._open.get(event.step, event.step))
