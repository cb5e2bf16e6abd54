"""Where the nodes of a run live: what differs between processes of this machine and containers."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from bettong.harness.processes.session import Launcher


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
