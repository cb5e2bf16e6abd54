"""What a client that has said nothing yet can make a server take."""

from __future__ import annotations

import socket
import struct
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.engine.address import Address
from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.client import RangeClient
from bettong.engine.ingest.frames import CODEC, Hello
from bettong.engine.ingest.gateway import Gateway
from bettong.engine.ingest.gateway import main as gateway_main
from bettong.engine.ingest.sender import Sender
from bettong.engine.net.access import Key, ListenConfig
from bettong.engine.net.codec import ErrorReply
from bettong.engine.net.connection import Connection
from bettong.engine.net.errors import ConnectionLostError
from bettong.engine.net.frame import encode
from bettong.engine.net.listener import Limits

ACCESS = ListenConfig(Address("127.0.0.1", 0), token="secret")
LARGE = 16 << 20


def header(length: int) -> bytes:
    return struct.pack("<2sBBII", b"BT", 1, 1, length, 0)


def client(gateway: Gateway) -> Connection:
    sock = socket.create_connection(gateway.address)
    return Connection(sock, CODEC, limit=1 << 20, timeout=20, peer="gateway")


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    limits = Limits(connections=8, strangers=3, frame_s=60)
    with_token = Gateway(ACCESS, tmp_path / "gateway", limits)
    thread = threading.Thread(target=with_token.run, daemon=True)
    thread.start()
    yield with_token
    with_token.close()
    thread.join()


def test_a_stranger_cannot_announce_a_large_frame(gateway: Gateway) -> None:
    with client(gateway) as connection:
        connection._socket.sendall(header(LARGE))
        answer = connection.receive()
    assert isinstance(answer, ErrorReply)
    assert "over the limit of 16384 bytes" in answer.text


def test_whoever_is_let_in_may_send_large_frames(gateway: Gateway, tmp_path: Path) -> None:
    key, body = Key("secret"), b"x" * 300_000
    Sender(gateway.address, "lines", [body] * 5, AckedFile(None, "lines"), key=key).run()
    reader = RangeClient(gateway.address, "lines", key)
    assert [p for block in reader.read(0, 5) for p in block.payloads()] == [body] * 5


def test_room_is_made_as_bytes_come() -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(ours, CODEC, limit=LARGE, timeout=20, peer="test")
    theirs.sendall(header(LARGE) + b"only this")
    theirs.shutdown(socket.SHUT_WR)
    tracemalloc.start()
    with connection, theirs, pytest.raises(ConnectionLostError, match="inside a frame"):
        connection.receive()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_frame_that_needs_more_room_is_read_whole() -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(ours, CODEC, limit=LARGE, timeout=20, peer="test")
    hello = Hello("lines", "send", "t" * 1_500_001)
    frame = encode(hello.KIND, CODEC.encode(hello))
    sending = threading.Thread(target=theirs.sendall, args=(frame,))
    sending.start()
    with connection, theirs:
        assert connection.receive() == hello
        sending.join()


def test_one_address_has_few_strangers_at_a_time(gateway: Gateway) -> None:
    silent = [client(gateway) for _ in range(3)]
    with client(gateway) as last:
        last.send(Hello("lines", "read", "secret"))
        assert type(last.receive()).__name__ == "Welcome"
        with pytest.raises(ConnectionLostError):
            silent[0].receive()  # the oldest made room
    for connection in silent:
        connection.close()


def test_a_connection_that_has_ended_takes_no_room(gateway: Gateway) -> None:
    for _ in range(2 * gateway.limits.connections):
        with client(gateway) as connection:
            connection.send(Hello("lines", "read", "secret"))
            assert type(connection.receive()).__name__ == "Welcome"
            connection._socket.shutdown(socket.SHUT_WR)
            with pytest.raises(ConnectionLostError):
                connection.receive()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--max-connections", "-1"),
        ("--max-frame-bytes", "-1"),
        ("--max-frame-bytes", str(1 << 40)),
        ("--segment-bytes", "0"),
        ("--max-unreleased", "-5"),
        ("--idle", "nan"),
        ("--idle", "-1"),
    ],
)
def test_limits_that_make_no_sense_are_refused(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        gateway_main(["--listen", "127.0.0.1:0", "--dir", str(tmp_path), option, value])
    assert ended.value.code == 2
    assert option in capsys.readouterr().err
