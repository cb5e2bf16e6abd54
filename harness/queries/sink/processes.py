"""The processes that a user's code has started: which of them are at work while files change.

What several processes do at once is done in any order, and what one does in several steps may end
between any two of them. Only one change by one process, such as a rename, is done or not.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

import psutil

from bettong.harness.processes.children import children_of
from bettong.lineage.secrets import masked

PROCESSES = {"subprocess.Popen": 0, "os.posix_spawn": 0, "os.system": 0, "os.spawn": 1}
"""Where each audit event has what is started."""
FORKS = ("os.fork", "os.forkpty")
FORKED = "a process that it forked"
_SHOWN = 60
_SET_CHILD_SUBREAPER = 36  # prctl(2)


class LeftAtWork:
    """Those that outlive the call that has started them: what a later call of the same run finds
    at work is no stranger. Those of earlier runs are, which a crash would have ended."""

    def __init__(self) -> None:
        self._folder = ""
        self._commands: dict[psutil.Process, str] = {}
        self._strangers: set[psutil.Process] = set()

    def call_begins(self, folder: str) -> None:
        """A call begins, of the run with this folder."""
        if folder != self._folder:
            self._strangers = {p for p in (*self._strangers, *self._commands) if _runs(p)}
            self._folder, self._commands = folder, {}

    def add(self, processes: Iterable[psutil.Process], command: str) -> None:
        """A call that has started these ends."""
        self._commands.update((process, command) for process in processes)

    def running(self) -> dict[psutil.Process, str]:
        """Those of this run that have not ended since, each with what it was started by."""
        self._commands = {p: command for p, command in self._commands.items() if _runs(p)}
        return self._commands

    @property
    def strangers(self) -> set[psutil.Process]:
        """Those of earlier runs."""
        return self._strangers


class StartedProcesses:
    """Those that one call, or task, of the user's code has started or has found at work.

    ``look_begins`` and ``changed`` come before and after each look at files: one that ends while
    files are looked at may have changed them when they had been looked at.

    Args:
        left: those that earlier calls have left at work.
        folder: of the run.
        own: whether every process that this one has started is the user's, as in a worker.
        children: gives the processes that this one has started and that have not ended.
    """

    def __init__(self, left: LeftAtWork, folder: str, own: bool = False) -> None:
        left.call_begins(folder)
        self._left = left
        self._own = own
        self._others = left.strangers
        self._writes = 0
        self._at_once = self._was_at_work = False
        found = list(left.running().values())
        if own and not found and self._at_work():
            found = ["a process that was at work before"]
        self._command = found[-1] if found else ""

    @property
    def any(self) -> bool:
        """Whether there is one whose changes may not have been seen yet."""
        return bool(self._command)

    def starts(self, command: str, at_once: bool = False) -> None:
        """Another one is about to start; ``at_once``: in another thread than that of the call."""
        if self._command:
            self.goes_on()
        elif not self._own:
            ours = self._left.running()
            self._others = {child for child in _children() if child not in ours}
        self._command = command
        self._at_once = self._at_once or at_once
        _adopt_orphans()

    def goes_on(self) -> None:
        """The code that has started them is about to change something itself, or has another one
        do so: which of both comes first is chance if one is at work."""
        self._at_once = self._at_once or bool(self._command and self._at_work())

    def look_begins(self) -> None:
        """Files are about to be looked at."""
        self._was_at_work = bool(self._command and self._at_work())

    def changed(self, writes: int) -> str:
        """Files were looked at, and have changed by so many writes: who has done that in a way
        that nobody can say where it was when the driver died; empty for nobody."""
        if not self._command:
            return ""
        self._writes += writes
        found = ""
        if writes and self._at_once:
            found = f"{self._command} worked while files changed"
        elif writes and self._writes > 1:
            found = f"{self._command} changed files in more than one step"
        if not self._was_at_work:
            self._command, self._writes, self._at_once = "", 0, False
        return found

    def still_at_work(self) -> str:
        """Which one is at work although the call ends; empty for none. It is known to later calls,
        as one that was left."""
        working = self._at_work() if self._command else []
        self._left.add(working, self._command)
        return self._command if working else ""

    def _at_work(self) -> list[psutil.Process]:
        return [child for child in _children() if child not in self._others and _runs(child)]


def _children() -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return children_of(os.getpid())
    return []


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _adopt_orphans() -> None:
    """A process whose parent has ended, as of a command that ends with ``&``, becomes a child of
    this one: else nobody would know that it is at work."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def command_of(event: str, arguments: tuple[object, ...]) -> str:
    """What is started, by an audit event of :data:`PROCESSES` or :data:`FORKS`."""
    if event in FORKS:
        return FORKED
    command = arguments[PROCESSES[event]]
    if event != "os.system" and isinstance(command, str | bytes | os.PathLike):
        command = Path(os.fsdecode(command)).name
    if isinstance(command, bytes):
        command = os.fsdecode(command)
    return f"the process {masked(str(command))[:_SHOWN]!r}"
