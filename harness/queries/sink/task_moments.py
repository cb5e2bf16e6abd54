"""What user code in a Python worker changes past Python, in a task or in the commit of a data
source: by native libraries, by ``mmap``, and by processes that it starts.

Before each line of it that comes after a change there is a moment, as in a ``foreachBatch``
function. A worker waits for a process without a word to anybody. From its start on the folder of
the run is watched in any kind of task: when it has ended, and before the worker's own code does
anything else, what it has changed is a moment of its own. What it changes in more than one step,
or beside the worker, nobody can stop in between: that is told as work beside.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import wraps
from types import FrameType
from typing import Any

from bettong.harness.queries.sink.folder_watch import FolderWatch
from bettong.harness.queries.sink.lines import Line, LinesBegun
from bettong.harness.queries.sink.mapped_files import MappedFiles
from bettong.harness.queries.sink.processes import FORKED, LeftAtWork, StartedProcesses
from bettong.harness.queries.sink.task_lines import TaskLines

CAPTURES = "capture_outputs"
"""Within this context Spark's workers run what is the user's, whatever they are there for."""
WAITS = ("waitpid", "wait", "wait3", "wait4", "waitid", "system")
"""The calls of ``os`` that return when a process has ended."""
_SPARKS_FILES = re.compile(r"/_temporary/|/\.?part-\d{5}-[0-9a-f]{8}-[0-9a-f-]{27}[-.]c\d{3}")


class TaskMoments:
    """Asks after what the task under way changes past Python. A worker has one task at a time.

    Args:
        folder: gives the folder of the run, None where there is none.
        happens: is given the path that was changed; who has worked beside the task meanwhile, if
            anybody did; and the line that has changed it, if nothing else has told of that.
        begins: is given a path of the run, and a line that is about to begin.
        runs: is given the frame of each line, when nothing more comes before it.
        seen_otherwise: paths whose changes are not told.

    Attributes:
        asked: the numbers of the lines before which it asks, whatever has changed.
    """

    def __init__(
        self,
        folder: Callable[[], str | None],
        happens: Callable[[str, str, Line | None], None],
        begins: Callable[[str, Line], None],
        runs: Callable[[FrameType], None],
        seen_otherwise: Collection[str],
    ) -> None:
        self._folder = folder
        self._happens = happens
        self._begins_line = begins
        self.asked: Collection[int] = ()
        self._seen_otherwise = seen_otherwise
        self._left = LeftAtWork()
        self._work: _Work | None = None
        self._waits = threading.local()
        self._mapped = MappedFiles()
        self._lines = TaskLines(self._line, runs)
        self._looking = False

    def around(self, captures: Callable[..., AbstractContextManager[None]]) -> Callable[..., Any]:
        """The context in which workers run what is the user's."""

        @contextlib.contextmanager
        def captured(*arguments: Any, **named: Any) -> Iterator[None]:
            with captures(*arguments, **named):
                try:
                    self._begins()
                    yield
                    self._returns()
                finally:
                    self._ends()

        return captured

    def waiting(self, wait: Callable[..., Any]) -> Callable[..., Any]:
        """A call that returns when a process has ended: what that has changed is a moment."""

        @wraps(wait)
        def waited(*arguments: Any, **named: Any) -> Any:
            outermost = not getattr(self._waits, "now", False)
            self._waits.now = True
            try:
                done = wait(*arguments, **named)
            finally:
                self._waits.now = not outermost
            if outermost:
                self._look()
            return done

        return waited

    def starts(self, command: str) -> bool:
        """The worker is about to start a process; whether it does so within a task."""
        work = self._own()
        if work is None:
            return False
        self._look()
        self._watch(work)
        work.processes.starts(command, work.thread != threading.get_ident())
        return True

    def told(self) -> None:
        """The worker's own code is about to change something, as is told."""
        work = self._own()
        if work is None:
            return
        if work.processes.any or self._mapped:
            work.processes.goes_on()
            self._look()
        work.told = True

    def maps(self, path: str) -> None:
        """A file becomes memory, of whose changes the kernel tells nobody."""
        if self._own() is not None:
            self._mapped.add(path)
            self._lines.memory_is_a_file()

    @property
    def at_work(self) -> bool:
        """Whether this process is a worker that does some of the user's work."""
        return self._own() is not None

    def reads(self) -> bool:
        """Whether what this thread is about to read is read by the commit of a data source."""
        work = self._own()
        in_commit = work is not None and work.thread == threading.get_ident()
        return in_commit and self._lines.commits and not self._looking

    def elsewhere(self) -> str:
        """Who works, if that is a copy of the worker; empty if it is not."""
        return FORKED if self._work is not None and self._work.pid != os.getpid() else ""

    def _begins(self) -> None:
        folder = self._folder()
        if folder is None:
            return
        processes = StartedProcesses(self._left, folder, own=True)
        self._work = _Work(folder, os.getpid(), threading.get_ident(), processes)
        self._lines.begins()
        if processes.any or self._lines.traced:
            self._watch(self._work)

    def _watch(self, work: _Work) -> None:
        """Watch from now on what changes, if that is not watched yet; what has changed before, no
        process has."""
        with self._not_the_users():
            if work.watch is None:
                work.watch = FolderWatch(work.folder, self._seen_otherwise, _is_sparks)
            elif not work.processes.any:
                work.watch.changed()

    @contextlib.contextmanager
    def _not_the_users(self) -> Iterator[None]:
        """What is read meanwhile is not read by the user's code."""
        before, self._looking = self._looking, True
        try:
            yield
        finally:
            self._looking = before

    def _returns(self) -> None:
        """The user's code has done its work. Who has ended by the time that is asked has done what
        files show after it."""
        work = self._own()
        if work is None:
            return
        left = work.processes.still_at_work()
        self._look()
        if left:
            self._happens(work.any_file, f"{left} was still at work when the task ended", None)

    def _ends(self) -> None:
        self._lines.ends()
        work, self._work = self._own(), None
        if work is not None:
            work.processes.still_at_work()  # also where the user's code fails
            if work.watch is not None:
                work.watch.close()

    def _line(self, number: int) -> None:
        self._look()
        work = self._own()
        if work is None:
            return
        line = work.lines.begins(number)
        if number in self.asked:
            self._begins_line(work.any_file, line)

    def _look(self) -> None:
        work = self._own()
        if work is not None:
            with self._not_the_users():
                self._look_at_all(work)

    def _look_at_all(self, work: _Work) -> None:
        change, who = self._mapped.changed(), ""
        told, work.told = work.told, False
        if work.watch is not None and (work.processes.any or self._lines.on):
            work.processes.look_begins()
            changes = work.watch.changed()
            who = work.processes.changed(changes.writes)
            change = changes.last or change
        if change is not None or who:
            by = None if told or work.processes.any else work.lines.last
            self._happens(change or work.any_file, who, by)

    def _own(self) -> _Work | None:
        """The work of this process, which may be a copy of the one that has it."""
        work = self._work
        return work if work is not None and work.pid == os.getpid() else None


@dataclass
class _Work:
    """What a worker does of the user's.

    Attributes:
        folder: of the run, with a slash.
        thread: which of the worker's does it.
        told: whether its own code has changed something, and told that, since files were looked at
            last.
        lines: that were begun.
    """

    folder: str
    pid: int
    thread: int
    processes: StartedProcesses
    watch: FolderWatch | None = None
    told: bool = False
    lines: LinesBegun = field(default_factory=LinesBegun)

    @property
    def any_file(self) -> str:
        """A path for what has changed nobody knows where."""
        return f"{self.folder}*"


def _is_sparks(path: str) -> bool:
    """Whether Spark itself writes it: it does so as the task goes on."""
    return _SPARKS_FILES.search(path) is not None
