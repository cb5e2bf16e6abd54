"""Handshakes that are wrong at any place: the gateway turns them away and serves who is in the
right."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bettong.engine.address import Address
from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.client import RangeClient
from bettong.engine.ingest.gateway import Gateway
from bettong.engine.ingest.sender import Sender
from bettong.engine.net.access import Key, ListenConfig
from bettong.engine.net.listener import Limits

CONNECTIONS = 8
EXAMPLES = settings(max_examples=60, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def gateway(
    certificates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Gateway, Path]]:
    access = ListenConfig(
        Address("127.0.0.1", 0),
        certificates / "server.pem",
        certificates / "server.key",
        token="secret",
    )
    limits = Limits(connections=CONNECTIONS, strangers=3, frame_s=60)
    found = Gateway(access, tmp_path_factory.mktemp("gateway"), limits)
    thread = threading.Thread(target=found.run, daemon=True)
    thread.start()
    yield found, certificates / "ca.pem"
    found.close()
    thread.join()


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Bytes of a handshake with something else in their place, left out or added."""
    found = bytearray(data)
    match draw.randrange(4):
        case 0:
            found[draw.randrange(len(found))] ^= 1 << draw.randrange(8)
        case 1:
            del found[draw.randrange(len(found)) :]
        case 2:
            place = draw.randrange(len(found))
            found[place:place] = draw.randbytes(draw.randrange(1, 300))
        case _:
            found[:] = draw.randbytes(draw.randrange(1, 2000))
    return bytes(found)


def shake_hands(address: Address, ca: Path, flight: int, draw: random.Random) -> None:
    """A handshake whose so-many-th flight is damaged; returns once the server has ended it."""
    context = ssl.create_default_context(cafile=str(ca))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with (
        socket.create_connection(address, timeout=60) as sock,
        contextlib.suppress(ssl.SSLError, OSError),
    ):
        for number in range(flight + 1):
            with contextlib.suppress(ssl.SSLWantReadError):
                client.do_handshake()
            sent = outgoing.read() or b"\0"
            sock.sendall(damaged(sent, draw) if number == flight else sent)
            if number < flight:
                incoming.write(sock.recv(1 << 16))
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 16):
            pass


@EXAMPLES
@given(flight=st.integers(0, 1), seed=st.integers(0, 1 << 32))
def test_a_damaged_handshake_is_turned_away(
    gateway: tuple[Gateway, Path], flight: int, seed: int
) -> None:
    served, ca = gateway
    shake_hands(served.address, ca, flight, random.Random(seed))


def test_who_is_in_the_right_is_served_after_a_hundred_of_them(
    gateway: tuple[Gateway, Path],
) -> None:
    served, ca = gateway
    threads = threading.active_count()
    for seed in range(100):
        shake_hands(served.address, ca, seed % 2, random.Random(seed))
    key, messages = Key("secret", ca), [b"message %d" % n for n in range(20)]
    Sender(served.address, "lines", messages, AckedFile(None, "lines"), key=key).run()
    reader = RangeClient(served.address, "lines", key)
    assert [p for block in reader.read(0, 20) for p in block.payloads()] == messages
    reader.close()
    assert threading.active_count() <= threads + CONNECTIONS
