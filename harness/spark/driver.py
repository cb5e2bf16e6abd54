"""A driver host as its owner sees it: started, given jobs, killed, paused."""

from __future__ import annotations

import math
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Set
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, NamedTuple

from bettong.engine.steps import Instrumentation
from bettong.harness.processes.patience import patience
from bettong.harness.processes.session import (
    Ended,
    Launcher,
    ProcessSession,
    Session,
    guard_folder,
    unguard_folder,
)
from bettong.harness.spark.connection import DriverDiedError as DriverDiedError
from bettong.harness.spark.connection import DriverError as DriverError
from bettong.harness.spark.connection import HostConnection
from bettong.harness.spark.connection import JobError as JobError
from bettong.harness.spark.session import SessionConfig

HOST = "bettong.harness.spark.host"
START_S = 120.0
_LOOK_S = 1.0
_TELLING = re.compile(
    r"^(?:Exception in thread \S+ |Caused by: |Error: |py4j\S+: )\s*(\S.*)$", re.MULTILINE
)
_RAISED = re.compile(r"^\s*: (\S.*(?:Exception|Error).*)$", re.MULTILINE)
"""As py4j shows what Java has raised."""


class Frame(NamedTuple):
    """One call of a thread that is under way, and the line that it is at."""

    file: str
    line: int | None
    function: str
    code: str


Stack = list[Frame]
"""The calls of a thread, the first one first."""


def told(error: str, log: str) -> str:
    """The one line that tells most of why Spark has not started, given what was raised and the
    log."""
    lines = [*_TELLING.findall(log), *_RAISED.findall(error)]
    said = lines or [line for line in f"{log}\n{error}".splitlines() if line.strip()]
    return str(said[-1]).strip() if said else "it said nothing"


class DriverHost:
    """One driver host. All processes of the node (host, JVM, Python workers) are in the session
    ``pid``; temporary files are in ``home``, removed when the host is gone.

    Args:
        launch: how its process is started.
        beside: folder in which ``home`` is made.

    Attributes:
        pid: process id of the host, and its session id.
        jvm: process id of the JVM, once ready.
        home: directory of its temporary files.
        log: file with everything that the host, Spark and the workers print.
    """

    def __init__(
        self,
        config: SessionConfig,
        env: Mapping[str, str] | None = None,
        *,
        launch: Launcher = ProcessSession.start,
        beside: Path | None = None,
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="bettong-", dir=beside))
        guard_folder(self.home)
        self.log = self.home / "host.log"
        self.jvm: int | None = None
        self._config = config
        self._env = {**config.environment(self.home), **(env or {})}
        self._launch = launch
        self._session = self._start()
        self.pid = self._session.pid
        self._connection = self._begin()

    def _start(self) -> Session:
        """Its first process."""
        command = [sys.executable, "-m", HOST]
        return self._launch(command, env=self._env, log=self.log, speaks=True, hears=True)

    def _begin(self) -> HostConnection:
        """Have the session started."""
        answers = self._session.answers
        return self._talk(self._session.requests, lambda: answers)

    def _talk(self, requests: IO[bytes], answers: Callable[[], IO[bytes]]) -> HostConnection:
        """The conversation with the process that reads these requests; its answers are there, or
        a DriverError, when ``answers`` returns."""
        connection = HostConnection(requests, str(self.pid), self._why)
        connection.send(
            {
                "config": asdict(self._config),
                "home": str(self.home),
                "jvm": self.jvm,
                "fork_servers": sorted(self._servers),
            }
        )
        name = f"driver-{self.pid}"
        threading.Thread(target=lambda: connection.read(answers()), name=name, daemon=True).start()
        return connection

    @property
    def _servers(self) -> Set[int]:
        """The fork servers from which its processes come."""
        return frozenset()

    def wait_ready(self, timeout: float = START_S, most: float = math.inf) -> None:
        """Return when the session is warm. Raises DriverError when it cannot be started within
        ``timeout`` seconds, which are longer on a busy machine, but never more than ``most``."""
        self.jvm = self._wait_patiently(
            self._connection.ready, "Spark was not ready", timeout, most
        )

    @property
    def started(self) -> bool:
        """Whether it is known that the session is warm, or that it cannot be started."""
        return self._connection.ready.done()

    def wait_done(self, job: Future[Any], timeout: float = START_S, most: float = math.inf) -> None:
        """Return when a job that was submitted is done; limits as of ``wait_ready``.

        Raises DriverError when it takes longer, JobError, or DriverDiedError.
        """
        self._wait_patiently(job, "the job did not end", timeout, most)

    def _wait_patiently(self, job: Future[Any], late: str, timeout: float, most: float) -> Any:
        began = time.monotonic()
        while True:
            try:
                return job.result(min(_LOOK_S, most))
            except TimeoutError as e:
                took = time.monotonic() - began
                if took > min(patience(timeout), most):
                    raise DriverError(f"{late} after {took:.0f} s: {self.log_tail()}") from e

    @property
    def alive(self) -> bool:
        """Whether the host's own process lives."""
        return self._session.poll() is None

    def submit(
        self,
        call: str,
        args: Mapping[str, Any] | None = None,
        instrumentation: Instrumentation | None = None,
    ) -> Future[Any]:
        """Have ``module:function`` called as ``function(spark, **args)`` after the jobs before it.

        The future holds its JSON value, JobError, or DriverDiedError.
        """
        request: dict[str, Any] = {"call": call, "args": dict(args or {})}
        if instrumentation is not None:
            request["instrumentation"] = asdict(instrumentation)
        return self._connection.ask(request)

    def run(
        self,
        call: str,
        args: Mapping[str, Any] | None = None,
        instrumentation: Instrumentation | None = None,
        timeout: float | None = None,
    ) -> Any:
        """``submit`` and wait; raises TimeoutError after ``timeout`` seconds."""
        return self.submit(call, args, instrumentation).result(timeout)

    def stop_queries(self, timeout: float = 60.0) -> None:
        """Stop the queries of the job that runs, at once; it then ends by itself."""
        self._connection.ask({"stop": True}).result(timeout)

    def until_quiet(self, timeout: float = 60.0) -> None:
        """Cancel Spark's jobs and return when none of its tasks runs. Raises JobError."""
        self._connection.ask({"quiet": True}).result(timeout)

    def lose_executor(self, timeout: float = 60.0) -> None:
        """Have Spark lose sight of its one executor, at once: it runs that one's tasks again,
        while the first attempts go on. Kill the host afterwards."""
        self._connection.ask({"lose_executor": True}).result(timeout)

    def where(self, timeout: float = 60.0) -> list[Stack]:
        """Where its Python threads stand, at once. Raises TimeoutError when it is too busy to
        say, DriverDiedError."""
        stacks = self._connection.ask({"where": True}).result(timeout)
        return [[Frame(*frame) for frame in stack] for stack in stacks]

    def reset(self, timeout: float = 60.0) -> None:
        """Undo what jobs left in the session. Raises JobError when that cannot be done."""
        self._connection.ask({"reset": True}).result(timeout)

    def kill(self) -> Ended:
        """SIGKILL every process of the node, paused ones included; no clean-up code runs."""
        ended = self._session.kill()
        shutil.rmtree(self.home, ignore_errors=True)
        unguard_folder(self.home)
        return ended

    def pause(self) -> str:
        """SIGSTOP every process of the node; the evidence that they stand still."""
        return self._session.pause()

    def resume(self) -> None:
        """SIGCONT every process of the node."""
        self._session.resume()

    def log_tail(self, size: int = 2_000) -> str:
        """The end of the log, ``size`` bytes of it."""
        try:
            return self.log.read_bytes()[-size:].decode("utf-8", "replace")
        except OSError:
            return ""

    def _why(self, error: str) -> str:
        """The line of the log that tells most of why the session could not be started."""
        return told(error, self.log_tail(1 << 20))
