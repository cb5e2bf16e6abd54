"""How far a question has come: found so far, what is tried now, how much is left, how long."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from bettong.harness.events import (
    Event,
    Finished,
    RunJudged,
    RunStarted,
    Started,
    ViolationConfirmed,
)
from bettong.lineage.counted import counted


@dataclass
class Standing:
    """What the events of one question after the other tell.

    Attributes:
        subject: what is judged.
        runs: how many were judged.
        planned: how many there will be as far as is known; what a run teaches may add to it.
        found: faults and kinds of anomalies of the violations that were confirmed.
        now: faults of the run that was begun last.
        seconds: since the question was asked.
    """

    clock: Callable[[], float] = time.monotonic
    subject: str = ""
    runs: int = 0
    planned: int | None = None
    found: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    now: tuple[str, ...] = ()
    _began: float = 0.0
    _since: tuple[int, float] = (0, 0.0)

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        match event:
            case Started(subject):
                self.subject, self.runs, self.planned = subject, 0, None
                self.found, self.now = [], ()
                self._began = self.clock()
            case RunStarted(_, faults):
                if not (self.runs and faults):
                    self._since = self.runs, self.clock()
                self.now = faults
            case RunJudged(number=number, planned=planned):
                self.runs, self.planned = number, planned
                if planned is None:
                    self._since = number, self.clock()
            case ViolationConfirmed(faults, kinds):
                self.found.append((faults, kinds))
            case Finished():
                self.planned = self.runs

    @property
    def seconds(self) -> float:
        return self.clock() - self._began

    @property
    def left_s(self) -> float | None:
        """Seconds until the end, if the runs that are left take what those with faults took: in
        those before them Spark is started, and a job has some that are not counted."""
        if not self.runs or self.planned is None:
            return None
        left = max(0, self.planned - self.runs)
        before, since = self._since
        if self.runs == before:
            return None if left else 0.0
        return (self.clock() - since) / (self.runs - before) * left

    def words(self) -> str:
        """In a few words."""
        if not self.runs:
            return ""
        of = f"{self.runs} of " if self.planned else ""
        found = f", {len(self.found)} found" if self.found else ""
        left = f", about {_time(self.left_s)} left" if self.left_s else ""
        return f"{of}{counted(self.planned or self.runs, 'run')}{found}{left}"

    def to_json(self) -> str:
        """One line; times in seconds."""
        left = self.left_s
        value = {
            "subject": self.subject,
            "runs": self.runs,
            "planned": self.planned,
            "found": [{"faults": faults, "kinds": kinds} for faults, kinds in self.found],
            "now": self.now,
            "seconds": round(self.seconds, 1),
            "left_s": None if left is None else round(left, 1),
        }
        return json.dumps(value)


class ProgressLines:
    """Writes a line of JSON for each run that begins or was judged, each violation, each answer."""

    def __init__(self, to: TextIO) -> None:
        self._to = to
        self._standing = Standing()

    def __call__(self, event: Event) -> None:
        """Take in an event; a line is written in one piece, whichever thread calls."""
        self._standing(event)
        if isinstance(event, Started | RunStarted | RunJudged | ViolationConfirmed | Finished):
            self._to.write(f"{self._standing.to_json()}\n")
            self._to.flush()


def _time(seconds: float | None) -> str:
    whole = round(seconds or 0)
    return f"{whole} s" if whole < 100 else f"{round(whole / 60)} min"
