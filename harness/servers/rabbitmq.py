"""RabbitMQ."""

from __future__ import annotations

import shlex
import socket

from bettong.harness.servers.programs import find_program
from bettong.harness.servers.server import Server, free_port, receive_exactly

_INSTALL = "apt-get install rabbitmq-server"
_FOLDERS = ("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin", "/opt/homebrew/sbin")


class RabbitMQServer(Server):
    """RabbitMQ, user and password ``guest``.

    Erlang's port mapper is started with it, on a port of its own, since the one that Erlang starts
    by itself is shared and outlives the server.
    """

    name = "rabbitmq"
    ready_seconds = 120.0

    def __init__(self, port: int | None = None) -> None:
        super().__init__(port)
        self._mapper_port = free_port()
        self._distribution_port = free_port()

    def url(self, address: tuple[str, int] | None = None) -> str:
        host, port = address or (self.host, self.port)
        return f"amqp://guest:guest@{host}:{port}/"

    def prepare(self) -> None:
        (self.folder / "enabled_plugins").write_text("[].\n")
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = {self.address}\nlog.console = true\nlog.file = false\n"
            "vm_memory_high_watermark.relative = 0.2\ndisk_free_limit.absolute = 50MB\n"
        )

    def command(self) -> list[str]:
        mapper = find_program("epmd", _INSTALL)
        server = self._server()
        script = (
            f"{shlex.quote(mapper)} -address {self.host} -port {self._mapper_port} & "
            f"exec {shlex.quote(server)}"
        )
        return ["/bin/sh", "-c", script]

    def environment(self) -> dict[str, str]:
        return {
            **super().environment(),
            "ERL_EPMD_PORT": str(self._mapper_port),
            "ERL_EPMD_ADDRESS": self.host,
            "RABBITMQ_NODENAME": "bettong@localhost",
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "+S 2:2 -kernel inet_dist_use_interface {127,0,0,1}"
            ),
        }

    def greet(self, connection: socket.socket) -> None:
        connection.sendall(b"AMQP\x00\x00\x09\x01")
        frame = receive_exactly(connection, 11)
        if frame[0] != 1 or frame[7:11] != b"\x00\x0a\x00\x0a":  # Connection.Start
            raise ValueError(f"answered {frame!r}")

    def _server(self) -> str:
        # not the one on PATH: Debian's wrapper there changes the user
        return find_program("rabbitmq-server", _INSTALL, _FOLDERS, on_path=False)
