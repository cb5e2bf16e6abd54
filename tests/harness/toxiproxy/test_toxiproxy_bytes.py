"""What each toxic does to bytes that really cross: embedded and real server alike.

Nothing here waits for something not to happen, and time is only ever bounded from below.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toxiproxy_ends import HOST, PATIENCE_S, Connect, EchoServer, Upstream, receive, receive_all

from bettong.engine.address import Address
from bettong.harness.toxiproxy import Proxy, Toxiproxy, spec
from bettong.harness.toxiproxy.spec import Stream

HOUR = 3_600_000  # ms: no test waits for it


def ends(connect: Connect, stream: Stream) -> tuple[socket.socket, socket.socket]:
    """(who sends, who receives) in that direction of a new connection."""
    client, server = connect()
    return (client, server) if stream == "upstream" else (server, client)


both_streams = pytest.mark.parametrize("stream", ["upstream", "downstream"])


@pytest.mark.skipif(HOST == "127.0.0.1", reason="this machine has one loopback address")
def test_who_knocks_at_a_port_that_was_free_is_not_taken_for_our_client(
    proxy: Proxy, upstream: Upstream, connect: Connect
) -> None:
    for address in (Address.parse(upstream.address), proxy.address):
        with suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", address.port), timeout=PATIENCE_S).close()
    client, server = connect()
    client.sendall(b"ours")
    assert receive(server, 4) == b"ours"


@both_streams
def test_without_toxics_every_byte_crosses(connect: Connect, stream: Stream) -> None:
    sender, receiver = ends(connect, stream)
    data = os.urandom(4_000_000)

    def send() -> None:
        sender.sendall(data)
        sender.close()

    thread = threading.Thread(target=send)
    thread.start()
    assert receive_all(receiver) == data
    thread.join()


def test_a_server_that_speaks_first_is_heard(connect: Connect) -> None:
    client, server = connect()
    server.sendall(b"220 ready")
    assert receive(client, 9) == b"220 ready"


def test_half_a_close_closes_both_directions(connect: Connect) -> None:
    client, server = connect()
    client.shutdown(socket.SHUT_WR)
    assert server.recv(1) == b""
    assert client.recv(1) == b""


def test_many_connections_at_once(api: Toxiproxy, echo: EchoServer) -> None:
    proxy = api.create(Proxy("echo", echo.address))
    clients = [socket.create_connection(proxy.address, timeout=PATIENCE_S) for _ in range(60)]
    for i, client in enumerate(clients):
        client.sendall(b"%04d" % i)
    assert [receive(client, 4) for client in clients] == [b"%04d" % i for i in range(60)]
    for client in clients:
        client.close()


@both_streams
def test_a_reader_that_waits_holds_the_sender_back(connect: Connect, stream: Stream) -> None:
    """What a proxy keeps is bounded: the sender blocks, and nothing is lost."""
    sender, receiver = ends(connect, stream)
    sender.settimeout(0.5)  # only ends the filling
    block, sent = os.urandom(1 << 16), 0
    with pytest.raises(TimeoutError):
        while sent < 256 << 20:
            sent += sender.send(block)
    assert sent < 256 << 20
    assert len(receive(receiver, sent)) == sent


def test_a_disabled_proxy_closes_its_connections_and_refuses_new_ones(
    api: Toxiproxy, proxy: Proxy, connect: Connect
) -> None:
    client, server = connect()
    api.disable("link")
    assert client.recv(1) == b""
    assert server.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(proxy.address, timeout=PATIENCE_S)
    api.enable("link")
    client, server = connect()
    client.sendall(b"back")
    assert receive(server, 4) == b"back"


def test_a_deleted_proxy_closes_its_connections(api: Toxiproxy, connect: Connect) -> None:
    client, server = connect()
    api.delete("link")
    assert (client.recv(1), server.recv(1)) == (b"", b"")


def test_an_upstream_that_is_not_there_closes_the_client(api: Toxiproxy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"127.0.0.1:{gone.getsockname()[1]}"
    proxy = api.create(Proxy("nowhere", address))
    with socket.create_connection(proxy.address, timeout=PATIENCE_S) as client:
        assert client.recv(1) == b""


@both_streams
@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("limit", [0, 1, 1000])
def test_limit_data_passes_exactly_that_prefix(
    api: Toxiproxy, connect: Connect, stream: Stream, live: bool, limit: int
) -> None:
    toxic = spec.limit_data(limit, stream)
    if not live:
        api.add_toxic("link", toxic)
    sender, receiver = ends(connect, stream)
    if live:
        sender.sendall(b"before")
        assert receive(receiver, 6) == b"before"
        api.add_toxic("link", toxic)
    data = os.urandom(5000)
    sender.sendall(data)
    assert receive_all(receiver) == data[:limit]
    with suppress(ConnectionResetError):  # more may have been sent than was read
        assert sender.recv(1) == b""


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(writes=st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=8), data=st.data())
def test_limit_data_is_exact_however_the_bytes_are_written(
    api: Toxiproxy, connect: Connect, writes: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(writes)
    limit = data.draw(st.integers(0, len(whole) - 1))
    api.reset()
    api.add_toxic("link", spec.limit_data(limit, "upstream"))
    client, server = connect()
    try:
        for write in writes:
            client.sendall(write)
    except OSError:  # the cut came before the last write
        pass
    assert receive_all(server) == whole[:limit]


def test_limit_data_that_is_not_reached_changes_nothing(api: Toxiproxy, connect: Connect) -> None:
    api.add_toxic("link", spec.limit_data(100, "upstream"))
    client, server = connect()
    client.sendall(b"x" * 99)
    assert receive(server, 99) == b"x" * 99
    server.sendall(b"reply")
    assert receive(client, 5) == b"reply"
    client.close()
    assert server.recv(1) == b""


def test_a_lost_reply_leaves_the_request_done(api: Toxiproxy, connect: Connect) -> None:
    client, server = connect()
    api.add_toxic("link", spec.limit_data(0, "downstream"))
    client.sendall(b"request")
    assert receive(server, 7) == b"request"
    server.sendall(b"reply")
    assert client.recv(1) == b""
    assert server.recv(1) == b""


@both_streams
def test_timeout_drops_and_its_removal_closes(
    api: Toxiproxy, connect: Connect, stream: Stream
) -> None:
    sender, receiver = ends(connect, stream)
    api.add_toxic("link", spec.timeout(0, stream))
    sender.sendall(b"dropped")
    receiver.sendall(b"other direction")
    assert receive(sender, 15) == b"other direction"
    api.remove_toxic("link", f"timeout_{stream}")
    assert receiver.recv(1) == b""


def test_timeout_closes_after_its_time(api: Toxiproxy, connect: Connect) -> None:
    api.add_toxic("link", spec.timeout(200, "upstream"))
    started = time.monotonic()
    client, server = connect()
    client.sendall(b"dropped")
    assert server.recv(1) == b""
    assert time.monotonic() - started >= 0.2
    assert client.recv(1) == b""


@both_streams
def test_latency_delays_and_keeps_the_order(
    api: Toxiproxy, connect: Connect, stream: Stream
) -> None:
    api.add_toxic("link", spec.latency(150, 50, stream))
    sender, receiver = ends(connect, stream)
    started = time.monotonic()
    for i in range(50):
        sender.sendall(b"%04d" % i)
    assert receive(receiver, 200) == b"".join(b"%04d" % i for i in range(50))
    assert time.monotonic() - started >= 0.1


def test_latency_holds_back_one_direction_only(api: Toxiproxy, connect: Connect) -> None:
    api.add_toxic("link", spec.latency(HOUR, 0, "upstream"))
    client, server = connect()
    client.sendall(b"late")
    server.sendall(b"at once")
    assert receive(client, 7) == b"at once"
    api.remove_toxic("link", "latency_upstream")
    assert receive(server, 4) == b"late"


def test_a_change_of_latency_sends_what_waits(api: Toxiproxy, connect: Connect) -> None:
    api.add_toxic("link", spec.latency(HOUR, 0, "upstream"))
    client, server = connect()
    client.sendall(b"one")
    api.update_toxic("link", "latency_upstream", {"latency": 0})
    client.sendall(b"two")
    assert receive(server, 6) == b"onetwo"


def test_what_latency_holds_arrives_before_the_end(api: Toxiproxy, connect: Connect) -> None:
    api.add_toxic("link", spec.latency(100, 0, "upstream"))
    client, server = connect()
    client.sendall(b"last words")
    client.close()
    assert receive_all(server) == b"last words"


def test_bandwidth_is_never_exceeded(api: Toxiproxy, connect: Connect) -> None:
    api.add_toxic("link", spec.bandwidth(500, "upstream"))
    client, server = connect()
    data = os.urandom(150_000)
    started = time.monotonic()
    threading.Thread(target=client.sendall, args=(data,)).start()
    assert receive(server, len(data)) == data
    # 0.3 s at that rate; Toxiproxy sends the last piece up to 100 ms early
    assert time.monotonic() - started >= 0.15


def test_no_bandwidth_holds_until_there_is_some(api: Toxiproxy, connect: Connect) -> None:
    api.add_toxic("link", spec.bandwidth(0, "upstream"))
    client, server = connect()
    client.sendall(b"waits")
    server.sendall(b"crosses")
    assert receive(client, 7) == b"crosses"
    api.update_toxic("link", "bandwidth_upstream", {"rate": 1000})
    assert receive(server, 5) == b"waits"


def test_slow_close_keeps_the_end_back_and_the_other_direction_open(
    api: Toxiproxy, connect: Connect
) -> None:
    api.add_toxic("link", spec.slow_close(250, "upstream"))
    client, server = connect()
    client.sendall(b"bye")
    started = time.monotonic()
    client.shutdown(socket.SHUT_WR)
    assert receive(server, 3) == b"bye"
    server.sendall(b"reply")
    assert receive(client, 5) == b"reply"
    assert server.recv(1) == b""
    assert time.monotonic() - started >= 0.25


def test_removing_slow_close_lets_the_end_through(api: Toxiproxy, connect: Connect) -> None:
    api.add_toxic("link", spec.slow_close(HOUR, "upstream"))
    client, server = connect()
    client.sendall(b"bye")
    client.shutdown(socket.SHUT_WR)
    assert receive(server, 3) == b"bye"
    server.sendall(b"still open")
    assert receive(client, 10) == b"still open"
    api.remove_toxic("link", "slow_close_upstream")
    assert server.recv(1) == b""


@both_streams
def test_slices_are_small_spaced_and_complete(
    api: Toxiproxy, connect: Connect, stream: Stream
) -> None:
    api.add_toxic("link", spec.slicer(100, 10, 2000, stream))
    sender, receiver = ends(connect, stream)
    data = os.urandom(8000)
    started = time.monotonic()
    sender.sendall(data)
    sizes = []
    got = b""
    while len(got) < len(data):
        chunk = receiver.recv(65536)
        assert chunk
        sizes.append(len(chunk))
        got += chunk
    assert got == data
    # at most 110 bytes a slice: 73 slices at least, 2 ms after each but the last
    assert time.monotonic() - started >= 0.14
    assert len(sizes) > 1


def test_reset_peer_resets_a_new_connection(api: Toxiproxy, connect: Connect) -> None:
    api.add_toxic("link", spec.reset_peer(0, "upstream"))
    client, server = connect()
    client.sendall(b"hello")
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    with pytest.raises(ConnectionResetError):
        server.recv(1)


def test_reset_peer_only_closes_a_connection_that_was_there(
    api: Toxiproxy, connect: Connect
) -> None:
    client, server = connect()
    client.sendall(b"1")
    assert receive(server, 1) == b"1"
    api.add_toxic("link", spec.reset_peer(0, "upstream"))
    client.sendall(b"2")
    assert server.recv(1) == b""
    assert client.recv(1) == b""


def test_toxicity_spares_some_connections(api: Toxiproxy, connect: Connect) -> None:
    api.add_toxic("link", spec.Toxic("limit_data", "upstream", {"bytes": 0}, toxicity=0.5))
    survived = 0
    for _ in range(64):
        client, server = connect()
        client.sendall(b"x")
        survived += server.recv(1) == b"x"
        client.close()
        server.close()
    assert 0 < survived < 64  # wrong once in 2**63 runs


def test_toxicity_zero_spares_all(api: Toxiproxy, connect: Connect) -> None:
    api.add_toxic("link", spec.Toxic("limit_data", "upstream", {"bytes": 0}, toxicity=0.0))
    for _ in range(8):
        client, server = connect()
        client.sendall(b"x")
        assert server.recv(1) == b"x"


def test_toxics_act_one_after_the_other(api: Toxiproxy, connect: Connect) -> None:
    api.add_toxic("link", spec.limit_data(6, "upstream"))
    api.add_toxic("link", spec.latency(120, 0, "upstream"))
    api.add_toxic("link", spec.slicer(2, 0, 0, "upstream"))
    client, server = connect()
    started = time.monotonic()
    client.sendall(b"0123456789")
    assert receive_all(server) == b"012345"
    assert time.monotonic() - started >= 0.12


def test_a_connection_that_ended_under_a_toxic_leaves_the_api_usable(
    api: Toxiproxy, connect: Connect, upstream: Upstream
) -> None:
    api.add_toxic("link", spec.limit_data(1, "upstream"))
    client, server = connect()
    client.sendall(b"ab")
    assert receive_all(server) == b"a"
    api.remove_toxic("link", "limit_data_upstream")
    client, server = connect()
    client.sendall(b"ab")
    assert receive(server, 2) == b"ab"
