"""NATS with JetStream."""

from __future__ import annotations

import socket

from bettong.harness.servers.programs import find_program
from bettong.harness.servers.server import Server

_INSTALL = "apt-get install nats-server"


class NatsServer(Server):
    """NATS with JetStream on files.

    Attributes:
        advertised: ``host:port`` that it names to clients instead of its own: a proxy's.
    """

    name = "nats"

    def __init__(self, port: int | None = None, advertised: str | None = None) -> None:
        super().__init__(port)
        self.advertised = advertised

    def url(self, address: tuple[str, int] | None = None) -> str:
        host, port = address or (self.host, self.port)
        return f"nats://{host}:{port}"

    def prepare(self) -> None:
        find_program("nats-server", _INSTALL)

    def command(self) -> list[str]:
        (self.folder / "nats.conf").write_text(
            f'host: "{self.host}"\nport: {self.port}\n'
            f'jetstream {{ store_dir: "{self.folder}" }}\n'
            + (f'client_advertise: "{self.advertised}"\n' if self.advertised else "")
        )
        return [find_program("nats-server", _INSTALL), "-c", str(self.folder / "nats.conf")]

    def greet(self, connection: socket.socket) -> None:
        reader = connection.makefile("rb")
        if not reader.readline().startswith(b"INFO "):
            raise ValueError("no INFO")
        connection.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
        answer = reader.readline()
        if answer != b"PONG\r\n":
            raise ValueError(f"answered {answer!r}")
