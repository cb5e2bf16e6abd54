"""Processes that are killed whole: each child leads a session of its own, and a kill reaches every
process of that session, also those that made themselves a process group (as pyspark's daemon
does)."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import psutil

from bettong.harness.processes.watchdog import is_anothers, started
from bettong.lineage.errors import BettongError

KILL_TIMEOUT = 20.0


class ProcessError(BettongError):
    """A process that could not be started, or could not be ended."""


class _Guard:
    """The watchdog process (:mod:`bettong.harness.processes.watchdog`), one for each Bettong
    process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def notify(self, line: str) -> None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(Path(__file__).with_name("watchdog.py"))],
                    stdin=subprocess.PIPE,
                    start_new_session=True,
                )
            pipe = self._process.stdin
            assert pipe is not None
            pipe.write(line.encode() + b"\n")
            pipe.flush()


_guard = _Guard()


def guard_session(session: int) -> None:
    """Have every process of a session killed should Bettong die before it has ended them."""
    _guard.notify(f"+{session} {started(session)}")


def unguard_session(session: int) -> None:
    """The session has ended."""
    _guard.notify(f"-{session}")


def guard_folder(path: Path) -> None:
    """Have a folder removed should Bettong die before it has removed it."""
    _guard.notify(f">{path}")


def unguard_folder(path: Path) -> None:
    """The folder is gone, or is to stay."""
    _guard.notify(f"<{path}")


def session_members(session: int) -> list[int]:
    """Ids of the living processes of a session, the stopped ones included."""
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(pid) == session and psutil.Process(pid).status() != "zombie":
                found.append(pid)
    return found


def first_line(pipe: IO[bytes], timeout: float) -> bytes:
    """The first line of a pipe; empty when it ends, or is silent, before."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return pipe.readline() if selector.select(timeout) else b""


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal those of these processes that are there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def suspend(pids: Sequence[int]) -> None:
    """SIGSTOP each process; returns when no thread of them runs any more.

    A signal is taken by one thread, and the others go on until the kernel has told them.
    """
    send_signal(pids, signal.SIGSTOP)
    while not all(_stands_still(pid) for pid in pids):
        time.sleep(0.001)


def suspend_session(session: int) -> set[int]:
    """SIGSTOP every process of a session; returns them when no thread of theirs runs any more."""
    stopped: set[int] = set()
    while new := [pid for pid in session_members(session) if pid not in stopped]:
        suspend(new)
        stopped.update(new)
    return stopped


def _stands_still(pid: int) -> bool:
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # the thread has ended
            if stat.read_text(errors="replace").rpartition(")")[2].split()[0] not in "TtZX":
                return False
    return True


@dataclass(frozen=True, slots=True)
class Ended:
    """How a session was ended: its leader, that process's exit status, processes killed, and the
    id of the one that was spared, if one was."""

    pid: int
    status: int
    processes: int
    spared: int | None = None

    def __str__(self) -> str:
        spared = f", without the JVM, pid {self.spared}" if self.spared is not None else ""
        ended = f"pid {self.pid} ended with status {self.status}"
        return f"{ended}, {self.processes} process(es){spared}"


class Leader(Protocol):
    """The first process of a session; ``subprocess.Popen`` is one."""

    pid: int

    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...


class Session(Protocol):
    """A process with all that it starts, wherever it runs.

    Attributes:
        pid: of its first process, on this machine.
    """

    pid: int

    @property
    def requests(self) -> IO[bytes]:
        """Standard input of a process that hears."""

    @property
    def answers(self) -> IO[bytes]:
        """Standard output of a process that speaks."""

    def first_line(self, timeout: float) -> bytes:
        """The first line of the answers; empty when it ends, or is silent, before."""

    def poll(self) -> int | None:
        """Exit status of the first process, or None while it runs."""

    def kill(self) -> Ended:
        """SIGKILL all of it."""

    def stop(self, within: float) -> Ended:
        """SIGTERM its first process, and SIGKILL what there is of it when that has ended, or after
        so many seconds."""

    def pause(self) -> str:
        """Have all of it stand still; the evidence."""

    def resume(self) -> None:
        """Have all of it go on."""


class Launcher(Protocol):
    """Starts a process for a node, as :meth:`ProcessSession.start` does."""

    def __call__(
        self,
        command: Sequence[str],
        /,
        *,
        env: Mapping[str, str],
        log: Path,
        speaks: bool = False,
        hears: bool = False,
    ) -> Session: ...


class ProcessSession:
    """A child process with all that it starts.

    Attributes:
        pid: of the leader, which is the id of the session too.
    """

    def __init__(self, process: Leader) -> None:
        self._process = process
        self.pid = process.pid
        self._started = started(self.pid)
        guard_session(self.pid)

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        cwd: Path | None = None,
        speaks: bool = False,
        hears: bool = False,
    ) -> ProcessSession:
        """Start a process, its output appended to ``log``; raises ProcessError.

        What a process that ``speaks`` prints on standard output is read from :attr:`answers`; one
        that ``hears`` is told by :attr:`requests`.
        """
        with log.open("ab") as output:
            try:
                return cls(
                    subprocess.Popen(
                        argv,
                        env=dict(env),
                        cwd=cwd,
                        stdin=subprocess.PIPE if hears else subprocess.DEVNULL,
                        stdout=subprocess.PIPE if speaks else output,
                        stderr=output,
                        start_new_session=True,
                    )
                )
            except OSError as e:
                raise ProcessError(f"cannot start {argv[0]}: {e}") from e

    @property
    def requests(self) -> IO[bytes]:
        """Standard input of a process that hears."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def answers(self) -> IO[bytes]:
        """Standard output of a process that speaks."""
        assert self._process.stdout is not None
        return self._process.stdout

    def first_line(self, timeout: float) -> bytes:
        """The first line that the process prints; empty when it ends, or is silent, before."""
        return first_line(self.answers, timeout)

    def poll(self) -> int | None:
        """Exit status of the leader, or None while it runs."""
        return self._process.poll()

    def wait(self, timeout: float) -> int:
        """Exit status of the leader; raises ProcessError when it does not end in time."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired as e:
            raise ProcessError(f"pid {self.pid} has not ended within {timeout:g} s") from e

    def kill(self) -> Ended:
        """SIGKILL every process of the session and reap the leader.

        They are stopped first, so that none goes on for a moment after another has died.
        """
        killed: set[int] = set()
        deadline = time.monotonic() + KILL_TIMEOUT
        while pids := self._members():
            new = [pid for pid in pids if pid not in killed]
            if new:
                send_signal(new, signal.SIGSTOP)
                new = [pid for pid in self._members() if pid not in killed]
            send_signal([*new, *pids], signal.SIGKILL)
            killed.update(new)
            if self.pid in killed:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(0.01)
            if time.monotonic() > deadline:
                raise ProcessError(f"session {self.pid}: processes {pids} do not die")
        status = self._process.wait(KILL_TIMEOUT)
        unguard_session(self.pid)
        return Ended(self.pid, status, len(killed))

    def stop(self, within: float) -> Ended:
        """SIGTERM the leader, and SIGKILL what there is of the session when it has ended, or after
        so many seconds."""
        if self.poll() is None:
            send_signal([self.pid], signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(within)
        return self.kill()

    def _members(self) -> list[int]:
        """Those of its processes that are there; none where its number is another session's by
        now, for it has ended by itself."""
        return [] if is_anothers(self.pid, self._started) else session_members(self.pid)

    def pause(self) -> str:
        """SIGSTOP every process of the session; the evidence that they stand still."""
        stopped = suspend_session(self.pid)
        return f"pid {self.pid} stopped, {len(stopped)} process(es)"

    def resume(self) -> None:
        """SIGCONT every process of the session."""
        send_signal(session_members(self.pid), signal.SIGCONT)
