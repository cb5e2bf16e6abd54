"""Processes of this machine as the nodes of a run."""

from __future__ import annotations

from pathlib import Path

from bettong.harness.faults.point import DRIVER
from bettong.harness.processes.addresses import Addresses
from bettong.harness.processes.fork_servers import ForkServers
from bettong.harness.processes.session import Launcher, ProcessSession


class LocalPlatform(Addresses):
    """Processes of this machine, each node with a loopback address of its own.

    Args:
        servers: fork all nodes but the driver.
        drivers: fork the driver. They have Arrow and pandas ready, and a server that was forked
            with them in memory would take three times as long. None where no driver is forked.
        runs: the folder for folders of runs; None for any.
    """

    conductor = "127.0.0.1"
    server_options = ()

    def __init__(
        self,
        servers: ForkServers,
        drivers: ForkServers | None = None,
        runs: Path | None = None,
    ) -> None:
        super().__init__()
        self.runs = runs
        self._servers = servers
        self._drivers = drivers or servers

    def modules(self, node: str) -> Launcher:
        return (self._drivers if node == DRIVER else self._servers).start

    def programs(self, node: str) -> Launcher:
        return ProcessSession.start

    def disconnect(self, node: str) -> str:
        return ""

    def reconnect(self, node: str) -> None:
        pass
