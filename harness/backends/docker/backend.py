"""The docker backend: the same nodes as containers, killed, paused and started by the engine."""

from __future__ import annotations

import contextlib

from bettong.harness.backends.base import Backend, Runner, folder_for
from bettong.harness.backends.docker.engine import engine
from bettong.harness.backends.docker.platform import DockerPlatform
from bettong.harness.cluster.layout import Layout
from bettong.harness.cluster.platform import Platform
from bettong.harness.cluster.scenario_cluster import RunCluster
from bettong.harness.faults.point import SERVERS
from bettong.harness.scenario import Scenario
from bettong.lineage.errors import UsageError


class DockerBackend(Backend):
    """Each node a container; proxies and conductor on this machine, at its addresses on the
    containers' networks. Raises UsageError on entering when no engine answers."""

    kind = "docker"

    def __init__(self, *, workers: int = 0, spares: int = 1, runner: Runner = "spark") -> None:
        if workers:
            raise UsageError(
                f"--backend docker runs all tasks in the driver: leave out --workers {workers}, "
                "or use --backend local"
            )
        super().__init__(spares=spares, runner=runner)

    def another(self) -> DockerBackend:
        return DockerBackend(spares=self._spares, runner=self.runner)

    def _platform(self, stack: contextlib.ExitStack) -> Platform:
        client = stack.enter_context(engine())
        return stack.enter_context(DockerPlatform(client, folder_for(stack), SERVERS))

    def cluster(self, scenario: Scenario, layout: Layout, spares_jvm: bool = False) -> RunCluster:
        if not layout.folder.is_relative_to(self.runs or "/"):
            raise UsageError(f"containers do not see {layout.folder}: put it into {self.runs}")
        return super().cluster(scenario, layout, spares_jvm)
