"""The local backend: nodes as processes of this machine."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import NamedTuple

from bettong.harness.backends.base import Backend, folder_for
from bettong.harness.backends.platform import LocalPlatform
from bettong.harness.cluster.layout import (
    DRIVER_IMPORTS,
    DRIVER_PROCESS,
    GATEWAY,
    RECEIVER,
    SENDER,
)
from bettong.harness.cluster.platform import Platform
from bettong.harness.processes.folders import folder_in_memory
from bettong.harness.processes.fork_servers import ForkServers
from bettong.harness.spark.lasting_jvm import LastingJvmHost
from bettong.harness.spark.pool import HostKind


class _ForkServers(NamedTuple):
    servers: ForkServers
    drivers: ForkServers | None = None


class LocalBackend(Backend):
    """Nodes as processes of this machine, links through Toxiproxy on loopback."""

    kind = "local"
    _like: LocalBackend | None = None
    _forks: _ForkServers

    def another(self) -> LocalBackend:
        kafka = self.broker is not None
        found = LocalBackend(
            spares=self._spares, runner=self.runner, master=self.master, kafka=kafka
        )
        found._like = self._like or self
        return found

    def _platform(self, stack: contextlib.ExitStack) -> Platform:
        self._forks = self._like._forks if self._like is not None else self._fork_servers(stack)
        if self._forks.drivers is None:
            return LocalPlatform(self._forks.servers)
        # Disks lose what was not synced by the books, so that memory does as well.
        return LocalPlatform(self._forks.servers, self._forks.drivers, folder_in_memory())

    def _fork_servers(self, stack: contextlib.ExitStack) -> _ForkServers:
        folder = folder_for(stack)
        modules = (GATEWAY, RECEIVER, SENDER)
        servers = stack.enter_context(ForkServers(folder / "servers", modules))
        if self.runner == "spark":
            return _ForkServers(servers)
        drivers = stack.enter_context(ForkServers(folder / "drivers", (DRIVER_PROCESS,)))
        return _ForkServers(servers, drivers)

    @property
    def _host_kind(self) -> HostKind:
        if self.workers or self.master is not None or self.broker is not None:
            return super()._host_kind
        return partial(LastingJvmHost, imports=DRIVER_IMPORTS)
