"""Progress on the terminal: a moving line on standard error, so that standard output stays the
answer alone; nothing where there is no terminal."""

from __future__ import annotations

import threading

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from bettong.harness.cli.printing import plain
from bettong.harness.cli.standing import Standing
from bettong.harness.events import (
    Event,
    Finished,
    Preparing,
    RecordsRead,
    RunJudged,
    RunStarted,
    SearchAdvanced,
    Started,
    ViolationConfirmed,
    Warned,
)
from bettong.lineage.counted import counted

_WIDTH = 80


class ProgressLine:
    """Shows how far a question has come."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._standing = Standing()
        self._counts = ""
        self._progress: Progress | None = None
        self._task = TaskID(0)

    def __call__(self, event: Event) -> None:
        """Take in an event; any thread may call."""
        with self._lock:
            self._show(event)

    def _show(self, event: Event) -> None:
        self._standing(event)
        match event:
            case Started():
                self._counts = ""
                self._update("starting")
            case Preparing(what):
                self._update(f"starting {what}")
            case RunStarted(_, faults):
                self._update(f"now {' + '.join(faults) or 'no fault'}")
            case RunJudged(_, judged):
                self._counts = self._standing.words()
                self._update(f"{judged.outcome}: {' + '.join(judged.faults) or 'no fault'}")
            case SearchAdvanced(executions, violations):
                self._counts = f"{counted(executions, 'run')}, {counted(violations, 'violation')}"
                self._update("")
            case ViolationConfirmed(faults, kinds):
                found = f"{self._standing.subject}: {', '.join(kinds)} by {' + '.join(faults)}"
                self._console.print(plain(found), markup=False, style="red")
            case RecordsRead(history, records):
                self._update(f"{history} {records:,}")
            case Warned(message):
                self._console.print(
                    plain(f"{self._standing.subject}: {message}"), markup=False, style="yellow"
                )
            case Finished():
                self.stop()

    def _update(self, last: str) -> None:
        if self._progress is None:
            self._progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
                TextColumn("{task.fields[last]}", markup=False),
                console=self._console,
                transient=True,
            )
            self._task = self._progress.add_task("", total=None, last="")
            self._progress.start()
        counts = f": {self._counts}" if self._counts else ""
        self._progress.update(
            self._task,
            description=plain(f"{self._standing.subject}{counts}"),
            last=plain(last)[:_WIDTH],
        )

    def stop(self) -> None:
        """Take the line away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
