"""What a backend has while it is entered."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from bettong.harness.backends.spark_standalone import StandaloneCluster
from bettong.harness.cluster.broker import KAFKA, Broker
from bettong.harness.cluster.links import Links
from bettong.harness.cluster.platform import Platform
from bettong.harness.conductor.server import Conductor
from bettong.harness.faults.point import SERVERS
from bettong.harness.processes.addresses import held_ports
from bettong.harness.spark.supply import DriverSupply
from bettong.harness.toxiproxy import SupervisedToxiproxy, ToxiproxyServer


@dataclass(frozen=True)
class Network:
    """Where nodes live and how they reach each other.

    Attributes:
        platform: starts their processes.
        toxiproxy: the server that all links go through.
        proxies: its client, which starts it again when it ends.
        conductor: that every step asks.
        links: every link between nodes.
        listen: for each server the ``HOST:PORT`` at which it listens.
    """

    platform: Platform
    toxiproxy: ToxiproxyServer
    proxies: SupervisedToxiproxy
    conductor: Conductor
    links: Links
    listen: Mapping[str, str]
    _ways: dict[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def start(cls, platform: Platform, broker: Broker | None, stack: contextlib.ExitStack) -> Self:
        """Start proxies and conductor, to be left with the stack; ``broker``: one more server."""
        toxiproxy = stack.enter_context(ToxiproxyServer())
        proxies = stack.enter_context(SupervisedToxiproxy(toxiproxy))
        conductor = stack.enter_context(Conductor(platform.conductor))
        links = Links(proxies)
        stack.callback(links.close)
        ports = [stack.enter_context(held_ports(1))[0] for _ in SERVERS]
        listen = {s: f"{platform.node(s)}:{p}" for s, p in zip(SERVERS, ports, strict=True)}
        if broker is not None:
            listen[KAFKA] = broker.server.address
        return cls(platform, toxiproxy, proxies, conductor, links, listen)

    def way(self, a: str, server: str) -> str:
        """``HOST:PORT`` at which node a finds a server."""
        if (a, server) not in self._ways:
            listen = f"{self.platform.link(a, server)}:0"
            persists = server == KAFKA
            way = self.links.connect(a, server, self.listen[server], listen, persists)
            self._ways[a, server] = way
        return self._ways[a, server]


@dataclass(frozen=True)
class Started:
    """A network with what runs on it from one run to the next.

    Attributes:
        network: that of the nodes.
        spark: a cluster of Spark, if there is one.
        supply: of warm drivers; None where a driver is a process like others.
        stack: ends all of it.
    """

    network: Network
    spark: StandaloneCluster | None
    supply: DriverSupply | None
    stack: contextlib.ExitStack
