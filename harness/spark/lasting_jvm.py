"""A driver host whose JVM can outlive the death of its driver.

All code of a driver under test is Python; a JVM takes seconds to start and to get warm. So all
Python processes of the node are forked by fork servers beside the JVM, which import and nothing
else, and a crash of the driver is SIGKILL of each of them, while the JVM stands still: a fence
(:mod:`bettong.harness.spark.fence`) is closed around it before it goes on. The next host process
has the JVM throw away what is left of the dead driver, and makes a new Spark context in it.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import IO

from bettong.harness.processes.forked import Forked, ask_for_fork, await_forks, connect
from bettong.harness.processes.session import (
    KILL_TIMEOUT,
    Ended,
    Launcher,
    ProcessError,
    ProcessSession,
    Session,
    send_signal,
    session_members,
    suspend_session,
)
from bettong.harness.spark.connection import HostConnection
from bettong.harness.spark.driver import HOST, START_S, DriverError, DriverHost
from bettong.harness.spark.fence import Fence
from bettong.harness.spark.planner_python import DAEMON_FORKS, PLANNER_FORKS
from bettong.harness.spark.session import SessionConfig

REVIVE_S = 20.0
_POLL_S = 0.002
_OTHER_FORKS = "other-forks"
_IMPORTS = (HOST, "pyspark.sql", "pyspark.testing", "pandas")
"""What every host imports, the last two with its first words to the JVM."""


class LastingJvmHost(DriverHost):
    """A host on this machine with a JVM of its own, ``local[…]``.

    Its drivers come from two fork servers in turn: what a process makes of Python's hash of a text,
    which is another one in each interpreter, must not be the same for a driver and its successor.

    Args:
        imports: the modules that its Python processes find imported.

    Attributes:
        deaths: how many drivers the JVM has outlived.
    """

    def __init__(
        self,
        config: SessionConfig,
        env: Mapping[str, str] | None = None,
        *,
        imports: Sequence[str] = (),
        launch: Launcher = ProcessSession.start,
        beside: Path | None = None,
    ) -> None:
        self.deaths = 0
        self._imports = imports
        self._process: Forked | None = None
        super().__init__(config, env, launch=launch, beside=beside)

    def _start(self) -> Session:
        self._fence = Fence(self.home)
        # Of workers, which are forked by the first one, Spark wants all hashes to be alike.
        self._other = self._start_server(_OTHER_FORKS, "1")
        return self._start_server(DAEMON_FORKS, "0")

    def _start_server(self, name: str, hash_seed: str) -> Session:
        module = "bettong.harness.processes.fork_server"
        return self._launch(
            [sys.executable, "-m", module, str(self.home / name), *_IMPORTS, *self._imports],
            env={**self._env, "PYTHONHASHSEED": hash_seed},
            log=self.log,
            speaks=True,
            hears=True,
        )

    def _begin(self) -> HostConnection:
        requests, hears = os.pipe()

        def started() -> IO[bytes]:
            try:
                for server in (self._session, self._other):
                    server.first_line(START_S)
                return self._fork_host(requests)
            except (OSError, ProcessError) as e:
                with contextlib.suppress(OSError):  # the host was killed, its folder is gone
                    self._say(f"no process for the driver: {e}")
                return io.BytesIO()

        return self._talk(os.fdopen(hears, "wb"), started)

    def _fork_host(self, requests: int) -> IO[bytes]:
        """A process that reads requests there; its answers."""
        answers, speaks = os.pipe()
        try:
            server = self.home / (_OTHER_FORKS if self.deaths % 2 else DAEMON_FORKS)
            self._have_planners_forked_by(server)
            connection = connect(server)
            with self.log.open("ab") as log:
                fds = [requests, speaks, log.fileno()]
                ask_for_fork(connection, [HOST], self._env, fds, session=False)
            self._process = Forked(connection, None)
        finally:
            os.close(requests)
            os.close(speaks)
        return os.fdopen(answers, "rb")

    def _have_planners_forked_by(self, server: Path) -> None:
        link = self.home / PLANNER_FORKS
        link.unlink(missing_ok=True)
        link.symlink_to(server)

    @property
    def alive(self) -> bool:
        try:
            return super().alive and (self._process is None or self._process.poll() is None)
        except ProcessError:  # the fork server was killed meanwhile
            return False

    def kill(self) -> Ended:
        suspend_session(self._other.pid)
        ended = super().kill()
        self._other.kill()
        return ended

    def pause(self) -> str:
        return f"{super().pause()}; {self._other.pause()}"

    def resume(self) -> None:
        super().resume()
        self._other.resume()

    def kill_driver(self) -> Ended | None:
        """SIGKILL every process of the node but the JVM and the fork servers; the JVM stands still
        until :meth:`revive`. None when that would not be a crash, since the JVM is amid an
        operation on a file, or has not thrown away an earlier driver: all stands still then."""
        process, jvm = self._process, self.jvm
        if process is None or jvm is None:
            return None
        members = suspend_session(self.pid) | suspend_session(self._other.pid)
        if jvm not in members or self._fence.operations or self._fence.is_closed:
            return None
        killed = members - self._servers - {jvm}
        self._fence.close()
        send_signal(killed, signal.SIGKILL)
        send_signal(self._servers, signal.SIGCONT)
        status = process.wait(KILL_TIMEOUT)
        self._await_death(killed)
        self.deaths += 1
        return Ended(process.pid, status, len(killed), jvm)

    def revive(self) -> None:
        """Have a new process for the next driver, with what is left of the last one thrown away by
        the JVM; raises DriverError when that cannot be."""
        jvm = self.jvm
        assert jvm is not None
        requests, hears = os.pipe()
        try:
            answers = self._fork_host(requests)
            for server in (DAEMON_FORKS, _OTHER_FORKS):
                await_forks(self.home / server)  # those that the dead driver has asked for
        except (OSError, ProcessError) as e:
            raise DriverError(f"no process for the driver: {e}") from e
        assert self._process is not None
        orphans = self._members() - self._servers - {jvm, self._process.pid}
        send_signal(orphans, signal.SIGKILL)
        self._await_death(orphans)
        send_signal([jvm], signal.SIGCONT)
        self._connection = self._talk(os.fdopen(hears, "wb"), lambda: answers)
        self.wait_ready(REVIVE_S)

    @property
    def _servers(self) -> Set[int]:
        return frozenset((self.pid, self._other.pid))

    def _members(self) -> set[int]:
        return {*session_members(self.pid), *session_members(self._other.pid)}

    def _await_death(self, pids: Set[int]) -> None:
        deadline = time.monotonic() + KILL_TIMEOUT
        while pids & self._members():
            if time.monotonic() > deadline:
                raise ProcessError(f"session {self.pid}: processes {sorted(pids)} do not die")
            time.sleep(_POLL_S)

    def _say(self, text: str) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(text + "\n")
