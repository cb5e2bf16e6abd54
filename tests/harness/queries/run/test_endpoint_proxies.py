"""What becomes of a sink's connections to its endpoints, and what waits on them."""

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


@pytest.mark.parametrize(
    ("asked", "waits_for_a_lock"),
    [(["INCR", "x"], True), (["BLPOP", "x", "0"], False), (["XREAD", "BLOCK", "0"], False)],
)
def test_who_waits_to_be_told_something_waits_for_no_lock(
    address: str, asked: list[str], waits_for_a_lock: bool
) -> None:
    command = "".join(f"${len(word)}\r\n{word}\r\n" for word in asked)
    with EndpointProxies({"db": address}) as proxies:
        proxies.begin()
        with socket.create_connection(proxies.open("run0001", 1)["db"], timeout=10) as client:
            client.sendall(f"*{len(asked)}\r\n{command}".encode())
            while not proxies.recorder.met():
                pass
            assert bool(proxies.unanswered(0)) == waits_for_a_lock
            assert proxies.awaits(0) != waits_for_a_lock
