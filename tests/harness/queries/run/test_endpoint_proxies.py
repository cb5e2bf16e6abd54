"""Each endpoint of a sink is refused by its own name."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from bettong.harness.queries.run.endpoints import EndpointProxies


@pytest.fixture
def address() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        yield f"{host}:{port}"


def takes_connections(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=10).close()
    except ConnectionRefusedError:
        return False
    return True


def test_an_endpoint_whose_name_ends_like_it_is_not_refused_in_its_place(address: str) -> None:
    with EndpointProxies({"audit-db": address, "db": address}) as proxies:
        ways = proxies.open("run0001", 1)
        proxies.refuse("run0001", 1, "db")
        assert takes_connections(ways["audit-db"])
        assert not takes_connections(ways["db"])
