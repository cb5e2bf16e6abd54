"""Where the nodes of a backend live: what differs between processes of this machine and
containers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from bettong.harness.processes.addresses import Addresses
from bettong.harness.processes.forked import ForkServerProcess
from bettong.harness.processes.session import Launcher, ProcessSession


class Platform(Protocol):
    """Starts the processes of nodes, and says where nodes find each other.

    Attributes:
        conductor: the address at which every node finds the conductor.
        runs: the folder in which folders of runs and of drivers have to be; None for any.
        server_options: further arguments of gateway and receiver.
    """

    @property
    def conductor(self) -> str: ...
    @property
    def runs(self) -> Path | None: ...
    @property
    def server_options(self) -> tuple[str, ...]: ...

    def node(self, name: str) -> str:
        """The address of a node, the same for each of its incarnations."""

    def link(self, a: str, b: str) -> str:
        """The address at which node a finds node b through a proxy."""

    def modules(self, node: str) -> Launcher:
        """Starts a node's process; the command is ``[MODULE, ARGUMENT, …]`` of our Python."""

    def programs(self, node: str) -> Launcher:
        """Starts a node's process; the command is a program with its arguments."""

    def disconnect(self, node: str) -> str:
        """All links of a node are cut: do what there is to do beyond that; the evidence."""

    def reconnect(self, node: str) -> None:
        """Undo it."""


class LocalPlatform(Addresses):
    """Processes of this machine, each node with a loopback address of its own.

    Args:
        folder: for a fork server.
        modules: what the fork server has ready.
    """

    conductor = "127.0.0.1"
    runs = None
    server_options = ()

    def __init__(self, folder: Path, modules: Sequence[str]) -> None:
        super().__init__()
        self.fork_server = ForkServerProcess(folder, modules)

    def modules(self, node: str) -> Launcher:
        return self.fork_server.start

    def programs(self, node: str) -> Launcher:
        return ProcessSession.start

    def disconnect(self, node: str) -> str:
        return ""

    def reconnect(self, node: str) -> None:
        pass
