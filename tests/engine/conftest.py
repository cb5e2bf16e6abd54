"""Real processes on loopback, and a conductor that kills them at a step."""

from __future__ import annotations

import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bettong.engine.address import Address
from bettong.engine.steps import Instrumentation
from bettong.harness.processes.addresses import held_ports


class Killer:
    """A conductor that lets every step pass, but kills the process that comes to one phase of
    one step, or makes another fail as a full disk would."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.kill_at: tuple[str, str] | None = None
        self.fail_at: tuple[str, str] | None = None
        self.killed = threading.Event()
        self._lock = threading.Lock()
        killer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                for line in self.rfile:
                    request = json.loads(line)
                    if not killer.passes(request):
                        return
                    fails = killer.fails(request)
                    self.wfile.write(b'{"go": true, "errno": 28}\n' if fails else b'{"go": true}\n')

        socketserver.ThreadingTCPServer.daemon_threads = True
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.address = "{}:{}".format(*self._server.server_address)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def passes(self, request: dict[str, Any]) -> bool:
        event = request["event"]
        with self._lock:
            self.events.append(event)
            if (event["step"], event["phase"]) != self.kill_at:
                return True
            self.kill_at = None
            os.kill(request["pid"], signal.SIGKILL)
            self.killed.set()
            return False

    def fails(self, request: dict[str, Any]) -> bool:
        event = request["event"]
        with self._lock:
            if (event["step"], event["phase"]) != self.fail_at:
                return False
            self.fail_at = None
            return True

    def counts(self, phase: str = "after") -> Counter[str]:
        with self._lock:
            return Counter(event["step"] for event in self.events if event["phase"] == phase)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def killer() -> Iterator[Killer]:
    found = Killer()
    yield found
    found.close()


class Started(subprocess.Popen[str]):
    """A process and, if it is a server, where it listens."""

    address: Address

    def kill_and_wait(self) -> None:
        self.kill()
        self.wait()


Start = Callable[..., Started]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """``start("bettong.engine.ingest.gateway", "--dir", …, node=…, conductor=…)``."""
    running: list[Started] = []

    def begin(module: str, *arguments: object, node: str = "", conductor: str = "") -> Started:
        env = os.environ | Instrumentation(node=node, conductor=conductor or None).to_env()
        process = Started(
            [sys.executable, "-m", module, *map(str, arguments)],
            env=env,
            stdout=subprocess.PIPE,
            stderr=(tmp_path / f"{len(running)}.{node or module}.log").open("w"),
            text=True,
        )
        running.append(process)
        if "--listen" in arguments:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (tmp_path / f"{len(running) - 1}.{node or module}.log").read_text()
            process.address = Address.parse(json.loads(line)["listening"])
        return process

    yield begin
    for process in running:
        process.kill_and_wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture
def port() -> Iterator[int]:
    with held_ports(1) as (port,):
        yield port
