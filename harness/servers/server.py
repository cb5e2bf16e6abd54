"""A real server on loopback: data in a temporary folder, ready when it answers, ended by pid."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, TypeVar

import psutil

from bettong.harness.processes.patience import patience
from bettong.harness.processes.session import (
    guard_folder,
    guard_session,
    suspend,
    unguard_folder,
    unguard_session,
)
from bettong.harness.servers.errors import ServerFailedError
from bettong.harness.servers.programs import unprivileged_user

HOST = "127.0.0.1"
_ANSWER_SECONDS = 2.0
_STOP_SECONDS = 10.0
_LOG_BYTES = 2000

Self = TypeVar("Self", bound="Server")


class Server(ABC):
    """One server. A context manager that starts it, and at last ends it and removes its data, even
    when Bettong itself is killed::

        with PostgresServer() as postgres:
            psycopg.connect(postgres.url())

    Its address is known before it starts, so that a proxy can be put before it. All data survive
    :meth:`kill` and :meth:`restart`. Raises ServerMissingError when a program is not installed,
    ServerFailedError when the server does not become ready.

    Attributes:
        port: on 127.0.0.1; a free one unless given.
    """

    name: ClassVar[str]
    ready_seconds: ClassVar[float] = 60.0
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    users: ClassVar[tuple[str, ...]] = ()  # to run it as instead of root, where it refuses root

    def __init__(self, port: int | None = None) -> None:
        self.host = HOST
        self.port = port or free_port()
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """``host:port`` that it listens on."""
        return f"{self.host}:{self.port}"

    @property
    def folder(self) -> Path:
        """Where its data and its log are."""
        if self._folder is None:
            raise ServerFailedError(f"{self.name} is not started")
        return self._folder

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @abstractmethod
    def prepare(self) -> None:
        """Lay out the data folder, before the first start."""

    @abstractmethod
    def command(self) -> list[str]:
        """The server's command line; it stays in the foreground."""

    def environment(self) -> dict[str, str]:
        """The server's environment, without our locale and without what would configure it."""
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.folder), "LC_ALL": "C"}

    @abstractmethod
    def greet(self, connection: socket.socket) -> None:
        """A handshake of the server's protocol. Raises OSError or ValueError if it is not ready."""

    def pass_time(self, seconds: int) -> bool:
        """Have it forget what it forgets by itself in so long; whether that was anything."""
        return False

    def start(self: Self) -> Self:
        if self._process is not None:
            raise ServerFailedError(f"{self.name} runs already, pid {self.pid}")
        try:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix=f"bettong-{self.name}-"))
                guard_folder(self._folder)
                self._give_away(self._folder)
                self.prepare()
            self._launch()
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def _launch(self) -> None:
        user = unprivileged_user(*self.users) if self.users else None
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=user,
                extra_groups=[] if user else None,
            )
        guard_session(self._process.pid)

    def run(self, *command: str) -> None:
        """Run a program to its end as the server's user. Raises ServerFailedError."""
        user = unprivileged_user(*self.users) if self.users else None
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            user=user,
            extra_groups=[] if user else None,
            check=False,
        )
        if done.returncode != 0:
            message = (done.stdout + done.stderr)[-_LOG_BYTES:].decode(errors="replace")
            raise ServerFailedError(f"{self.name}: {command[0]} failed: {message.strip()}")

    def _give_away(self, folder: Path) -> None:
        user = unprivileged_user(*self.users) if self.users else None
        if user is not None:
            shutil.chown(folder, user)

    def _wait_until_ready(self) -> None:
        began = time.monotonic()
        while True:
            try:
                with socket.create_connection((self.host, self.port), _ANSWER_SECONDS) as sock:
                    self.greet(sock)
                    return
            except (OSError, ValueError) as e:
                assert self._process is not None
                code = self._process.poll()
                if code is not None:
                    reason = f"ended with status {code}"
                elif (waited := time.monotonic() - began) > patience(self.ready_seconds):
                    reason = f"does not answer after {waited:.0f} s ({e})"
                else:
                    time.sleep(0.05)
                    continue
            raise ServerFailedError(f"{self.name} {reason}; its log ends: {self.log_tail()}")

    def log_tail(self) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / "server.log").read_bytes()[-_LOG_BYTES:].decode(errors="replace")
        return ""

    def _tree(self) -> Iterator[psutil.Process]:
        """The server's processes, the first one last."""
        if self._process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self._process.pid)
            yield from parent.children(recursive=True)
            yield parent

    def poll(self) -> int | None:
        """None while it runs, else how it ended; -1 when it was not started or was killed."""
        return -1 if self._process is None else self._process.poll()

    def kill(self) -> int | None:
        """SIGKILL all its processes at once: a crash. The data stay. The first one's exit status,
        or None when it was not running."""
        return self._kill(self._suspended())

    def _kill(self, doomed: list[psutil.Process]) -> int | None:
        if self._process is None:
            return None
        for process in reversed(doomed):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        status = self._process.wait()
        psutil.wait_procs(doomed, timeout=_STOP_SECONDS)
        unguard_session(self._process.pid)
        self._process = None
        return status

    def stop(self) -> None:
        """Ask it to end, and see to it that it does. The data stay."""
        if self._process is not None:
            processes = list(self._tree())
            self._process.send_signal(self.stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
            self._kill(processes)

    def restart(self) -> None:
        """A crash and a start on the same data and address."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """SIGSTOP all its processes: connections stay, nothing is answered."""
        self._suspended()

    def _suspended(self) -> list[psutil.Process]:
        """Its processes, the first one last, all of which stand still: one that ran while they were
        looked up may have forked another one."""
        stopped: list[psutil.Process] = []
        while new := [process for process in self._tree() if process not in stopped]:
            suspend([process.pid for process in reversed(new)])
            stopped = [*new, *stopped]
        return stopped

    def resume(self) -> None:
        for process in self._tree():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    def close(self) -> None:
        """Kill it and remove its data."""
        self.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            unguard_folder(self._folder)
            self._folder = None

    def __enter__(self: Self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.resume()
        self.stop()
        self.close()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def receive_exactly(connection: socket.socket, count: int) -> bytes:
    """``count`` bytes; raises OSError when the stream ends before."""
    data = b""
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        if not chunk:
            raise OSError("connection closed in the handshake")
        data += chunk
    return data
