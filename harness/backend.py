"""The local backend: what outlives a run (links, conductor, warm drivers, Spark's workers), and
the nodes of each run."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

from bettong.engine.steps import Instrumentation
from bettong.harness import planner_python
from bettong.harness.addresses import Addresses, free_ports
from bettong.harness.cluster import Cluster
from bettong.harness.conductor import Conductor
from bettong.harness.driver_node import DriverNode, DriverSupply, WarmPool
from bettong.harness.forked import ZygoteServer
from bettong.harness.links import Links
from bettong.harness.nodes import CommandNode, Node
from bettong.harness.run_control import RunControl
from bettong.harness.scenario import Component, Scenario
from bettong.harness.schedule import Topology
from bettong.harness.sessions import guard_folder, unguard_folder
from bettong.harness.spark.session import SessionConfig
from bettong.harness.standalone import DRIVER, MASTER, StandaloneCluster
from bettong.harness.toxiproxy import SupervisedToxiproxy, ToxiproxyServer
from bettong.lineage.errors import UsageError

LOCAL = "local[2,4]"  # a failed task is tried again, as on a cluster
SPARK_CONFIG = {"spark.python.daemon.module": "bettong.harness.python_daemon"}
DRIVER_JOB = "bettong.harness.driver_job:run_query"
DRIVER_PROCESS = "bettong.harness.driver_process"
SERVERS = ("gateway", "receiver")
Runner = Literal["spark", "in-process"]
SENDER = "bettong.engine.ingest.sender"
GATEWAY = "bettong.engine.ingest.gateway"
RECEIVER = "bettong.engine.receiver.server"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the files of one run are.

    Attributes:
        folder: all of them.
    """

    folder: Path

    def input(self, stream: str) -> Path:
        """The messages of a stream, one for each line."""
        return self.folder / f"{stream}.input"

    def acked(self, stream: str) -> Path:
        """What the stream's sender was told is safe."""
        return self.folder / f"{stream}.acked"

    def outcome(self, stream: str) -> Path:
        """How the stream's sender ended, in its own words."""
        return self.folder / f"{stream}.outcome"

    @property
    def gateway(self) -> Path:
        """The gateway's journals."""
        return self.folder / "gateway"

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint and the engine's state."""
        return self.folder / "checkpoint"

    @property
    def receiver(self) -> Path:
        """The receiver's journal and output."""
        return self.folder / "receiver"

    @property
    def files(self) -> Path:
        """Outputs as files, a folder for each sink."""
        return self.folder / "files"

    def log(self, node: str) -> Path:
        """What a node prints."""
        return self.folder / f"{node}.log"


class LocalBackend:
    """Nodes as processes of this machine, links through Toxiproxy on loopback.

    A context manager; leaving it ends everything that was started.

    Args:
        workers: of a Spark standalone cluster; with 0 all tasks run in the driver.
        spares: warm drivers that wait to take a dead one's place.
        runner: ``in-process`` runs the same batches in a driver without Spark.
    """

    def __init__(self, *, workers: int = 0, spares: int = 1, runner: Runner = "spark") -> None:
        if workers and runner != "spark":
            raise UsageError("--runner in-process has no workers: leave --workers out")
        self.runner = runner
        self.workers = tuple(f"w{i}" for i in range(1, workers + 1))
        self._spares = spares
        self._addresses = Addresses()
        self._ways: dict[tuple[str, str], str] = {}

    def __enter__(self) -> LocalBackend:
        with contextlib.ExitStack() as stack:
            self.toxiproxy = stack.enter_context(ToxiproxyServer())
            self.proxies = stack.enter_context(SupervisedToxiproxy(self.toxiproxy))
            self.conductor = stack.enter_context(Conductor())
            self.zygote = stack.enter_context(
                ZygoteServer(self._folder(stack), (GATEWAY, RECEIVER, SENDER, *self._forked()))
            )
            self.links = Links(self.proxies)
            stack.callback(self.links.close)
            self.listen = {s: f"{self._addresses.node(s)}:{free_ports(1)[0]}" for s in SERVERS}
            self.spark = self._standalone(stack) if self.workers else None
            self.supply = self._drivers(stack) if self.runner == "spark" else None
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def topology(self, scenario: Scenario) -> Topology:
        """The nodes and links of a scenario that faults may name."""
        spark = (MASTER, *self.workers) if self.workers else ()
        senders = tuple(scenario.senders.values())
        servers = SERVERS if scenario.outputs == "receiver" else SERVERS[:1]
        connections = [(sender, "gateway") for sender in senders]
        connections += [(reader, server) for reader in self._readers() for server in servers]
        nodes = (*senders, "gateway", DRIVER, *spark, *servers[1:])
        return Topology(nodes, _links(connections, (DRIVER, *spark)))

    def way(self, a: str, server: str) -> str:
        """``HOST:PORT`` at which node a finds a server."""
        if (a, server) not in self._ways:
            listen = f"{self._addresses.link(a, server)}:0"
            way = self.links.connect(a, server, self.listen[server], listen)
            self._ways[a, server] = way
        return self._ways[a, server]

    def cluster(self, scenario: Scenario, layout: Layout) -> LocalCluster:
        """The nodes of one run, not started; a context manager that ends them."""
        if self.spark is not None:
            self.spark.start()
        return LocalCluster(self, scenario, layout)

    def _forked(self) -> tuple[str, ...]:
        return () if self.runner == "spark" else (DRIVER_PROCESS,)

    def _readers(self) -> tuple[str, ...]:
        return (DRIVER, *self.workers)

    def _drivers(self, stack: contextlib.ExitStack) -> DriverSupply:
        config = self.spark.config if self.spark else SessionConfig(LOCAL, SPARK_CONFIG)
        python = planner_python.install(self._folder(stack))
        return DriverSupply(stack.enter_context(WarmPool(self._spares, config, python)))

    def _folder(self, stack: contextlib.ExitStack) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="bettong-backend-"))
        guard_folder(folder)
        stack.callback(unguard_folder, folder)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _standalone(self, stack: contextlib.ExitStack) -> StandaloneCluster:
        folder = self._folder(stack)
        cluster = StandaloneCluster(
            self.workers,
            folder,
            self._addresses,
            self.links,
            {w: {s: self.way(w, s) for s in SERVERS} for w in self.workers},
            SPARK_CONFIG,
        )
        stack.callback(cluster.close)
        cluster.start()
        return cluster


class LocalCluster(Cluster):
    """The nodes of one run of a scenario on a :class:`LocalBackend`."""

    def __init__(self, backend: LocalBackend, scenario: Scenario, layout: Layout) -> None:
        super().__init__(backend.links, backend.spark.nodes if backend.spark else {})
        self._backend = backend
        self._scenario = scenario
        self._layout = layout

    def begin(self, control: RunControl) -> None:
        """Start every node: first the servers, then those that connect to them."""
        self.control = control
        instrumentation = Instrumentation(
            run=control.run, conductor=self._backend.conductor.address
        )
        servers = [self._server("gateway", GATEWAY, instrumentation)]
        if self._scenario.outputs == "receiver":
            servers.append(self._server("receiver", RECEIVER, instrumentation))
        self._start_all(servers)
        senders = (self._sender(s, n, instrumentation) for s, n in self._scenario.senders.items())
        self._start_all([self._driver(instrumentation), *senders])

    def finish(self) -> None:
        """Give the hosts of drivers back whose query has ended."""
        for driver in (self.nodes[DRIVER], *self.zombies):
            if isinstance(driver, DriverNode):
                driver.finish()

    def undo_last_commit(self) -> str:
        """Make the next start of the driver do the last batch again, as after a crash right before
        it counted as done. Returns the step id under which that is told.

        The in-process runner has no log of commits, and does so at every start.
        """
        commits = self._layout.checkpoint / "spark" / "commits"
        done = [int(p.name) for p in commits.glob("[0-9]*")]
        if not done:
            return "replay/last"
        for name in (str(max(done)), f".{max(done)}.crc"):
            (commits / name).unlink(missing_ok=True)
        return f"replay/batch={max(done)}"

    def _server(
        self, name: Component, module: str, instrumentation: Instrumentation
    ) -> CommandNode:
        own = self._scenario.classes.get(name)
        return CommandNode(
            name,
            instrumentation,
            self._layout.log(name),
            [
                *(module, "--dir", str(self._layout.folder / name)),
                *(("--class", own) if own else ()),
            ],
            listen=self._backend.listen[name],
            launch=self._backend.zygote.start,
        )

    def _driver(self, instrumentation: Instrumentation) -> Node:
        scenario = self._scenario
        job = {
            "application": scenario.application,
            "streams": list(scenario.senders),
            **{server: self._backend.way(DRIVER, server) for server in SERVERS},
            "files": str(self._layout.files) if scenario.outputs == "files" else None,
            "checkpoint": str(self._layout.checkpoint),
            "batch": scenario.batch,
            "partitions": scenario.partitions,
            "classes": dict(scenario.classes),
        }
        log = self._layout.log(DRIVER)
        if self._backend.supply is not None:
            return DriverNode(DRIVER, instrumentation, log, self._backend.supply, DRIVER_JOB, job)
        launch = self._backend.zygote.start
        command = [DRIVER_PROCESS, json.dumps(job)]
        return CommandNode(DRIVER, instrumentation, log, command, launch=launch)

    def _sender(self, stream: str, name: str, instrumentation: Instrumentation) -> Node:
        gateway = self._backend.way(name, "gateway")
        layout = self._layout
        command = [
            *(SENDER, "--gateway", gateway),
            *("--stream", stream, "--input", str(layout.input(stream))),
            *("--frame", str(self._scenario.frame), "--acked", str(layout.acked(stream))),
            *("--outcome", str(layout.outcome(stream))),
        ]
        return CommandNode(
            name,
            instrumentation,
            layout.log(name),
            command,
            launch=self._backend.zygote.start,
        )

    def _start_all(self, nodes: Sequence[Node]) -> None:
        """Start several nodes side by side; raises the first error."""
        self.nodes.update((node.name, node) for node in nodes)
        with ThreadPoolExecutor(len(nodes)) as threads:
            list(threads.map(self.start, [node.name for node in nodes]))


def _links(connections: Sequence[tuple[str, str]], spark: Sequence[str]) -> tuple[str, ...]:
    both = [link for a, b in connections for link in (f"{a}->{b}", f"{b}->{a}")]
    return (*both, *(f"{a}->{b}" for a in spark for b in spark if a != b))
