"""Backends: what outlives a run (links, conductor, warm drivers, Spark's workers)."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
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
from bettong.harness.backends.started import Network, Started
from bettong.harness.cluster.broker import KAFKA, Broker
from bettong.harness.cluster.environment import Environment
from bettong.harness.cluster.layout import WARM_UP, Layout
from bettong.harness.cluster.platform import Platform
from bettong.harness.cluster.scenario_cluster import RunCluster
from bettong.harness.conductor.server import Conductor
from bettong.harness.faults.point import DRIVER, SERVERS, Topology
from bettong.harness.processes.session import guard_folder, unguard_folder
from bettong.harness.scenario import Scenario
from bettong.harness.spark import planner_python
from bettong.harness.spark.driver import DriverHost
from bettong.harness.spark.pool import DriverPool, HostKind
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
        if kafka and (workers or (master and has_executors(master))):
            raise UsageError(
                "the broker has its clients in the driver: leave out --workers, and a --master "
                "with executors"
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
        self._entered: Started | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            network = Network.start(self._platform(stack), self.broker, stack)
            if self.broker is not None:
                self._join(self.broker, network, stack)
            spark = self._standalone(network, stack) if self.workers else None
            supply = self._drivers(network, spark, stack) if self.runner == "spark" else None
            if supply is not None and self._foreign is not None:
                check_executors(supply, self._foreign, network.conductor.address)
            self._entered = Started(network, spark, supply, stack.pop_all())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._started.stack.close()

    @property
    def _started(self) -> Started:
        if self._entered is None:
            raise UsageError(f"write: with {type(self).__name__}(…) as backend")
        return self._entered

    @property
    def platform(self) -> Platform:
        """Starts the processes of nodes."""
        return self._started.network.platform

    @property
    def toxiproxy(self) -> ToxiproxyServer:
        """The server that all links go through."""
        return self._started.network.toxiproxy

    @property
    def proxies(self) -> SupervisedToxiproxy:
        """Its client, which starts it again when it ends."""
        return self._started.network.proxies

    @property
    def conductor(self) -> Conductor:
        """That every step asks."""
        return self._started.network.conductor

    @property
    def listen(self) -> Mapping[str, str]:
        """For each server the ``HOST:PORT`` at which it listens."""
        return self._started.network.listen

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
        return self._started.network.way(a, server)

    def cluster(self, scenario: Scenario, layout: Layout, spares_jvm: bool = False) -> RunCluster:
        """The nodes of one run, not started; a context manager that ends them.

        Args:
            spares_jvm: a crash or power cut of the driver spares its JVM, where one can outlive
                that.
        """
        if self._started.spark is not None:
            self._started.spark.start()
        if self.broker is not None:
            self.broker.ensure()
        return RunCluster(self._environment(scenario), scenario, layout, spares_jvm)

    def _environment(self, scenario: Scenario) -> Environment:
        network, spark = self._started.network, self._started.spark
        return Environment(
            network.platform,
            network.conductor.address,
            network.links,
            self.topology(scenario).links,
            network.listen,
            network.way,
            spark.nodes if spark is not None else {},
            self._started.supply,
            self.broker,
        )

    def _join(self, broker: Broker, network: Network, stack: contextlib.ExitStack) -> None:
        """Start a broker which sends its clients to where they find it, behind their proxy."""
        stack.callback(broker.close)
        broker.server.advertised = network.way(DRIVER, KAFKA)
        broker.start()

    @abstractmethod
    def another(self) -> Backend:
        """One more like this without its workers, not entered, for runs that go on beside those of
        this one. It is entered after it and left before it, and shares what imports take long."""

    @abstractmethod
    def _platform(self, stack: contextlib.ExitStack) -> Platform:
        """Where the nodes live, to be left with the stack."""

    @property
    def _host_kind(self) -> HostKind:
        """What drivers run in, where their JVM is this machine's and nobody else's."""
        return DriverHost

    def _readers(self) -> tuple[str, ...]:
        return (DRIVER, *self.workers)

    @property
    def _foreign(self) -> str | None:
        """The master whose executors are not ours."""
        return self.master if self.master is not None and has_executors(self.master) else None

    def _drivers(
        self, network: Network, spark: StandaloneCluster | None, stack: contextlib.ExitStack
    ) -> DriverSupply:
        if self._foreign is not None:  # no spare, which would hold cores of the user's
            named = {k: v for k, v in os.environ.items() if k == "PYSPARK_PYTHON"}
            config = session_config(self._foreign)
            return DriverSupply(stack.enter_context(DriverPool(0, config, named)))
        light = SessionConfig(self.master or LOCAL, SPARK_CONFIG)
        config = spark.config if spark else light
        runs = network.platform.runs
        python = planner_python.install(folder_for(stack, runs))
        launch = network.platform.programs(DRIVER)
        pool = WarmPool(
            self._spares,
            config,
            python,
            WARM_UP,
            launch=launch,
            beside=runs,
            host=self._host_kind,
        )
        return DriverSupply(stack.enter_context(pool))

    def _standalone(self, network: Network, stack: contextlib.ExitStack) -> StandaloneCluster:
        folder = folder_for(stack, network.platform.runs)
        cluster = StandaloneCluster(
            self.workers,
            folder,
            network.platform,
            network.links,
            {w: {s: network.way(w, s) for s in SERVERS} for w in self.workers},
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
