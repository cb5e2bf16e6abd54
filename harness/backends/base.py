"""Backends: what outlives a run (links, conductor, warm drivers, Spark's workers)."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from bettong.harness.backends.spark_master import (
    check_executors,
    check_url,
    has_executors,
    limit,
    session_config,
)
from bettong.harness.backends.spark_standalone import MASTER, StandaloneCluster
from bettong.harness.cluster.broker import KAFKA, Broker
from bettong.harness.cluster.environment import Environment
from bettong.harness.cluster.layout import SERVERS, WARM_UP, Layout
from bettong.harness.cluster.links import Links
from bettong.harness.cluster.platform import Platform
from bettong.harness.cluster.scenario_cluster import RunCluster
from bettong.harness.conductor.server import Conductor
from bettong.harness.faults.point import DRIVER, Topology
from bettong.harness.processes.addresses import free_ports
from bettong.harness.processes.session import guard_folder, unguard_folder
from bettong.harness.scenario import Scenario
from bettong.harness.servers.kafka import kafka_connector
from bettong.harness.spark import planner_python
from bettong.harness.spark.pool import DriverPool
from bettong.harness.spark.session import SessionConfig
from bettong.harness.spark.supply import DriverSupply, WarmPool
from bettong.harness.toxiproxy import SupervisedToxiproxy, ToxiproxyServer
from bettong.lineage.errors import UsageError

LOCAL = "local[2,4]"  # a failed task is tried again, as on a cluster
SPARK_CONFIG = {"spark.python.daemon.module": "bettong.harness.spark.python_daemon"}
Runner = Literal["spark", "in-process"]


class Backend(ABC):
    """Nodes somewhere, with links through Toxiproxy and a conductor.

    A context manager; leaving it ends everything that was started.

    Args:
        workers: of a Spark standalone cluster; with 0 all tasks run in the driver.
        spares: warm drivers that wait to take a dead one's place.
        runner: ``in-process`` runs the same batches in a driver without Spark.
        master: of Spark, where it is not to be ``local[2,4]`` and the workers are not ours.
        kafka: have a broker, for scenarios that need one.
    """

    kind: str

    def __init__(
        self,
        *,
        workers: int = 0,
        spares: int = 1,
        runner: Runner = "spark",
        master: str | None = None,
        kafka: bool = False,
    ) -> None:
        if kafka and (workers or runner != "spark" or (master and has_executors(master))):
            raise UsageError(
                "Kafka is read by Spark's connector in the driver: leave out --workers, --runner, "
                "and a --master with executors"
            )
        if workers and runner != "spark":
            raise UsageError("--runner in-process has no workers: leave --workers out")
        if master is not None:
            if workers or runner != "spark":
                raise UsageError("--master has workers of its own: leave --workers, --runner out")
            check_url(master)
        self.runner = runner
        self.master = master
        self.broker = Broker() if kafka else None
        self.workers = tuple(f"w{i}" for i in range(1, workers + 1))
        self._spares = spares
        self._ways: dict[tuple[str, str], str] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.platform = self._platform(stack)
            self.toxiproxy = stack.enter_context(ToxiproxyServer())
            self.proxies = stack.enter_context(SupervisedToxiproxy(self.toxiproxy))
            self.conductor = stack.enter_context(Conductor(self.platform.conductor))
            self.links = Links(self.proxies)
            stack.callback(self.links.close)
            self.listen = {s: f"{self.platform.node(s)}:{free_ports(1)[0]}" for s in SERVERS}
            if self.broker is not None:
                self._join(self.broker, stack)
            self.spark = self._standalone(stack) if self.workers else None
            self.supply = self._drivers(stack) if self.runner == "spark" else None
            if self.supply is not None and self._foreign is not None:
                check_executors(self.supply, self._foreign, self.conductor.address)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def runs(self) -> Path | None:
        """The folder in which folders of runs have to be; None for any."""
        return self.platform.runs

    @property
    def limits(self) -> tuple[str, ...]:
        """What no run here shows."""
        return (limit(self._foreign),) if self._foreign is not None else ()

    def topology(self, scenario: Scenario) -> Topology:
        """The nodes and links of a scenario that faults may name."""
        if "kafka" in scenario.servers and self.broker is None:
            raise UsageError(f"{scenario.name} needs a broker: LocalBackend(kafka=True) has one")
        spark = (MASTER, *self.workers) if self.workers else ()
        senders = tuple(scenario.senders.values())
        servers = scenario.servers
        connections = [(sender, "gateway") for sender in senders]
        connections += [(reader, server) for reader in self._readers() for server in servers]
        before = tuple(s for s in servers if s == "gateway")
        nodes = (*senders, *before, DRIVER, *spark, *(s for s in servers if s not in before))
        return Topology(nodes, _links(connections, (DRIVER, *spark)))

    def way(self, a: str, server: str) -> str:
        """``HOST:PORT`` at which node a finds a server."""
        if (a, server) not in self._ways:
            listen = f"{self.platform.link(a, server)}:0"
            persists = server == KAFKA
            way = self.links.connect(a, server, self.listen[server], listen, persists)
            self._ways[a, server] = way
        return self._ways[a, server]

    def cluster(self, scenario: Scenario, layout: Layout) -> RunCluster:
        """The nodes of one run, not started; a context manager that ends them."""
        if self.spark is not None:
            self.spark.start()
        if self.broker is not None:
            self.broker.ensure()
        return RunCluster(self._environment(scenario), scenario, layout)

    def _environment(self, scenario: Scenario) -> Environment:
        return Environment(
            self.platform,
            self.conductor.address,
            self.links,
            self.topology(scenario).links,
            self.listen,
            self.way,
            self.spark.nodes if self.spark is not None else {},
            self.supply,
            self.broker,
        )

    def _join(self, broker: Broker, stack: contextlib.ExitStack) -> None:
        """Start a broker which sends its clients to where they find it, behind their proxy."""
        stack.callback(broker.close)
        self.listen[KAFKA] = broker.server.address
        broker.server.advertised = self.way(DRIVER, KAFKA)
        broker.start()

    @abstractmethod
    def _platform(self, stack: contextlib.ExitStack) -> Platform:
        """Where the nodes live, to be left with the stack."""

    def _readers(self) -> tuple[str, ...]:
        return (DRIVER, *self.workers)

    @property
    def _foreign(self) -> str | None:
        """The master whose executors are not ours."""
        return self.master if self.master is not None and has_executors(self.master) else None

    def _drivers(self, stack: contextlib.ExitStack) -> DriverSupply:
        if self._foreign is not None:  # no spare, which would hold cores of the user's
            named = {k: v for k, v in os.environ.items() if k == "PYSPARK_PYTHON"}
            config = session_config(self._foreign)
            return DriverSupply(stack.enter_context(DriverPool(0, config, named)))
        connector = kafka_connector() if self.broker is not None else {}
        light = SessionConfig(self.master or LOCAL, {**SPARK_CONFIG, **connector})
        config = self.spark.config if self.spark else light
        python = planner_python.install(folder_for(stack, self.runs))
        launch = self.platform.programs(DRIVER)
        pool = WarmPool(self._spares, config, python, WARM_UP, launch=launch, beside=self.runs)
        return DriverSupply(stack.enter_context(pool))

    def _standalone(self, stack: contextlib.ExitStack) -> StandaloneCluster:
        folder = folder_for(stack, self.runs)
        cluster = StandaloneCluster(
            self.workers,
            folder,
            self.platform,
            self.links,
            {w: {s: self.way(w, s) for s in SERVERS} for w in self.workers},
            SPARK_CONFIG,
        )
        stack.callback(cluster.close)
        cluster.start()
        return cluster


def folder_for(stack: contextlib.ExitStack, beside: Path | None = None) -> Path:
    """A new folder, which is gone when the stack is left or Bettong is killed."""
    folder = Path(tempfile.mkdtemp(prefix="bettong-backend-", dir=beside))
    guard_folder(folder)
    stack.callback(unguard_folder, folder)
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _links(connections: Sequence[tuple[str, str]], spark: Sequence[str]) -> tuple[str, ...]:
    both = [link for a, b in connections for link in (f"{a}->{b}", f"{b}->{a}")]
    return (*both, *(f"{a}->{b}" for a in spark for b in spark if a != b))
