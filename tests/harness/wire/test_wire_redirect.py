"""A Kafka broker's clients are kept behind the proxy that they came through."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_samples import kafka, kafka_reply

from bettong.harness.wire import WireEndpoint, WireRecorder
from bettong.harness.wire.redirect import Redirect

OWN, SHOWN = ("127.0.0.1", 9092), ("127.1.2.3", 65535)


def written(host: str, port: int) -> bytes:
    return struct.pack("!h", len(host)) + host.encode() + struct.pack("!i", port)


@given(st.lists(st.binary(max_size=40), max_size=5), st.data())
def test_replies_are_rewritten_however_they_are_split(
    bodies: list[bytes], data: st.DataObject
) -> None:
    def stream(address: tuple[str, int]) -> bytes:
        replies = (kafka_reply(n, b + written(*address) + b) for n, b in enumerate(bodies))
        return b"".join(replies)

    message, wanted = stream(OWN), stream(SHOWN)
    redirect = Redirect.between(OWN, SHOWN)
    assert redirect is not None
    cuts = sorted(data.draw(st.sets(st.integers(0, len(message)), max_size=8)))
    pieces = zip([0, *cuts], [*cuts, len(message)], strict=True)
    assert b"".join(redirect.feed(message[a:b]) for a, b in pieces) == wanted
    assert redirect.rest() == b""


def test_what_is_no_whole_reply_goes_on_as_it_is() -> None:
    redirect = Redirect(OWN, SHOWN)
    part = kafka_reply(1, written(*OWN))[:-1]
    assert redirect.feed(part) == b""
    assert redirect.rest() == part


def test_an_address_of_another_length_cannot_be_shown() -> None:
    assert Redirect.between(("broker.example", 9092), SHOWN) is None
    assert Redirect.between(OWN, None) is None


class Broker:
    """Answers every request with its own address."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                while request := connection.recv(4096):
                    correlation = struct.unpack_from("!i", request, 8)[0]
                    connection.sendall(kafka_reply(correlation, written(*self.address)))

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.close()


@pytest.fixture
def relay(broker: Broker) -> Iterator[WireEndpoint]:
    with WireRecorder() as recorder:
        yield recorder.endpoint("kafka", f"127.0.0.1:{broker.address[1]}")


def asked(address: str, key: int = 18) -> bytes:
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(kafka(key, 7, b""))
        return connection.recv(4096)


def test_each_listener_shows_its_own_proxy(relay: WireEndpoint, broker: Broker) -> None:
    listeners = [relay.listener(), relay.listener()]
    shown = [("127.0.0.1", 1001), ("127.0.0.1", 1002)]
    for listener, address in zip(listeners, shown, strict=True):
        listener.show(address)
    answers = [asked(address) for address in (relay.address, *(d.address for d in listeners))]
    own = ("127.0.0.1", broker.address[1])
    assert answers == [kafka_reply(7, written(*a)) for a in (own, *shown)]
    assert relay.bytes > 0


def test_a_listener_that_is_closed_lets_nobody_in(relay: WireEndpoint) -> None:
    listener = relay.listener()
    assert asked(listener.address)
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        asked(listener.address)
    assert asked(relay.address)


def test_clients_that_only_ask_where_to_go_have_left(relay: WireEndpoint) -> None:
    assert not relay.left()
    assert asked(relay.address)
    assert relay.left()
    assert asked(relay.address, key=0)
    assert not relay.left()
