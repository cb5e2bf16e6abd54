"""Moments of a run: where a driver can be crashed, and what was durable then."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from bettong.harness.faults.point import Point, PointPhase
from bettong.harness.faults.step_ids import CONCURRENT, StepId
from bettong.harness.queries.faults.alike import LIST, shape
from bettong.harness.queries.sink.file_steps import (
    CHANGED,
    HALF,
    LINE,
    LISTED,
    LOOK,
    OUTSIDE,
    STEP,
    is_look,
)
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """One event of a run.

    Attributes:
        point: the step, before or after, and which time.
        incarnation: of the driver that was there.
        durable: a digest of what would be left if the driver died now.
        on: of a file operation, on what kind of file it is, and what a statement of SQL is.
    """

    point: Point
    incarnation: int
    durable: str
    on: str = ""

    @property
    def batch(self) -> int | None:
        """The batch that the step belongs to."""
        return StepId.parse(self.point.step).batch


class FileSteps:
    """Names the file operations that probes report: by batch, counted within it. What is done
    beside a batch's own thread may not know its batch: it is the one that is open. Processes that
    work side by side report at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batch: int | None = None
        self._counts: Counter[str] = Counter()
        self._tasks: dict[str, str] = {}

    def restart(self) -> None:
        """The query starts again: what it does again has the same names again."""
        with self._lock:
            self._counts.clear()
            self._tasks.clear()

    def __call__(self, event: TraceEvent) -> TraceEvent:
        """The event with its own name, e.g. ``batch=1/sink.file=2.rename``."""
        with self._lock:
            return self._named(event)

    def _named(self, event: TraceEvent) -> TraceEvent:
        batch = StepId.parse(event.step).batch
        if batch is not None:
            self._batch = batch
        if not event.step.endswith(STEP):
            return replace(event, step=self._within(event)) if batch is None else event
        step = event.step if self._batch is None else f"batch={self._batch}/{event.step}"
        operation = event.detail["op"]
        if operation == LINE:
            return replace(event, step=_line_step(step, event.detail[LINE]))
        # Those between operations are counted by themselves: how many there are hangs on the lines.
        # So are those of no batch's function: the code that starts the query does them once more.
        counted = f"{step}.{operation}" if operation in (CHANGED, HALF, LOOK) else step
        counted += f".{OUTSIDE}" if event.detail.get(OUTSIDE) else ""
        self._counts[counted] += 1
        return replace(event, step=f"{step}={self._counts[counted]}.{operation}")

    def _within(self, event: TraceEvent) -> str:
        """The step, within the batch that was open when it began."""
        if not event.step.startswith(CONCURRENT) or self._batch is None:
            return event.step
        if event.phase == "before":
            self._tasks[event.step] = f"batch={self._batch}/{event.step}"
        return self._tasks.get(event.step, event.step)


_MOST_LOOKS = 6
DURABLE = "durable"
"""In an event's detail: a digest of what was durable when it arrived."""


def crash_points(events: Iterable[TraceEvent]) -> list[CrashPoint]:
    """The moments of a trace whose events say what was durable.

    Failed steps are no crash points: what is done after them no schedule can name. Neither are the
    moments after a change where nothing more has changed until the next step.
    """
    begun: Counter[str] = Counter()
    found = []
    for event in events:
        if DURABLE not in event.detail:
            continue  # reported by the harness itself
        if is_look(event) or event.detail.get("op") == HALF:
            continue  # of looks nothing is left, and half of a write has a fault of its own
        if event.phase == "before":
            begun[event.step] += 1
        if event.phase != "failed":
            phase: PointPhase = "before" if event.phase == "before" else "after"
            point = Point(event.step, phase, begun[event.step])
            found.append(
                CrashPoint(point, event.incarnation, event.detail[DURABLE], _on(event.detail))
            )
    return [
        point
        for point, following in zip_longest(found, found[1:])
        if not (following and is_change(point.point) and point.durable == following.durable)
    ]


def looks(events: Iterable[TraceEvent], batch: int, lists: bool = False) -> list[Point]:
    """Before what a batch's function lists and reads, or only before what it lists, once for each
    kind of file, in the order of the run: the first so many."""
    found: dict[str, Point] = {}
    for event in events:
        if not is_look(event) or StepId.parse(event.step).batch != batch:
            continue
        if not lists or event.detail["path"].endswith(LISTED):
            found.setdefault(_on(event.detail), Point(event.step))
    return list(found.values())[:_MOST_LOOKS]


def read_back(events: Iterable[TraceEvent], batch: int) -> list[Point]:
    """Before what a batch's function reads of what it has written itself, such as what it has put
    aside, once for each kind of file, in the order of the run: the first so many."""
    written, found = set[str](), dict[str, Point]()
    for event in events:
        if StepId.parse(event.step).batch != batch or "op" not in event.detail:
            continue
        if not is_look(event):
            written.add(_on(event.detail))
        elif _on(event.detail) in written:
            found.setdefault(_on(event.detail), Point(event.step))
    return list(found.values())[:_MOST_LOOKS]


def lines_of_changes(events: Iterable[TraceEvent], batch: int) -> list[Point]:
    """The beginnings of the lines that changed files in a batch, in its function or in its tasks,
    where nothing else told of that before, in the order of the run."""
    return [
        Point(_line_step(event.step.rpartition("=")[0], line), occurrence=line[1])
        for event in events
        if (line := event.detail.get(LINE)) is not None
        and StepId.parse(event.step).batch == batch
        and event.detail["op"] == CHANGED
    ]


def lines_asked(points: Iterable[Point]) -> list[int]:
    """The numbers of the lines whose beginnings are among these moments."""
    files = (StepId.parse(point.step).file for point in points)
    return sorted({file[0] for file in files if file is not None and file[1] == LINE})


def _line_step(file: str, line: Sequence[int]) -> str:
    return f"{file}={line[0]}.{LINE}"


def _on(detail: Mapping[str, Any]) -> str:
    return shape(f"{detail.get('path', '')} {detail.get('sql', '')}").rstrip(LIST)


def is_change(point: Point) -> bool:
    """Whether it is right after a change that the sink's own code has made."""
    file = StepId.parse(point.step).file
    return file is not None and file[1] == CHANGED
