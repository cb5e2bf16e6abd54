"""Two networks of a backend: one for the links between nodes, one for their conductor.

Neither leads anywhere but to this machine, no port is published, and containers cannot reach each
other: whatever passes from node to node passes the proxies, which listen at the address that this
machine has there. A node that is taken off the first network still hears its conductor.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator, Mapping
from typing import Any

import psutil

from bettong.harness.backends.docker.engine import EngineError

_POOL = "10.213"
_FIXED = range(2, 100)  # addresses that the engine gives to nobody by itself


class Network:
    """A network with fixed addresses for some nodes.

    Attributes:
        gateway: this machine's address on it.
    """

    def __init__(self, client: Any, name: str, labels: Mapping[str, str]) -> None:
        self.network, self._subnet = _create(client, name, labels)
        self.gateway = str(self._subnet[1])
        self._numbers: dict[str, int] = {}

    def address(self, node: str) -> str:
        """The address that is the node's, if it has a fixed one."""
        number = self._numbers.setdefault(node, _FIXED[len(self._numbers)])
        return str(self._subnet[number])


def _create(client: Any, name: str, labels: Mapping[str, str]) -> tuple[Any, ipaddress.IPv4Network]:
    from docker.errors import APIError
    from docker.types import IPAMConfig, IPAMPool

    for subnet in _free_subnets(client):
        pool = IPAMPool(
            subnet=str(subnet),
            gateway=str(subnet[1]),
            iprange=str(list(subnet.subnets(1))[1]),
        )
        try:
            network = client.networks.create(
                name,
                driver="bridge",
                internal=True,
                ipam=IPAMConfig(pool_configs=[pool]),
                labels=dict(labels),
                options={"com.docker.network.bridge.enable_icc": "false"},
            )
        except APIError as e:
            if "overlap" in str(e):  # another Bettong has just taken it
                continue
            raise
        return network, subnet
    raise EngineError(f"no network of {_POOL}.0.0/16 is free: docker network ls shows who has them")


def _free_subnets(client: Any) -> Iterator[ipaddress.IPv4Network]:
    taken = [
        ipaddress.ip_network(config["Subnet"])
        for network in client.networks.list()
        for config in network.attrs["IPAM"]["Config"] or ()
    ]
    taken += [
        ipaddress.ip_network(f"{address.address}/{address.netmask}", strict=False)
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family.name == "AF_INET" and address.netmask
    ]
    subnets = [ipaddress.IPv4Network(f"{_POOL}.{i}.0/24") for i in range(256)]
    first = os.getpid() % len(subnets)
    for subnet in (*subnets[first:], *subnets[:first]):
        if not any(other.version == 4 and subnet.overlaps(other) for other in taken):
            yield subnet
