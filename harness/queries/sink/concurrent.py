"""What works beside the thread of a ``foreachBatch`` function: threads and processes that the
user's code has started.

Which of several that work at once has done what when the driver dies is chance. What is done
beside is told as such, so that nobody takes the moments in between for tried.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

from bettong.harness.faults.step_ids import CONCURRENT
from bettong.harness.processes.children import children_of

PROPERTY = "bettong.concurrent"
"""The local property that Spark carries to the tasks of a job that such a thread has started."""
PROCESSES = {"subprocess.Popen": 0, "os.posix_spawn": 0, "os.system": 0, "os.spawn": 1}
"""Where each audit event has what is started."""
FORKS = ("os.fork", "os.forkpty")
_SHOWN = 60
_NUMBERS = re.compile(r"[-_]?\d+")
_SPARKS = ("pyspark.", "py4j.")
_CALL = "c\n"
_SETS_PROPERTIES = "\nsetLocalProperties\n"


class Beside:
    """What worked beside one call of the user's function since that was asked last."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._started: set[threading.Thread] = set()
        self._ran: dict[threading.Thread, int] = {}
        self._process = ""
        self._known: set[int] = set()

    def thread_starts(self, thread: threading.Thread) -> None:
        """The user's code starts a thread in the course of the call."""
        self._started.add(thread)
        self._ran[thread] = 0

    def process_starts(self, command: str) -> None:
        """The user's code starts a process in the course of the call."""
        if not self._process:
            self._known = {child.pid for child in _children()}
        self._process = command

    def changed(self, writes: int, threads: Iterable[threading.Thread], known: bool = False) -> str:
        """Who has worked beside the call while files changed by so many writes; empty if nobody
        did.

        Args:
            threads: those that the user's code has started before.
            known: that was the call's own thread.
        """
        at_work = self._at_work(threads)
        found = _thread(at_work[0]) if at_work and writes and not known else ""
        if found:
            found = f"{found} worked while files changed"
        if self._process:
            # One change of a process's, such as a rename, is done or not; between two it may die.
            if writes > 1 and not found:
                found = f"{self._process} changed files in more than one step"
            if not self._left():
                self._process = ""
        return found

    def left(self, home: str) -> str:
        """What the call has left at work; empty for nothing. Threads of libraries and of pools
        that wait for work are nothing: none of the user's own code, below ``home``, is under way
        in them."""
        frames = sys._current_frames()
        for thread in self._started:
            frame = frames.get(thread.ident or 0) if thread.is_alive() else None
            while frame is not None:
                if home and frame.f_code.co_filename.startswith(home):
                    return f"{_thread(thread)} was still at work when the function returned"
                frame = frame.f_back
        if self._process and self._left():
            return f"{self._process} was still at work when the function returned"
        return ""

    def _at_work(self, threads: Iterable[threading.Thread]) -> list[threading.Thread]:
        found = []
        for thread in {*threads, *self._started}:
            ran = _running_time(thread)
            if ran != self._ran.get(thread):
                self._ran[thread] = ran
                found.append(thread)
        return sorted(found, key=lambda thread: thread.name)

    def _left(self) -> bool:
        return any(child.pid not in self._known and _runs(child) for child in _children())


def _children() -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return children_of(os.getpid())
    return []


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


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


def command_of(event: str, arguments: tuple[object, ...]) -> str:
    """What is started, by an audit event of :data:`PROCESSES` or :data:`FORKS`."""
    if event in FORKS:
        return "a process that it forked"
    command = arguments[PROCESSES[event]]
    if event != "os.system" and isinstance(command, str | bytes | os.PathLike):
        command = Path(os.fsdecode(command)).name
    if isinstance(command, bytes):
        command = os.fsdecode(command)
    return f"the process {str(command)[:_SHOWN]!r}"


def elsewhere(batch: Beside | None) -> str:
    """Who works, if that is neither the thread of a batch, which is given, nor the process's first
    one; empty if it is."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return "a process that it forked"
    if batch is not None:
        return "" if batch.pid == os.getpid() else "a process that it forked"
    thread = threading.current_thread()
    return "" if thread is threading.main_thread() else _thread(thread)


def _thread(thread: threading.Thread) -> str:
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
