"""PostgreSQL."""

from __future__ import annotations

import signal
import socket
import struct
from pathlib import Path

from bettong.harness.servers.programs import find_program
from bettong.harness.servers.server import Server, receive_exactly

_INSTALL = "apt-get install postgresql"
_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")
_PROTOCOL_3 = 196608


class PostgresServer(Server):
    """PostgreSQL with user and database ``bettong``, no password. It refuses root, and then runs
    as the user ``postgres``. Process crashes lose only what was committed without waiting for it
    (``synchronous_commit`` off); power failures would lose more (``fsync`` off)."""

    name = "postgres"
    stop_signal = signal.SIGINT  # "fast": does not wait for clients
    users = ("postgres",)

    def url(self, address: tuple[str, int] | None = None) -> str:
        """A connection URI, at another address if a proxy is between."""
        host, port = address or (self.host, self.port)
        return f"postgresql://bettong@{host}:{port}/bettong"

    def prepare(self) -> None:
        options = ("-U", "bettong", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self.run(self._program("initdb"), "-D", str(self._data), *options)
        single = [self._program("postgres"), "--single", "-D", str(self._data), "postgres"]
        script = f"echo 'CREATE DATABASE bettong' | {' '.join(single)}"
        self.run("/bin/sh", "-c", script)

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": self.host,
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "max_prepared_transactions": "64",
            "wal_writer_delay": "10s",  # what nobody waited for is lost with it, each time
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return [self._program("postgres"), "-D", str(self._data), *options]

    def greet(self, connection: socket.socket) -> None:
        body = struct.pack("!i", _PROTOCOL_3) + b"user\0bettong\0database\0bettong\0\0"
        connection.sendall(struct.pack("!i", len(body) + 4) + body)
        kind = receive_exactly(connection, 1)
        if kind != b"R":  # an ErrorResponse says that it is starting up
            raise ValueError(f"answered {kind!r}")

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _program(self, name: str) -> str:
        return find_program(name, _INSTALL, _FOLDERS)
