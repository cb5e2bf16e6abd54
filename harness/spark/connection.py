"""The conversation with one process of a driver host; :mod:`bettong.harness.spark.host` is its
other side."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import IO, Any

from bettong.lineage.errors import BettongError


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


class HostConnection:
    """Requests to a process and its answers, each of which becomes the result of a future.

    Args:
        requests: its standard input.
        name: of the host, for messages.
        why: why the session could not be started, given what the process says of that.

    Attributes:
        ready: holds the JVM's process id when the session is warm, or a DriverError.
    """

    def __init__(self, requests: IO[bytes], name: str, why: Callable[[str], str]) -> None:
        self.ready: Future[int] = Future()
        self._requests = requests
        self._name = name
        self._why = why
        self._jobs: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._count = 0

    def send(self, request: Mapping[str, Any]) -> None:
        """Say something that has no answer; raises OSError when the process is gone."""
        with self._lock:
            self._requests.write(json.dumps(request).encode() + b"\n")
            self._requests.flush()

    def ask(self, request: Mapping[str, Any]) -> Future[Any]:
        """The future holds the JSON value of the answer, JobError, or DriverDiedError."""
        future: Future[Any] = Future()
        with self._lock:
            self._count += 1
            number = self._count
            self._jobs[number] = future
        try:
            self.send({**request, "id": number})
        except OSError:
            self._fail_all()
        return future

    def read(self, answers: IO[bytes]) -> None:
        """Take in answers until there are no more: the process has ended."""
        for line in answers:
            answer = json.loads(line)
            if answer.get("ready"):
                self.ready.set_result(answer["jvm"])
            elif "ready" in answer:
                self._not_ready(answer["error"])
            else:
                self._answered(answer)
        self._fail_all()

    def _answered(self, answer: Mapping[str, Any]) -> None:
        with self._lock:
            future = self._jobs.pop(answer["id"])
        if answer["ok"]:
            future.set_result(answer["value"])
        else:
            future.set_exception(JobError(answer["kind"], answer["error"], answer["traceback"]))

    def _not_ready(self, error: str) -> None:
        self.ready.set_exception(DriverError(f"Spark did not start: {self._why(error)}"))

    def _fail_all(self) -> None:
        with self._lock:
            jobs, self._jobs = list(self._jobs.values()), {}
        error = DriverDiedError(f"driver host {self._name} ended before it answered")
        for future in jobs:
            future.set_exception(error)
        if not self.ready.done():
            self._not_ready("")
