"""Which Toxiproxy server there is, and starting one.

In this order: the one that ``TOXIPROXY_URL`` names; ``toxiproxy-server`` on PATH; a container, when
an engine answers and has an image called ``toxiproxy``; the embedded server.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal, Protocol

from bettong.harness.processes.session import guard_session, unguard_session
from bettong.harness.toxiproxy.client import TIME_LIMIT, Toxiproxy
from bettong.harness.toxiproxy.container import Container, local_image
from bettong.harness.toxiproxy.errors import ToxiproxyError, ToxiproxyHungError

Kind = Literal["url", "binary", "container", "embedded"]

BINARY = "toxiproxy-server"
ENV_URL = "TOXIPROXY_URL"
_HOST = "127.0.0.1"
_START_SECONDS = 20.0
_STOP_SECONDS = 5.0
_PORT_TRIES = 5


class _Running(Protocol):
    def failure(self) -> str | None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


class _Process:
    """A server that is a child process of ours, in a session of its own so that an interrupt from
    the keyboard does not end it before faults are healed."""

    def __init__(self, command: list[str], until_eof: bool) -> None:
        self.command = command
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if until_eof else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        guard_session(self.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def failure(self) -> str | None:
        code = self._process.poll()
        return None if code is None else f"{self.command[0]} ended with status {code}"

    def stop(self) -> None:
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        unguard_session(self.pid)
        if self._process.stdin is not None:
            self._process.stdin.close()


def resolve(env: Mapping[str, str] = os.environ) -> Kind:
    """Which kind of server a run would use on this machine."""
    if env.get(ENV_URL):
        return "url"
    if shutil.which(BINARY, path=env.get("PATH")):
        return "binary"
    if local_image() is not None:
        return "container"
    return "embedded"


class ToxiproxyServer:
    """A Toxiproxy server on loopback, ours to start and stop unless it was named by URL.

    A context manager; ``with ToxiproxyServer() as server: server.client().create(…)``. Raises
    ToxiproxyError when it does not start, or when the one named by URL does not answer.

    Attributes:
        kind: what it is, see :func:`resolve`.
        url: its API, once started.
    """

    def __init__(self, kind: Kind | None = None, env: Mapping[str, str] = os.environ) -> None:
        self.kind = kind or resolve(env)
        self.url = env.get(ENV_URL, "") if self.kind == "url" else ""
        self._binary = shutil.which(BINARY, path=env.get("PATH")) or ""
        self._running: _Running | None = None

    @property
    def pid(self) -> int | None:
        """Of the process, where it is a child of ours."""
        return self._running.pid if isinstance(self._running, _Process) else None

    @property
    def ours(self) -> bool:
        """Whether we started it, and so may restart it."""
        return self.kind != "url"

    def client(self, time_limit: float = TIME_LIMIT) -> Toxiproxy:
        return Toxiproxy(self.url, time_limit)

    def start(self) -> ToxiproxyServer:
        if self.kind == "url":
            self.client().version()
            return self
        problems = []
        for _ in range(
            _PORT_TRIES
        ):  # the free port may be taken by another before the server has it
            port = _free_port()
            try:
                self._start_on(port)
                return self
            except ToxiproxyError as e:
                problems.append(str(e))
        raise ToxiproxyError(f"no Toxiproxy ({self.kind}) could be started: {problems[-1]}")

    def restart(self) -> None:
        """End it, however it is, and start it at the same address; proxies and connections are
        gone then. Raises ToxiproxyError when it is not ours or does not start."""
        if not self.ours:
            raise ToxiproxyError(f"Toxiproxy at {self.url} hangs: restart it")
        if self._running is not None:
            self._running.kill()  # one that hangs would not end by itself
        self._start_on(int(self.url.rpartition(":")[2]))

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop()
            self._running = None

    def _start_on(self, port: int) -> None:
        self.url = f"http://{_HOST}:{port}"
        self._running = self._launch(port)
        client = self.client(time_limit=1.0)
        deadline = time.monotonic() + _START_SECONDS
        while True:
            reason = self._running.failure()
            try:
                if reason is None:
                    client.version()
                    return
            except ToxiproxyHungError as e:
                if time.monotonic() > deadline:
                    reason = str(e)
            if reason is not None:
                self.stop()
                raise ToxiproxyError(f"Toxiproxy ({self.kind}) did not start: {reason}")
            time.sleep(0.02)

    def _launch(self, port: int) -> _Running:
        if self.kind == "container":
            image = local_image()
            if image is None:
                raise ToxiproxyError("there is no container engine with an image called toxiproxy")
            return Container(image, _HOST, port)
        if self.kind == "binary":
            if not self._binary:
                raise ToxiproxyError(f"{BINARY} is not on PATH")
            return _Process(
                [self._binary, "-host", _HOST, "-port", str(port), "-proxy-metrics"], False
            )
        module = "bettong.harness.toxiproxy.embedded"
        return _Process(
            [sys.executable, "-m", module, "--host", _HOST, "--port", str(port), "--until-eof"],
            True,
        )

    def __enter__(self) -> ToxiproxyServer:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
