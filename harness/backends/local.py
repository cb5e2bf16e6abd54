"""The local backend: nodes as processes of this machine."""

from __future__ import annotations

import contextlib

from bettong.harness.backends.base import Backend, folder_for
from bettong.harness.backends.platform import LocalPlatform
from bettong.harness.cluster.layout import DRIVER_PROCESS, GATEWAY, RECEIVER, SENDER
from bettong.harness.cluster.platform import Platform


class LocalBackend(Backend):
    """Nodes as processes of this machine, links through Toxiproxy on loopback."""

    kind = "local"

    def _platform(self, stack: contextlib.ExitStack) -> Platform:
        modules = (GATEWAY, RECEIVER, SENDER)
        forked = modules if self.runner == "spark" else (*modules, DRIVER_PROCESS)
        platform = LocalPlatform(folder_for(stack), forked)
        stack.enter_context(platform.fork_server)
        return platform
