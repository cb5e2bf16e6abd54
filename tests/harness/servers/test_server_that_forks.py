"""A server that goes on forking is paused and killed whole."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator

import psutil
import pytest

from bettong.harness.processes.session import session_members
from bettong.harness.servers.server import Server

PROGRAM = """
import os, signal, socket, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
for _ in range(200):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    time.sleep(0.005)
time.sleep(60)
"""


class Forking(Server):
    """Accepts connections, and has a new child every few milliseconds."""

    name = "forking"

    def prepare(self) -> None: ...

    def command(self) -> list[str]:
        return [sys.executable, "-c", PROGRAM, str(self.port)]

    def greet(self, connection: socket.socket) -> None: ...


@pytest.fixture
def server() -> Iterator[Forking]:
    with Forking() as found:
        yield found


def test_no_child_of_a_paused_server_goes_on(server: Forking) -> None:
    assert server.pid is not None
    server.pause()
    members = session_members(server.pid)
    assert len(members) > 1
    assert {psutil.Process(pid).status() for pid in members} == {"stopped"}
    server.resume()


def test_no_child_outlives_a_server_that_is_killed(server: Forking) -> None:
    session = server.pid
    assert session is not None
    assert server.kill() == -9
    assert session_members(session) == []
