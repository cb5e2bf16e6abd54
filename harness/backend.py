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

    @property
    def input(self) -> Path:
        """The messages, one for each line."""
        return self.folder / "input"

    @property
    def acked(self) -> Path:
        """What the sender was told is safe."""
        return self.folder / "acked"

    @property
    def outcome(self) -> Path:
        """How the sender ended, in its own words."""
        return self.folder / "outcome"

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

    Attributes:
        topology: the nodes and links that faults may name.
    """

    def __init__(self, *, workers: int = 0, spares: int = 1, runner: Runner = "spark") -> None:
        if workers and runner != "spark":
            raise UsageError("--runner in-process has no workers: leave --workers out")
        self.runner = runner
        self.workers = tuple(f"w{i}" for i in range(1, workers + 1))
        self._spares = spares
        spark = (MASTER, *self.workers) if workers else ()
        nodes = ("sender", "gateway", DRIVER, *spark, "receiver")
        self._addresses = Addresses(nodes)
        self._ways: dict[tuple[str, str], str] = {}
        self.topology = Topology(nodes, _links(self._connections(), (DRIVER, *spark)))

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
            for a, b in self._connections():
                listen = f"{self._addresses.link(a, b)}:0"
                self._ways[a, b] = self.links.connect(a, b, self.listen[b], listen)
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

    def way(self, a: str, b: str) -> str:
        """``HOST:PORT`` at which node a finds node b."""
        return self._ways[a, b]

    def cluster(self, scenario: Scenario, layout: Layout) -> LocalCluster:
        """The nodes of one run, not started; a context manager that ends them."""
        if self.spark is not None:
            self.spark.start()
        return LocalCluster(self, scenario, layout)

    def _forked(self) -> tuple[str, ...]:
        return () if self.runner == "spark" else (DRIVER_PROCESS,)

    def _connections(self) -> list[tuple[str, str]]:
        readers = (DRIVER, *self.workers)
        return [("sender", "gateway"), *((r, s) for r in readers for s in SERVERS)]

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
        self._start_all(
            [
                self._server("gateway", GATEWAY, instrumentation),
                self._server("receiver", RECEIVER, instrumentation),
            ]
        )
        self._start_all([self._driver(instrumentation), self._sender(instrumentation)])

    def finish(self) -> None:
        """Give the driver's host back, if its query has ended."""
        driver = self.nodes[DRIVER]
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
            "stream": scenario.stream,
            **{server: self._backend.way(DRIVER, server) for server in SERVERS},
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

    def _sender(self, instrumentation: Instrumentation) -> Node:
        gateway = self._backend.way("sender", "gateway")
        command = [
            *(SENDER, "--gateway", gateway),
            *("--stream", self._scenario.stream, "--input", str(self._layout.input)),
            *("--frame", str(self._scenario.frame), "--acked", str(self._layout.acked)),
            *("--outcome", str(self._layout.outcome)),
        ]
        return CommandNode(
            "sender",
            instrumentation,
            self._layout.log("sender"),
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
