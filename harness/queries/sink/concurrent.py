"""What works beside the thread of a ``foreachBatch`` function: threads and processes that the
user's code has started.

Which of several that work at once has done what when the driver dies is chance. What is done
beside is told as such, so that nobody takes the moments in between for tried.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bettong.harness.faults.step_ids import CONCURRENT
from bettong.harness.queries.sink.processes import FORKED, LeftAtWork, StartedProcesses

PROPERTY = "bettong.concurrent"
"""The local property that Spark carries to the tasks of a job that such a thread has started."""
_NUMBERS = re.compile(r"[-_]?\d+")
_SPARKS = ("pyspark.", "py4j.")
STILL_AT_WORK = "was still at work when the function returned"
_CALL = "c\n"
_SETS_PROPERTIES = "\nsetLocalProperties\n"


class Beside:
    """What worked beside one call of the user's function since that was asked last.

    ``look_begins`` and ``changed`` come before and after each look at files: who works while files
    are looked at may change them when they had been looked at.

    Args:
        left: the processes that earlier calls have left at work.
        folder: of the run.
    """

    def __init__(self, left: LeftAtWork, folder: str) -> None:
        self.pid = os.getpid()
        self.processes = StartedProcesses(left, folder)
        self._started: set[threading.Thread] = set()
        self._ran: dict[threading.Thread, int] = {}
        self._ran_now: dict[threading.Thread, int] = {}

    def thread_starts(self, thread: threading.Thread) -> None:
        """The user's code starts a thread in the course of the call."""
        self._started.add(thread)
        self._ran[thread] = 0

    def look_begins(self, threads: Iterable[threading.Thread]) -> None:
        """Files are about to be looked at. ``threads``: as for :meth:`changed`."""
        self._ran_now = {thread: _running_time(thread) for thread in {*threads, *self._started}}
        self.processes.look_begins()

    def changed(self, writes: int, threads: Iterable[threading.Thread], known: bool = False) -> str:
        """Files were looked at: who has worked beside the call while they changed by so many
        writes; empty if nobody did.

        Args:
            threads: those that the user's code has started before.
            known: that was the call's own thread.
        """
        at_work = self._at_work(threads)
        found = named(at_work[0]) if at_work and writes and not known else ""
        process = self.processes.changed(writes)
        return f"{found} worked while files changed" if found else process

    def left(self, home: str) -> str:
        """What the call has left at work; empty for nothing. Threads of libraries and of pools
        that wait for work are nothing: none of the user's own code, below ``home``, is under way
        in them."""
        frames = sys._current_frames()
        process = self.processes.still_at_work()
        for thread in self._started:
            frame = frames.get(thread.ident or 0) if thread.is_alive() else None
            while frame is not None:
                if home and frame.f_code.co_filename.startswith(home):
                    return f"{named(thread)} {STILL_AT_WORK}"
                frame = frame.f_back
        return f"{process} {STILL_AT_WORK}" if process else ""

    def _at_work(self, threads: Iterable[threading.Thread]) -> list[threading.Thread]:
        """Those that ran at any time since the last look but one began."""
        asked = {*threads, *self._started}
        found = [thread for thread in asked if _running_time(thread) != self._ran.get(thread)]
        self._ran.update(self._ran_now)
        return sorted(found, key=lambda thread: thread.name)


def _running_time(thread: threading.Thread) -> int:
    """For how long it has run, in nanoseconds; what has ended does not run any more."""
    try:
        times = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text()
    except OSError:
        return -1
    return int(times.split()[0])


def is_sparks(thread: threading.Thread) -> bool:
    """Whether it is a thread of Spark's Python side."""
    target = getattr(thread, "_target", None)
    names = (type(thread).__module__, getattr(target, "__module__", None) or "")
    return any(name.startswith(_SPARKS) for name in names)


def elsewhere(batch: Beside | None) -> str:
    """Who works, if that is neither the thread of a batch, which is given, nor the process's first
    one; empty if it is."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return FORKED
    if batch is not None:
        return "" if batch.pid == os.getpid() else FORKED
    thread = threading.current_thread()
    return "" if thread is threading.main_thread() else named(thread)


def named(thread: threading.Thread) -> str:
    """The thread by its name, without the numbers, which are others in each run."""
    return f"the thread {_NUMBERS.sub('', thread.name)!r}"


class Marks:
    """Marks the jobs of Spark's that other threads than those of batches start, so that their tasks
    tell of it."""

    def __init__(self) -> None:
        self._local = threading.local()

    def before(self, command: str, who: str, give: Callable[[str], Any]) -> None:
        """``who`` is about to give Spark a command over a connection. It has a thread of its own in
        the JVM, which has to be marked; what comes before the first call is the greeting."""
        context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
        active = context._active_spark_context if context is not None else None
        marked = getattr(self._local, "marked", False)
        if active is not None and command.startswith(_CALL) and not marked:
            self._local.marked = True
            target = active._jsc._target_id
            give(f"{_CALL}{target}\nsetLocalProperty\ns{PROPERTY}\ns{who}\ne\n")

    def after(self, command: str) -> None:
        """A command is done. One that hands a thread the properties of another takes the mark
        away."""
        if _SETS_PROPERTIES in command:
            self._local.marked = False


def head(who: str) -> str:
    """With what the name of a step begins that is taken beside a batch's own thread."""
    return f"{CONCURRENT}/" if who else ""
