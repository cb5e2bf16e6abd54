"""Every conformance test runs against the embedded server and the real one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from toxiproxy_ends import (
    HOST,
    PATIENCE_S,
    Connect,
    EchoServer,
    Upstream,
    real_server_path,
)

from bettong.harness.toxiproxy import Proxy, Toxiproxy, ToxiproxyServer
from bettong.harness.toxiproxy.container import local_image


def kinds() -> list[str]:
    """The servers that this machine has; test_the_real_toxiproxy_is_here says loudly what lacks."""
    found = ["embedded"]
    if real_server_path() is not None:
        found.append("binary")
    if local_image() is not None:
        found.append("container")
    return found


@pytest.fixture(scope="session", params=kinds())
def server(request: pytest.FixtureRequest) -> Iterator[ToxiproxyServer]:
    with ToxiproxyServer(request.param, {"PATH": real_server_path() or ""}) as started:
        yield started


@pytest.fixture
def api(server: ToxiproxyServer) -> Iterator[Toxiproxy]:
    client = server.client()
    yield client
    for name in client.proxies():
        client.delete(name)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.listener.close()


@pytest.fixture
def proxy(api: Toxiproxy, upstream: Upstream) -> Proxy:
    return api.create(Proxy("link", upstream.address, f"{HOST}:0"))


@pytest.fixture
def connect(proxy: Proxy, upstream: Upstream) -> Iterator[Connect]:
    """Makes a connection through the proxy; gives the client's and the server's end."""
    opened: list[socket.socket] = []

    def make() -> tuple[socket.socket, socket.socket]:
        client = socket.create_connection(proxy.address, timeout=PATIENCE_S)
        opened.append(client)
        server = upstream.accept()
        opened.append(server)
        return client, server

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def echo() -> Iterator[EchoServer]:
    server = EchoServer()
    yield server
    server.listener.shutdown(socket.SHUT_RDWR)
    server.listener.close()
