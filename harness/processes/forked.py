"""Processes forked by a fork server (:mod:`bettong.harness.processes.fork_server`), as
:class:`ProcessSession` takes them: started in a few milliseconds, with what they import already
there."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from bettong.harness.processes.patience import patience
from bettong.harness.processes.session import ProcessError, ProcessSession
from bettong.lineage.errors import UsageError

LONGEST_SOCKET_PATH = 107
_START_S = 60.0


class Forked:
    """A process that a fork server has forked; what :class:`ProcessSession` needs of a ``Popen``.
    Safe for several threads: one may look whether it runs while another one ends it.

    Attributes:
        pid: its process id.
        stdin: None: it hears nothing.
        stdout: what it prints, if that was asked for.
    """

    stdin: IO[bytes] | None = None

    def __init__(self, connection: socket.socket, stdout: IO[bytes] | None) -> None:
        self._connection = connection
        self._answers = connection.makefile("rb")
        self._status: int | None = None
        self._lock = threading.Lock()
        self.stdout = stdout
        self.pid = int(self._answer()["pid"])

    def poll(self) -> int | None:
        """Exit status, or None while it runs."""
        if self._status is None:
            try:
                return self.wait(0.0)
            except subprocess.TimeoutExpired:
                return None
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Exit status; raises subprocess.TimeoutExpired."""
        if not self._lock.acquire(timeout=-1 if timeout is None else timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        try:
            if self._status is None:
                self._status = self._told(timeout)
            return self._status
        finally:
            self._lock.release()

    def _told(self, timeout: float | None) -> int:
        self._connection.settimeout(timeout)
        try:
            self._connection.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, TimeoutError):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0) from None
        self._connection.settimeout(None)
        status = int(self._answer()["status"])
        self._answers.close()
        self._connection.close()
        return status

    def _answer(self) -> dict[str, int]:
        line = self._answers.readline()
        if not line:
            raise ProcessError("the fork server has ended: start anew")
        answer: dict[str, int] = json.loads(line)
        return answer


def connect(path: Path) -> socket.socket:
    """A connection to the fork server that listens there, for one process; raises OSError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(patience(_START_S))
    connection.connect(str(path))
    return connection


def ask_for_fork(
    connection: socket.socket,
    command: Sequence[str],
    env: Mapping[str, str],
    fds: Sequence[int],
    *,
    session: bool,
) -> None:
    """Ask for a module with arguments, ``[MODULE, …]``, to be run with these three file descriptors
    as standard input, output and error; in a session of its own, or in the fork server's. What
    :class:`Forked` makes of the connection is the process."""
    request = {
        "module": command[0],
        "arguments": list(command[1:]),
        "environment": dict(env),
        "session": session,
    }
    socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], list(fds))


def await_forks(path: Path) -> None:
    """Return when a fork server has forked whatever it was asked for until now; raises OSError."""
    with connect(path) as connection:
        connection.shutdown(socket.SHUT_WR)  # asks for nothing, and is answered in turn
        connection.recv(1)


class ForkServerProcess:
    """A fork server of our own, at a socket; a context manager.

    Args:
        hash_seed: by which it and all that it forks hash texts, as ``PYTHONHASHSEED`` says it;
            empty for whichever.
    """

    def __init__(self, path: Path, modules: Sequence[str], hash_seed: str = "") -> None:
        self._path = path
        if (length := len(os.fsencode(self._path))) > LONGEST_SOCKET_PATH:
            raise UsageError(
                f"the temporary folder has too long a path: a socket in it would have {length} "
                f"bytes, and {LONGEST_SOCKET_PATH} are what Unix takes; set TMPDIR to a shorter one"
            )
        command = [
            sys.executable,
            "-m",
            "bettong.harness.processes.fork_server",
            str(self._path),
            *modules,
        ]
        self._session = ProcessSession(
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, **({"PYTHONHASHSEED": hash_seed} if hash_seed else {})},
            )
        )
        self._ready = False
        self._lock = threading.Lock()

    def start(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        speaks: bool = False,
        hears: bool = False,
    ) -> ProcessSession:
        """Run a module with arguments, ``[MODULE, …]``, as a session of its own; otherwise as
        :meth:`ProcessSession.start`. It hears nothing."""
        assert not hears
        connection = self._connect()
        pipe = os.pipe() if speaks else None
        answers = os.fdopen(pipe[0], "rb") if pipe else None
        with log.open("ab") as output, Path(os.devnull).open("rb") as nothing:
            fds = [nothing.fileno(), pipe[1] if pipe else output.fileno(), output.fileno()]
            ask_for_fork(connection, command, env, fds, session=True)
            if pipe:
                os.close(pipe[1])
        return ProcessSession(Forked(connection, answers))

    def _connect(self) -> socket.socket:
        with self._lock:
            if not self._ready and not self._session.first_line(patience(_START_S)):
                raise ProcessError("the fork server of the servers did not start")
            self._ready = True
        return connect(self._path)

    def close(self) -> None:
        """End the fork server; what it has forked lives on."""
        self._session.kill()

    def __enter__(self) -> ForkServerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
