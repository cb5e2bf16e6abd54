"""Redis."""

from __future__ import annotations

import socket

from bettong.harness.servers.programs import find_program
from bettong.harness.servers.server import Server, receive_exactly


class RedisServer(Server):
    """Redis whose answered writes survive a crash (append-only file, synced on every write)."""

    name = "redis"

    def url(self, address: tuple[str, int] | None = None) -> str:
        host, port = address or (self.host, self.port)
        return f"redis://{host}:{port}/0"

    def prepare(self) -> None:
        find_program("redis-server", "apt-get install redis-server")

    def command(self) -> list[str]:
        settings = {
            "bind": self.host,
            "port": str(self.port),
            "dir": str(self.folder),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
        }
        options = [part for key, value in settings.items() for part in (f"--{key}", value)]
        return [find_program("redis-server", "apt-get install redis-server"), *options]

    def greet(self, connection: socket.socket) -> None:
        connection.sendall(b"PING\r\n")
        answer = receive_exactly(connection, 5)
        if answer != b"+PONG":  # -LOADING while it reads its file
            raise ValueError(f"answered {answer!r}")
