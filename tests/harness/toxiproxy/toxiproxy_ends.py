"""Both ends of a connection, in the test's hands."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from bettong.harness.processes.addresses import many_loopback_addresses

Connect = Callable[[], tuple[socket.socket, socket.socket]]
ENV_SERVER = "BETTONG_TOXIPROXY_SERVER"


def _host() -> str:
    """Who waits for a server to come, or has seen one go, knocks at its port: by now it can be
    ours, and the first to be accepted would not be our client. So ours are where nobody else
    knocks, nor the proxies of a process that runs the same tests beside this one."""
    if not many_loopback_addresses():
        return "127.0.0.1"
    first, second, third = (os.getpid() & 0x3FFFFF).to_bytes(3, "big")
    return f"127.{64 + first}.{second}.{third}"


HOST = _host()
PATIENCE_S = 60.0


def real_server_path() -> str | None:
    """A PATH on which the real server is found, or None."""
    named = os.environ.get(ENV_SERVER)
    if named:
        if Path(named).name != "toxiproxy-server" or not Path(named).is_file():
            raise RuntimeError(f"{ENV_SERVER}={named}: no file that is called toxiproxy-server")
        return str(Path(named).parent)
    return os.environ.get("PATH") if shutil.which("toxiproxy-server") else None


class Upstream:
    """A server whose every move the test decides."""

    def __init__(self) -> None:
        self.listener = socket.create_server((HOST, 0), backlog=64)
        self.listener.settimeout(PATIENCE_S)
        host, port = self.listener.getsockname()
        self.address = f"{host}:{port}"

    def accept(self) -> socket.socket:
        connection, _ = self.listener.accept()
        connection.settimeout(PATIENCE_S)
        return connection


def receive(sock: socket.socket, count: int) -> bytes:
    """Exactly ``count`` bytes, or fewer if the stream ends."""
    data = b""
    while len(data) < count and (chunk := sock.recv(count - len(data))):
        data += chunk
    return data


def receive_all(sock: socket.socket) -> bytes:
    """Everything until the peer closes."""
    data = b""
    while chunk := sock.recv(65536):
        data += chunk
    return data


class EchoServer:
    """Echoes on every connection, each in a thread."""

    def __init__(self) -> None:
        self.listener = socket.create_server((HOST, 0), backlog=256)
        host, port = self.listener.getsockname()
        self.address = f"{host}:{port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(65536):
                    connection.sendall(data)
            except OSError:
                pass
