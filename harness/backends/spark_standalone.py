"""A Spark standalone cluster on loopback: master, workers and drivers, each on an address of its
own, which find each other only through proxied links.

Each JVM reads a hosts file of its own (``-Djdk.net.hosts.file``) that gives every other node's name
the address of the link to it; ports are the same on both sides of a link, so they are fixed.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bettong.engine.net.peers import ENV_PEERS
from bettong.engine.steps import Instrumentation
from bettong.harness.cluster.links import Links
from bettong.harness.cluster.nodes import START_TIMEOUT, CommandNode, NodeError, last_words
from bettong.harness.cluster.platform import Platform
from bettong.harness.faults.point import DRIVER
from bettong.harness.processes.addresses import held_ports
from bettong.harness.processes.patience import patience
from bettong.harness.spark import jar
from bettong.harness.spark.archive import short_lived
from bettong.harness.spark.session import SessionConfig

MASTER = "master"
_CORES = 4  # for the application in use and the spare's, a core of each worker for each task slot
_DRIVERS = 4  # ports for drivers that live at the same time

_REGISTERED = b"Successfully registered with master"  # what Spark's worker logs
_LOOK_S = 0.05

QUICK = {
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "2s",
    "spark.shuffle.io.maxRetries": "2",
    "spark.shuffle.io.retryWait": "200ms",
    "spark.shuffle.io.connectionTimeout": "5s",
    "spark.rpc.askTimeout": "10s",
    "spark.rpc.lookupTimeout": "10s",
    "spark.locality.wait": "0",
    "spark.deploy.maxExecutorRetries": "-1",
}
"""What Spark waits for, in seconds instead of minutes."""


def name_of(node: str) -> str:
    """The host name of a node."""
    return f"{node}.bettong"


@dataclass(frozen=True)
class Ports:
    """The fixed ports of a cluster's JVMs."""

    master: int
    worker: int
    executor: Sequence[int]
    driver: Sequence[int]
    driver_blocks: Sequence[int]

    @classmethod
    def choose(cls, stack: contextlib.ExitStack) -> Ports:
        """Free ones, held until the stack is left."""
        counts = (1, 1, _DRIVERS, _DRIVERS, _DRIVERS)
        (master,), (worker,), *others = (stack.enter_context(held_ports(n)) for n in counts)
        return cls(master, worker, *others)


class StandaloneCluster:
    """Master and workers, started once and used for many runs.

    Attributes:
        nodes: by name, to be killed and started again.
        config: of drivers that use the cluster.
    """

    def __init__(
        self,
        workers: Sequence[str],
        folder: Path,
        platform: Platform,
        links: Links,
        peers: Mapping[str, Mapping[str, str]],
        spark_config: Mapping[str, str],
    ) -> None:
        self._workers = tuple(workers)
        self._folder = folder
        self._platform = platform
        self._held = contextlib.ExitStack()
        self._ports = Ports.choose(self._held)
        self._hosts = (MASTER, DRIVER, *workers)
        self._link(links)
        for node in self._hosts:
            self._write_hosts(node)
        self.config = SessionConfig(
            f"spark://{name_of(MASTER)}:{self._ports.master}",
            {**spark_config, **QUICK, **self._driver_settings()},
        )
        self.nodes = {MASTER: self._master()}
        self.nodes.update((w, self._worker(w, peers[w])) for w in workers)

    def start(self) -> None:
        """Start the nodes that do not run; returns when the master knows each of these workers.

        A driver that asks earlier gets all its executors on the workers that are there by then.
        Raises NodeError for a worker that does not come.
        """
        logged = {name: _size(node.log) for name, node in self.nodes.items()}
        started = [name for name, node in self.nodes.items() if node.poll() is not None]
        for name in started:
            self.nodes[name].start()
        began = time.monotonic()
        for name in started:
            while name != MASTER and not self._registered(name, logged[name]):
                late = time.monotonic() - began > patience(START_TIMEOUT)
                if late or self.nodes[name].poll() is not None:
                    last = last_words(self.nodes[name].log)
                    raise NodeError(f"the master does not know {name}; its last words: {last}")
                time.sleep(_LOOK_S)

    def _registered(self, worker: str, after: int) -> bool:
        return _REGISTERED in self.nodes[worker].log.read_bytes()[after:]

    def close(self) -> None:
        """Kill every node."""
        for node in self.nodes.values():
            node.kill()
        self._held.close()

    def _link(self, links: Links) -> None:
        own = {
            MASTER: [self._ports.master],
            DRIVER: [*self._ports.driver, *self._ports.driver_blocks],
            **{w: [self._ports.worker, *self._ports.executor] for w in self._workers},
        }
        for a in self._hosts:
            for b in self._hosts:
                if a != b:
                    for port in own[b]:
                        upstream = f"{self._platform.node(b)}:{port}"
                        links.connect(a, b, upstream, f"{self._platform.link(a, b)}:{port}")

    def _write_hosts(self, node: str) -> None:
        lines = [
            f"{self._platform.node(node) if other == node else self._platform.link(node, other)}"
            f" {name_of(other)}\n"
            for other in self._hosts
        ]
        self._hosts_file(node).write_text("".join(lines) + "127.0.0.1 localhost\n")

    def _hosts_file(self, node: str) -> Path:
        return self._folder / f"{node}.hosts"

    def _driver_settings(self) -> dict[str, str]:
        return {
            "spark.driver.host": name_of(DRIVER),
            "spark.driver.bindAddress": self._platform.node(DRIVER),
            "spark.driver.port": str(self._ports.driver[0]),
            "spark.driver.blockManager.port": str(self._ports.driver_blocks[0]),
            "spark.blockManager.port": str(self._ports.executor[0]),
            "spark.port.maxRetries": str(_DRIVERS - 1),
            "spark.cores.max": str(len(self._workers)),
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.scheduler.minRegisteredResourcesRatio": "1",  # so that each worker has tasks
            "spark.driver.extraJavaOptions": self._java_option(DRIVER),
            "spark.executor.extraJavaOptions": " ".join(short_lived()),
        }

    def _java_option(self, node: str) -> str:
        return f"-Djdk.net.hosts.file={self._hosts_file(node)}"

    def _java(self, node: str, main: str, arguments: Sequence[str]) -> list[str]:
        return [
            jar.java(),
            *jar.hooks().jvm_options,
            "-XX:-UsePerfData",
            "-Xmx512m",
            *short_lived(),
            *(f"-D{key}={value}" for key, value in QUICK.items()),
            "-Dspark.worker.timeout=10",
            "-cp",
            os.pathsep.join([str(jar.hooks().path), *jar.class_path()]),
            main,
            *arguments,
        ]

    def _node(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> CommandNode:
        return CommandNode(
            name,
            Instrumentation(),
            self._folder / f"{name}.log",
            command,
            env={
                "SPARK_LOCAL_IP": self._platform.node(name),
                "SPARK_HOME": str(jar.spark_home()),
                "SPARK_SCALA_VERSION": "2.13",  # else the launcher looks for a build of Spark
                # Read by executors too, which a worker starts with its own environment.
                "JAVA_TOOL_OPTIONS": self._java_option(name),
                **env,
            },
        )

    def _master(self) -> CommandNode:
        port = str(self._ports.master)
        arguments = ["--host", name_of(MASTER), "--port", port, "--webui-port", "0"]
        main = "org.apache.spark.deploy.master.Master"
        return self._node(MASTER, self._java(MASTER, main, arguments), {})

    def _worker(self, name: str, peers: Mapping[str, str]) -> CommandNode:
        arguments = [
            *("--host", name_of(name), "--port", str(self._ports.worker), "--webui-port", "0"),
            *("--cores", str(_CORES), "--memory", "4g", "--work-dir", str(self._folder / name)),
            self.config.master,
        ]
        main = "org.apache.spark.deploy.worker.Worker"
        env = {ENV_PEERS: json.dumps(dict(peers))}
        return self._node(name, self._java(name, main, arguments), env)


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0
