"""What a backend has made ready for the nodes of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bettong.harness.cluster.broker import Broker
from bettong.harness.cluster.links import Links
from bettong.harness.cluster.nodes import Node
from bettong.harness.cluster.platform import Platform
from bettong.harness.spark.supply import DriverSupply


@dataclass(frozen=True)
class Environment:
    """Where the nodes of a run live, and what they share with other runs.

    Attributes:
        platform: starts their processes.
        conductor: ``HOST:PORT`` at which they find the conductor.
        links: every link between them.
        links_between: the names of these, ``a->b``.
        listen: for each server the ``HOST:PORT`` at which it listens.
        way: gives the ``HOST:PORT`` at which a node finds a server.
        spark: the nodes of a Spark cluster, by name, if there is one.
        supply: of warm drivers; None where a driver is a process like others.
        broker: of Kafka, if there is one.
    """

    platform: Platform
    conductor: str
    links: Links
    links_between: tuple[str, ...]
    listen: Mapping[str, str]
    way: Callable[[str, str], str]
    spark: Mapping[str, Node]
    supply: DriverSupply | None
    broker: Broker | None
