"""Two partitions at once: what one of them has closed stays closed while it lasts."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from bettong.harness.cluster.links import Links
from bettong.harness.cluster.scenario_cluster import RunCluster
from bettong.harness.faults.kinds import Cut
from bettong.harness.faults.point import Point
from bettong.harness.toxiproxy import ToxiproxyServer

ALL = Cut(("a",), ("b", "c"), Point("step"))
ONE = Cut(("a",), ("b",), Point("other"))


@pytest.fixture
def links() -> Iterator[Links]:
    with ToxiproxyServer("embedded") as server:
        found = Links(server.client())
        yield found
        found.close()


def opens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=20).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.parametrize("order", [(ALL, ONE), (ONE, ALL)])
def test_a_link_that_two_cuts_have_closed_opens_with_the_last_of_them(
    links: Links, order: tuple[Cut, Cut]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = links.connect("a", "b", "{}:{}".format(*server.getsockname()))
        first, last = order
        ALL.arm(links)
        ONE.arm(links)
        links.heal(first.id, step_failed=True)
        assert not opens(address)
        links.heal(last.id, step_failed=True)
        assert opens(address)


class Platform:
    """Takes nodes off a network that is a set of names."""

    conductor = "127.0.0.1"

    def __init__(self) -> None:
        self.off: list[str] = []

    def disconnect(self, node: str) -> str:
        self.off.append(node)
        return f"disconnected {node}"

    def reconnect(self, node: str) -> None:
        self.off.remove(node)


def test_a_node_that_two_cuts_leave_alone_comes_back_with_the_last_of_them(links: Links) -> None:
    platform = Platform()
    environment: Any = SimpleNamespace(
        platform=platform, links=links, spark={}, broker=None, links_between=("a->b", "b->a")
    )
    nothing: Any = None
    links.connect("a", "b", "127.0.0.1:1")
    with RunCluster(environment, nothing, nothing) as cluster:
        first, second = Cut(("a",), ("b",), Point("step")), Cut(("a",), ("b",), Point("other"))
        for cut in (first, second):
            cluster.partition(cut.id, cut.left, cut.right, cut.direction)
        assert sorted(platform.off) == ["a", "b"]
        cluster.heal(first.id, step_failed=True)
        assert sorted(platform.off) == ["a", "b"]
        cluster.heal(second.id, step_failed=True)
        assert platform.off == []
