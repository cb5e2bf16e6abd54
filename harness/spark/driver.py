"""A driver host as its owner sees it: started, given jobs, killed, paused."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bettong.engine.steps import Instrumentation
from bettong.harness.processes.patience import patience
from bettong.harness.processes.session import (
    Ended,
    Launcher,
    ProcessSession,
    guard_folder,
    unguard_folder,
)
from bettong.harness.spark.session import SessionConfig
from bettong.lineage.errors import BettongError

START_S = 120.0
_LOOK_S = 1.0
_TELLING = re.compile(
    r"^(?:Exception in thread \S+ |Caused by: |Error: |py4j\S+: )\s*(\S.*)$", re.MULTILINE
)
_RAISED = re.compile(r"^\s*: (\S.*(?:Exception|Error).*)$", re.MULTILINE)
"""As py4j shows what Java has raised."""


def told(error: str, log: str) -> str:
    """The one line that tells most of why Spark has not started, given what was raised and the
    log."""
    lines = [*_TELLING.findall(log), *_RAISED.findall(error)]
    said = lines or [line for line in f"{log}\n{error}".splitlines() if line.strip()]
    return str(said[-1]).strip() if said else "it said nothing"


class DriverError(BettongError):
    """A driver host that did not do what it was asked."""


class DriverDiedError(DriverError):
    """The host ended, killed or by itself, before it answered."""


class JobError(DriverError):
    """The job's function raised.

    Attributes:
        kind: name of the exception's class.
        remote_traceback: the traceback inside the host.
    """

    def __init__(self, kind: str, message: str, remote_traceback: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.remote_traceback = remote_traceback


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
        self._jobs: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._ready: Future[int] = Future()
        self._count = 0
        self._session = launch(
            [sys.executable, "-m", "bettong.harness.spark.host"],
            env={**config.environment(self.home), **(env or {})},
            log=self.log,
            speaks=True,
            hears=True,
        )
        self._requests, self._answers = self._session.requests, self._session.answers
        self.pid = self._session.pid
        threading.Thread(target=self._read, name=f"driver-{self.pid}", daemon=True).start()
        self._send({"config": asdict(config), "home": str(self.home)})

    def wait_ready(self, timeout: float = START_S, most: float = math.inf) -> None:
        """Return when the session is warm. Raises DriverError when it cannot be started within
        ``timeout`` seconds, which are longer on a busy machine, but never more than ``most``."""
        self.jvm = self._wait_patiently(self._ready, "Spark was not ready", timeout, most)

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
        return self._request(request)

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
        self._request({"stop": True}).result(timeout)

    def until_quiet(self, timeout: float = 60.0) -> None:
        """Cancel Spark's jobs and return when none of its tasks runs. Raises JobError."""
        self._request({"quiet": True}).result(timeout)

    def lose_executor(self, timeout: float = 60.0) -> None:
        """Have Spark lose sight of its one executor, at once: it runs that one's tasks again,
        while the first attempts go on. Kill the host afterwards."""
        self._request({"lose_executor": True}).result(timeout)

    def reset(self, timeout: float = 60.0) -> None:
        """Undo what jobs left in the session. Raises JobError when that cannot be done."""
        self._request({"reset": True}).result(timeout)

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

    def _request(self, request: dict[str, Any]) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            self._count += 1
            self._jobs[self._count] = future
            request["id"] = self._count
        try:
            self._send(request)
        except OSError:
            self._fail_all()
        return future

    def _send(self, request: dict[str, Any]) -> None:
        with self._lock:
            self._requests.write(json.dumps(request).encode() + b"\n")
            self._requests.flush()

    def _read(self) -> None:
        for line in self._answers:
            answer = json.loads(line)
            if answer.get("ready"):
                self._ready.set_result(answer["jvm"])
            elif "ready" in answer:
                self._ready.set_exception(
                    DriverError(f"Spark did not start: {self._why(answer['error'])}")
                )
            else:
                with self._lock:
                    future = self._jobs.pop(answer["id"])
                if answer["ok"]:
                    future.set_result(answer["value"])
                else:
                    future.set_exception(
                        JobError(answer["kind"], answer["error"], answer["traceback"])
                    )
        self._fail_all()

    def _fail_all(self) -> None:
        with self._lock:
            jobs, self._jobs = list(self._jobs.values()), {}
        error = DriverDiedError(f"driver host {self.pid} ended before it answered")
        for future in jobs:
            future.set_exception(error)
        if not self._ready.done():
            self._ready.set_exception(DriverError(f"Spark did not start: {self._why('')}"))
