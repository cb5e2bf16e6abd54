"""The local backend: what outlives a run (Toxiproxy, conductor, warm drivers), and the nodes and
links of each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from bettong.engine.steps import Instrumentation
from bettong.harness.addresses import Addresses
from bettong.harness.cluster import Cluster
from bettong.harness.conductor import Conductor
from bettong.harness.driver_node import DriverNode, DriverSupply
from bettong.harness.links import Links
from bettong.harness.nodes import CommandNode, Node
from bettong.harness.run_control import RunControl
from bettong.harness.scenario import Component, Scenario
from bettong.harness.schedule import Topology
from bettong.harness.spark.pool import DriverPool
from bettong.harness.spark.session import SessionConfig
from bettong.harness.toxiproxy import SupervisedToxiproxy, ToxiproxyServer

NODES = ("sender", "gateway", "driver", "receiver")
MASTER = "local[2,4]"  # a failed task is tried again, as on a cluster
SPARK_CONFIG = {"spark.python.daemon.module": "bettong.harness.python_daemon"}
DRIVER_JOB = "bettong.harness.driver_job:run_query"
Way = Callable[[str, str], str]  # how a node finds another: HOST:PORT


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the files of one run are.

    Attributes:
        folder: all of them.
        application: the application's name, under which the receiver keeps its output.
    """

    folder: Path
    application: str

    @property
    def input(self) -> Path:
        """The messages, one for each line."""
        return self.folder / "input"

    @property
    def acked(self) -> Path:
        """What the sender was told is safe."""
        return self.folder / "acked"

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
    """

    def __init__(self, *, workers: int = 0, spares: int = 1) -> None:
        self.workers = workers
        self._spares = spares
        self._stack = contextlib.ExitStack()
        self.topology = Topology(NODES, _links(("driver",)))

    def __enter__(self) -> LocalBackend:
        with contextlib.ExitStack() as stack:
            pool = stack.enter_context(DriverPool(self._spares, SessionConfig(MASTER, SPARK_CONFIG)))
            server = stack.enter_context(ToxiproxyServer())
            self.toxiproxy = server
            self.proxies = stack.enter_context(SupervisedToxiproxy(server))
            self.conductor = stack.enter_context(Conductor())
            self.supply = DriverSupply(pool)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def cluster(self, scenario: Scenario, layout: Layout) -> LocalCluster:
        """The nodes and links of one run, not started; a context manager that ends them."""
        return LocalCluster(self, scenario, layout)


class LocalCluster(Cluster):
    """The nodes of one run of a scenario on a :class:`LocalBackend`."""

    def __init__(self, backend: LocalBackend, scenario: Scenario, layout: Layout) -> None:
        super().__init__(Links(backend.proxies))
        self._backend = backend
        self._scenario = scenario
        self._layout = layout
        self._addresses = Addresses(backend.topology.nodes)

    def begin(self, control: RunControl) -> None:
        """Start every node: first the servers, then those that connect to them."""
        self.control = control
        instrumentation = Instrumentation(
            run=control.run, conductor=self._backend.conductor.address
        )
        servers = [
            self._server("gateway", "bettong.engine.ingest.gateway", instrumentation),
            self._server("receiver", "bettong.engine.receiver.server", instrumentation),
        ]
        self._start_all(servers)
        address = {node.name: node.address for node in servers}

        def way(a: str, b: str) -> str:
            return self.links.connect(a, b, address[b], f"{self._addresses.link(a, b)}:0")

        self._start_all([self._driver(way, instrumentation), self._sender(way, instrumentation)])

    def finish(self) -> None:
        """Give the driver's host back, if its query has ended."""
        driver = self.nodes["driver"]
        assert isinstance(driver, DriverNode)
        driver.finish()

    def _server(
        self, name: Component, module: str, instrumentation: Instrumentation
    ) -> CommandNode:
        directory = self._layout.folder / name
        own = self._scenario.classes.get(name)
        return CommandNode(
            name,
            instrumentation,
            self._layout.log(name),
            ["-m", module, "--dir", str(directory), *(("--class", own) if own else ())],
            host=self._addresses.node(name),
        )

    def _driver(self, way: Way, instrumentation: Instrumentation) -> Node:
        scenario = self._scenario
        job = {
            "application": scenario.application,
            "stream": scenario.stream,
            "gateway": way("driver", "gateway"),
            "receiver": way("driver", "receiver"),
            "checkpoint": str(self._layout.checkpoint),
            "batch": scenario.batch,
            "partitions": scenario.partitions,
            "classes": dict(scenario.classes),
        }
        log = self._layout.log("driver")
        return DriverNode("driver", instrumentation, log, self._backend.supply, DRIVER_JOB, job)

    def _sender(self, way: Way, instrumentation: Instrumentation) -> Node:
        command = [
            *("-m", "bettong.engine.ingest.sender", "--stream", self._scenario.stream),
            *("--gateway", way("sender", "gateway"), "--input", str(self._layout.input)),
            *("--frame", str(self._scenario.frame), "--acked", str(self._layout.acked)),
        ]
        return CommandNode("sender", instrumentation, self._layout.log("sender"), command)

    def _start_all(self, nodes: Sequence[Node]) -> None:
        """Start several nodes side by side; raises the first error."""
        self.nodes.update((node.name, node) for node in nodes)
        with ThreadPoolExecutor(len(nodes)) as threads:
            list(threads.map(self.start, [node.name for node in nodes]))


def _links(workers: tuple[str, ...]) -> tuple[str, ...]:
    pairs = [("sender", "gateway"), ("driver", "gateway"), ("driver", "receiver")]
    pairs += [(w, to) for w in workers if w != "driver" for to in ("gateway", "receiver")]
    return tuple(f"{x}->{y}" for a, b in pairs for x, y in ((a, b), (b, a)))
