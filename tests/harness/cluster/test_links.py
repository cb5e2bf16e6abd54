"""Faults on links, on bytes that really cross the embedded Toxiproxy."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from bettong.harness.cluster.links import LinkError, Links
from bettong.harness.faults.kinds import Cut, Delay, Omit, OmitReply, Reset, Throttle
from bettong.harness.faults.point import Point
from bettong.harness.toxiproxy import ToxiproxyServer

AT = Point("step")


class Echo:
    """Answers each line with itself, and remembers it."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            try:
                for line in lines:
                    self.seen.append(line)
                    connection.sendall(line)
            except OSError:
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class Caller:
    """One connection of node a to node b."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20)
        self._lines = self.socket.makefile("rb")

    def ask(self, line: bytes) -> bytes:
        """The reply; empty when the connection is closed instead."""
        try:
            self.socket.sendall(line)
            return self._lines.readline()
        except OSError:
            return b""


@pytest.fixture(scope="module")
def server() -> Iterator[ToxiproxyServer]:
    with ToxiproxyServer("embedded") as found:
        yield found


@pytest.fixture
def echo() -> Iterator[Echo]:
    found = Echo()
    yield found
    found.close()


@pytest.fixture
def links(server: ToxiproxyServer) -> Iterator[Links]:
    found = Links(server.client())
    yield found
    found.close()


def test_an_omitted_request_does_not_arrive_and_its_bytes_are_the_evidence(
    links: Links, echo: Echo
) -> None:
    address = links.connect("a", "b", echo.address)
    caller = Caller(address)
    assert caller.ask(b"one\n") == b"one\n"
    fault = Omit("a->b", AT)
    fault.arm(links)
    assert caller.ask(b"two\n") == b""
    outcome = links.heal(fault.id, step_failed=True)
    assert (outcome.fired, outcome.evidence) == (True, "4 bytes held back")
    assert Caller(address).ask(b"three\n") == b"three\n"
    assert echo.seen == [b"one\n", b"three\n"]


def test_an_omitted_reply_is_of_a_request_that_arrived(links: Links, echo: Echo) -> None:
    address = links.connect("a", "b", echo.address)
    fault = OmitReply("a->b", AT)
    fault.arm(links)
    assert Caller(address).ask(b"two\n") == b""
    assert links.heal(fault.id, step_failed=True).fired
    assert echo.seen == [b"two\n"]


def test_what_b_sends_a_travels_on_the_connection_that_a_opened(links: Links, echo: Echo) -> None:
    address = links.connect("a", "b", echo.address)
    fault = Omit("b->a", AT)
    fault.arm(links)
    assert Caller(address).ask(b"two\n") == b""
    assert links.heal(fault.id, step_failed=False).fired
    assert echo.seen == [b"two\n"]


def test_a_second_fault_does_not_take_the_first_one_s_evidence(links: Links, echo: Echo) -> None:
    address = links.connect("a", "b", echo.address)
    first, second = Omit("a->b", AT), Omit("a->b", Point("other"))
    first.arm(links)
    Caller(address).ask(b"two\n")
    assert links.heal(first.id, step_failed=True).fired
    second.arm(links)
    assert links.heal(second.id, step_failed=True).fired is False


def test_a_cut_closes_and_refuses_until_it_is_healed(links: Links, echo: Echo) -> None:
    address = links.connect("a", "b", echo.address)
    caller = Caller(address)
    assert caller.ask(b"one\n") == b"one\n"
    fault = Cut(("a",), ("b",), AT)
    assert fault.arm(links) == f"{address} refuses connections"
    assert caller.ask(b"two\n") == b""
    with pytest.raises(ConnectionRefusedError):
        Caller(address)
    assert links.heal(fault.id, step_failed=True).evidence == "1 connections closed"
    assert Caller(address).ask(b"three\n") == b"three\n"


@pytest.mark.parametrize(("direction", "arrives"), [("forward", False), ("backward", True)])
def test_a_cut_of_one_way_loses_what_goes_that_way(
    links: Links, echo: Echo, direction: str, arrives: bool
) -> None:
    address = links.connect("a", "b", echo.address)
    caller = Caller(address)
    assert caller.ask(b"one\n") == b"one\n"
    fault = Cut(("a",), ("b",), AT, direction=direction)  # type: ignore[arg-type]
    fault.arm(links)
    caller.socket.sendall(b"two\n")
    assert links.heal(fault.id, step_failed=False).evidence == "4 bytes held back"
    assert caller.socket.recv(1) == b""
    assert Caller(address).ask(b"three\n") == b"three\n"
    assert (b"two\n" in echo.seen) is arrives


def test_other_faults_are_carried_by_their_toxics(links: Links, echo: Echo) -> None:
    address = links.connect("a", "b", echo.address)
    delay, reset = Delay("a->b", AT, 1), Reset("a->b", AT)
    delay.arm(links)
    assert Caller(address).ask(b"one\n") == b"one\n"
    assert links.heal(delay.id, step_failed=False).fired
    reset.arm(links)
    assert Caller(address).ask(b"two\n") == b""
    assert links.heal(reset.id, step_failed=True).fired


@pytest.mark.parametrize("fault", [Delay("a->b", AT, 50), Throttle("a->b", AT, 100)])
def test_what_waits_for_no_reply_has_crossed_a_slow_link_before_that_is_mended(
    links: Links, fault: Delay | Throttle
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        caller = Caller(links.connect("a", "b", "{}:{}".format(*listener.getsockname())))
        with listener.accept()[0] as server:
            fault.arm(links)
            caller.socket.sendall(b"x" * 5000)
            assert links.heal(fault.id, step_failed=False).fired
            assert len(server.recv(5000, socket.MSG_WAITALL)) == 5000


@pytest.mark.parametrize("fault", [Delay("a->b", AT, 10**9), Throttle("a->b", AT, 1)])
def test_a_delay_that_is_undone_before_it_has_passed_has_not_fired(
    links: Links, fault: Delay | Throttle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bettong.harness.cluster.links.CROSS_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        caller = Caller(links.connect("a", "b", "{}:{}".format(*listener.getsockname())))
        fault.arm(links)
        caller.socket.sendall(b"x" * 50_000)
        outcome = links.heal(fault.id, step_failed=False)
        assert outcome.fired is False
        assert "bytes had not crossed" in outcome.evidence


def test_a_link_on_which_nothing_travels_is_named(links: Links) -> None:
    with pytest.raises(LinkError, match="x->y"):
        Omit("x->y", AT).arm(links)


def test_mending_heals_what_was_left_in_force(links: Links, echo: Echo) -> None:
    address = links.connect("a", "b", echo.address)
    Cut(("a",), ("b",), AT).arm(links)
    links.mend()
    assert Caller(address).ask(b"one\n") == b"one\n"
