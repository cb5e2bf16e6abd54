"""MariaDB."""

from __future__ import annotations

import socket
from pathlib import Path

from bettong.harness.servers.programs import find_program
from bettong.harness.servers.server import Server, receive_exactly

_INSTALL = "apt-get install mariadb-server"
_FOLDERS = ("/usr/sbin", "/usr/libexec", "/usr/bin")
_SETUP = """\
CREATE DATABASE IF NOT EXISTS bettong;
CREATE USER IF NOT EXISTS 'bettong'@'%' IDENTIFIED BY 'bettong';
GRANT ALL ON *.* TO 'bettong'@'%';
"""


class MariaDBServer(Server):
    """MariaDB with user, password and database ``bettong``."""

    name = "mariadb"
    users = ("mysql",)
    user = password = database = "bettong"  # noqa: S105 (of a throw-away server)

    def prepare(self) -> None:
        self.run(
            find_program("mariadb-install-db", _INSTALL, _FOLDERS),
            "--no-defaults",
            f"--datadir={self._data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
        )
        (self.folder / "setup.sql").write_text(_SETUP)
        (self.folder / "setup.sql").chmod(0o644)

    def command(self) -> list[str]:
        return [
            find_program("mariadbd", _INSTALL, _FOLDERS),
            "--no-defaults",
            f"--datadir={self._data}",
            f"--init-file={self.folder / 'setup.sql'}",
            f"--bind-address={self.host}",
            f"--port={self.port}",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            "--innodb-buffer-pool-size=32M",
            "--skip-name-resolve",
        ]

    def greet(self, connection: socket.socket) -> None:
        header = receive_exactly(connection, 4)
        greeting = receive_exactly(connection, int.from_bytes(header[:3], "little"))
        if greeting[:1] != b"\x0a":  # protocol version 10; an error packet begins with 0xff
            raise ValueError(f"greeted with {greeting[:80]!r}")

    @property
    def _data(self) -> Path:
        return self.folder / "data"
