"""Every conformance test runs against the embedded server and the real one."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from toxiproxy_ends import Connect, EchoServer, Upstream

from bettong.harness.toxiproxy import Proxy, Toxiproxy, ToxiproxyServer
from bettong.harness.toxiproxy.container import local_image

ENV_SERVER = "BETTONG_TOXIPROXY_SERVER"


def real_server_path() -> str | None:
    """A PATH on which the real server is found, or None."""
    named = os.environ.get(ENV_SERVER)
    if named:
        return str(Path(named).parent)
    return os.environ.get("PATH") if shutil.which("toxiproxy-server") else None


@pytest.fixture(scope="session", params=["embedded", "binary", "container"])
def server(request: pytest.FixtureRequest) -> Iterator[ToxiproxyServer]:
    path = real_server_path()
    if request.param == "binary" and path is None:
        pytest.skip(
            f"REAL TOXIPROXY NOT TESTED: no toxiproxy-server on PATH and no {ENV_SERVER}; "
            "go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"
        )
    if request.param == "container" and local_image() is None:
        pytest.skip("a Toxiproxy container: no engine, or no image called toxiproxy")
    with ToxiproxyServer(request.param, {"PATH": path or ""}) as started:
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
    return api.create(Proxy("link", upstream.address))


@pytest.fixture
def connect(proxy: Proxy, upstream: Upstream) -> Iterator[Connect]:
    """Makes a connection through the proxy; gives the client's and the server's end."""
    opened: list[socket.socket] = []

    def make() -> tuple[socket.socket, socket.socket]:
        client = socket.create_connection(proxy.address, timeout=10)
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
