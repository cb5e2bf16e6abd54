"""Which server is used, starting it, and bringing it back when it hangs."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from toxiproxy_ends import (
    ENV_SERVER,
    PATIENCE_S,
    EchoServer,
    Upstream,
    real_server_path,
    receive,
    receive_all,
)

from bettong.harness.processes.session import suspend
from bettong.harness.toxiproxy import (
    Proxy,
    SupervisedToxiproxy,
    Toxiproxy,
    ToxiproxyError,
    ToxiproxyHungError,
    ToxiproxyServer,
    resolve,
    spec,
)
from bettong.harness.toxiproxy import server as server_module


@pytest.fixture
def no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "local_image", lambda: None)


def test_the_real_toxiproxy_is_here() -> None:
    """Where it is, the whole suite runs against it as well."""
    if real_server_path() is None:
        pytest.skip(
            f"REAL TOXIPROXY NOT TESTED: no toxiproxy-server on PATH, no {ENV_SERVER}; "
            "go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"
        )


def program(folder: Path, text: str) -> str:
    """A PATH with a toxiproxy-server that does ``text``."""
    file = folder / "toxiproxy-server"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(folder)


def test_the_order_in_which_servers_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "local_image", lambda: "some/toxiproxy:2.12.0")
    path = program(tmp_path, "exit 1")
    assert resolve({"TOXIPROXY_URL": "http://127.0.0.1:1", "PATH": path}) == "url"
    assert resolve({"PATH": path}) == "binary"
    assert resolve({"PATH": "/nowhere"}) == "container"
    monkeypatch.setattr(server_module, "local_image", lambda: None)
    assert resolve({"PATH": "/nowhere"}) == "embedded"


@pytest.mark.usefixtures("no_image")
def test_the_embedded_server_is_there_when_nothing_else_is() -> None:
    with ToxiproxyServer(env={"PATH": "/nowhere"}) as server:
        assert server.kind == "embedded"
        assert server.client().version() == "2.12.0"
        assert server.pid is not None
        pid = server.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(ToxiproxyHungError, match="is it running"):
        server.client().version()


def test_a_server_named_by_url_is_used_and_not_ours(server: ToxiproxyServer) -> None:
    with ToxiproxyServer(env={"TOXIPROXY_URL": server.url}) as named:
        assert (named.kind, named.ours, named.pid) == ("url", False, None)
        with pytest.raises(ToxiproxyError, match="restart it"):
            named.restart()
    assert server.client().version()


def test_a_url_where_nothing_answers_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    with pytest.raises(ToxiproxyHungError, match="gave no answer"):
        ToxiproxyServer(env={"TOXIPROXY_URL": url}).start()


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://127.0.0.1:x", "http://"])
def test_a_url_that_is_none_is_an_error(url: str) -> None:
    with pytest.raises(ToxiproxyError, match="no address of a Toxiproxy"):
        Toxiproxy(url)


def test_a_binary_that_ends_at_once_is_named(tmp_path: Path) -> None:
    path = program(tmp_path, "exit 3")
    with pytest.raises(ToxiproxyError, match="ended with status 3"):
        ToxiproxyServer("binary", {"PATH": path}).start()


def test_a_server_that_never_answers_meets_the_time_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Toxiproxy(f"http://127.0.0.1:{silent.getsockname()[1]}", time_limit=0.2)
        with pytest.raises(ToxiproxyHungError, match=r"within 0\.2 s"):
            client.proxies()


def test_a_kept_connection_that_the_server_has_closed_is_no_failure() -> None:
    body = b'{"version": "2"}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            kept, _ = listener.accept()
            with kept:
                kept.recv(4096)
                kept.sendall(answer)
                kept.recv(4096)  # the second request is not answered
            again, _ = listener.accept()
            with again:
                again.recv(4096)
                again.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        client = Toxiproxy(f"http://127.0.0.1:{listener.getsockname()[1]}")
        assert [client.version(), client.version()] == ["2", "2"]
        thread.join()


def test_clients_of_two_servers_do_not_meet(upstream: Upstream) -> None:
    with ToxiproxyServer("embedded") as one, ToxiproxyServer("embedded") as two:
        first, second = one.client(), two.client()
        first.create(Proxy("only-here", upstream.address))
        assert set(first.proxies()) == {"only-here"}
        assert second.proxies() == {}


def test_a_hung_server_is_restarted_with_its_proxies_and_toxics(
    server: ToxiproxyServer, echo: EchoServer
) -> None:
    if server.pid is None:
        pytest.skip("a container is hung by its engine only")
    with SupervisedToxiproxy(server, time_limit=1.0) as client:
        proxy = client.create(Proxy("link", echo.address))
        down = client.create(Proxy("down", echo.address))
        client.disable("down")
        client.add_toxic("link", spec.latency(1, name="goes"))
        client.add_toxic("link", spec.limit_data(4, "upstream", "stays"))
        suspend([server.pid])
        client.remove_toxic("link", "goes")  # hangs, as Toxiproxy itself may
        assert len(client.restarts) == 1
        assert client.proxies() == {
            "link": Proxy(
                "link",
                proxy.upstream,
                proxy.listen,
                toxics=(spec.limit_data(4, "upstream", "stays"),),
            ),
            "down": Proxy("down", down.upstream, down.listen, enabled=False),
        }
        with socket.create_connection(proxy.address, timeout=PATIENCE_S) as sock:
            sock.sendall(b"123456")
            assert receive_all(sock) in (b"1234", b"")  # the echo may be lost with the connection
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(down.address, timeout=PATIENCE_S)
        for name in ("link", "down"):
            client.delete(name)


def test_a_server_that_died_is_brought_back_between_calls(echo: EchoServer) -> None:
    with ToxiproxyServer("embedded") as server, SupervisedToxiproxy(server) as client:
        proxy = client.create(Proxy("link", echo.address))
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        while not client.restarts:
            client._closed.wait(0.05)
        assert client.proxy("link") == proxy
        with socket.create_connection(proxy.address, timeout=PATIENCE_S) as sock:
            sock.sendall(b"back")
            assert receive(sock, 4) == b"back"


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux' pidfd")
def test_the_embedded_server_ends_with_its_parent() -> None:
    """The parent is killed, so that no clean-up code of it can end the server."""
    program = (
        "import os, signal\n"
        "from bettong.harness.toxiproxy import ToxiproxyServer\n"
        "server = ToxiproxyServer('embedded').start()\n"
        "print(server.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    parent = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    try:
        server = os.pidfd_open(int(parent.stdout))
    except ProcessLookupError:  # ended already
        return
    try:
        assert select.select([server], [], [], 30)[0]
    finally:
        os.close(server)
