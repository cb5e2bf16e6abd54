"""Links broken exactly, with the evidence for it."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from toxiproxy_ends import PATIENCE_S, Connect, receive

from bettong.harness.toxiproxy import (
    Armed,
    Evidence,
    ProxiedLink,
    Proxy,
    Toxiproxy,
    ToxiproxyServer,
    spec,
)


@pytest.fixture
def link(api: Toxiproxy, proxy: Proxy) -> ProxiedLink:
    return ProxiedLink(api, proxy)


def fired(evidence: Evidence, server: ToxiproxyServer) -> bool:
    """The embedded server knows; the real one may only not deny it."""
    if server.kind == "embedded":
        return evidence.fired is True
    return evidence.fired is not False


def unmet(evidence: Evidence, server: ToxiproxyServer) -> bool:
    return evidence.fired is (False if server.kind == "embedded" else None)


def works(connect: Connect) -> bool:
    client, server = connect()
    client.sendall(b"ping")
    if receive(server, 4) != b"ping":
        return False
    server.sendall(b"pong")
    return receive(client, 4) == b"pong"


def test_a_lost_request_never_arrives(
    link: ProxiedLink, connect: Connect, server: ToxiproxyServer
) -> None:
    client, upstream = connect()
    fault = link.lose_request()
    client.sendall(b"request")
    assert client.recv(1) == b""
    assert upstream.recv(1) == b""
    again, upstream = connect()  # still in force
    again.sendall(b"request")
    assert upstream.recv(1) == b""
    assert fired(fault.heal(), server)
    assert works(connect)


def test_a_lost_reply_was_carried_out(
    link: ProxiedLink, connect: Connect, server: ToxiproxyServer
) -> None:
    client, upstream = connect()
    fault = link.lose_reply()
    client.sendall(b"request")
    assert receive(upstream, 7) == b"request"
    upstream.sendall(b"reply")
    assert client.recv(1) == b""
    assert fired(fault.heal(), server)
    assert works(connect)


def test_a_cut_in_the_middle_of_a_frame(
    link: ProxiedLink, connect: Connect, server: ToxiproxyServer
) -> None:
    client, upstream = connect()
    fault = link.cut_after(5, "upstream")
    client.sendall(b"request")
    assert receive(upstream, 7) == b"reque"
    assert fired(fault.heal(), server)


def test_a_refused_link_says_what_it_killed(
    link: ProxiedLink, connect: Connect, server: ToxiproxyServer
) -> None:
    client, upstream = connect()
    with link.refuse() as fault:
        assert (client.recv(1), upstream.recv(1)) == (b"", b"")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(link.address, timeout=PATIENCE_S)
    assert fired(fault.evidence(), server)
    assert works(connect)


def test_a_held_link_is_silent_and_ends_when_healed(
    link: ProxiedLink, connect: Connect, server: ToxiproxyServer
) -> None:
    client, upstream = connect()
    fault = link.hold("upstream")
    client.sendall(b"held")
    upstream.sendall(b"not held")
    assert receive(client, 8) == b"not held"
    assert fired(fault.heal(), server)
    assert upstream.recv(1) == b""
    assert works(connect)


def test_a_delayed_link_loses_nothing(
    link: ProxiedLink, connect: Connect, server: ToxiproxyServer
) -> None:
    client, upstream = connect()
    fault = link.delay(3_600_000)
    client.sendall(b"later")
    evidence = fault.heal()
    assert receive(upstream, 5) == b"later"
    if server.kind == "embedded":
        assert evidence.fired
    assert works(connect)


@pytest.mark.parametrize(
    "arm",
    [
        ProxiedLink.lose_request,
        ProxiedLink.lose_reply,
        ProxiedLink.hold,
        lambda link: link.delay(1),
        lambda link: link.arm(spec.slicer(1)),
    ],
)
def test_a_fault_that_nothing_met_did_not_fire(
    link: ProxiedLink,
    connect: Connect,
    arm: Callable[[ProxiedLink], Armed],
    server: ToxiproxyServer,
) -> None:
    assert works(connect)
    fault = arm(link)
    assert unmet(fault.evidence(), server)
    assert unmet(fault.heal(), server)
    assert works(connect)


def test_evidence_of_one_fault_is_not_that_of_the_next(
    link: ProxiedLink, connect: Connect, server: ToxiproxyServer
) -> None:
    fault = link.lose_request()
    client, upstream = connect()
    client.sendall(b"x")
    assert upstream.recv(1) == b""
    assert fired(fault.heal(), server)
    second = link.lose_request()
    assert unmet(second.heal(), server)


def test_healing_twice_or_after_a_reset_is_harmless(link: ProxiedLink, connect: Connect) -> None:
    fault = link.lose_request()
    link.client.reset()
    fault.heal()
    fault.heal()
    assert works(connect)


def test_the_embedded_server_counts_what_crosses_is_held_and_dropped(
    link: ProxiedLink, connect: Connect, server: ToxiproxyServer
) -> None:
    if server.kind != "embedded":
        pytest.skip("Toxiproxy itself counts ended connections only")
    client, upstream = connect()
    client.sendall(b"123")
    assert receive(upstream, 3) == b"123"
    with link.delay(3_600_000, "upstream"):
        client.sendall(b"4567")
        upstream.sendall(b"89")
        assert receive(client, 2) == b"89"
        traffic = link.client.traffic("link")
        assert traffic is not None
        assert (traffic.upstream.passed, traffic.downstream.passed) == (3, 2)
        assert traffic.upstream.received - 3 == traffic.upstream.held
        assert dict(traffic.connections) == {
            "accepted": 1,
            "open": 1,
            "unreachable": 0,
            "killed": 0,
        }
    assert receive(upstream, 4) == b"4567"
