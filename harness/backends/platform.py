"""Processes of this machine as the nodes of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from bettong.harness.faults.point import DRIVER
from bettong.harness.processes.addresses import Addresses
from bettong.harness.processes.forked import ForkServerProcess
from bettong.harness.processes.session import Launcher, ProcessSession


class LocalPlatform(Addresses):
    """Processes of this machine, each node with a loopback address of its own. A context manager.

    The driver is forked by a process of its own: it imports Arrow and pandas, and a server that
    was forked with them in memory would take three times as long.

    Args:
        folder: for the fork servers.
        modules: what is ready for all nodes but the driver.
        driver: what is ready for a driver; nothing where it is not a process of ours.
        runs: the folder for folders of runs; None for any.
    """

    conductor = "127.0.0.1"
    server_options = ()

    def __init__(
        self,
        folder: Path,
        modules: Sequence[str],
        driver: Sequence[str] = (),
        runs: Path | None = None,
    ) -> None:
        super().__init__()
        self.runs = runs
        with contextlib.ExitStack() as stack:
            self._servers = stack.enter_context(ForkServerProcess(folder / "servers", modules))
            self._drivers = self._servers
            if driver:
                self._drivers = stack.enter_context(ForkServerProcess(folder / "drivers", driver))
            self._stack = stack.pop_all()

    def __enter__(self) -> LocalPlatform:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def modules(self, node: str) -> Launcher:
        return (self._drivers if node == DRIVER else self._servers).start

    def programs(self, node: str) -> Launcher:
        return ProcessSession.start

    def disconnect(self, node: str) -> str:
        return ""

    def reconnect(self, node: str) -> None:
        pass
