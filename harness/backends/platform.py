"""Processes of this machine as the nodes of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bettong.harness.processes.addresses import Addresses
from bettong.harness.processes.forked import ForkServerProcess
from bettong.harness.processes.session import Launcher, ProcessSession


class LocalPlatform(Addresses):
    """Processes of this machine, each node with a loopback address of its own.

    Args:
        folder: for a fork server.
        modules: what the fork server has ready.
        runs: the folder for folders of runs; None for any.
    """

    conductor = "127.0.0.1"
    server_options = ()

    def __init__(self, folder: Path, modules: Sequence[str], runs: Path | None = None) -> None:
        super().__init__()
        self.runs = runs
        self.fork_server = ForkServerProcess(folder, modules)

    def modules(self, node: str) -> Launcher:
        return self.fork_server.start

    def programs(self, node: str) -> Launcher:
        return ProcessSession.start

    def disconnect(self, node: str) -> str:
        return ""

    def reconnect(self, node: str) -> None:
        pass
