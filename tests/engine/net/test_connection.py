"""How a connection ends for who is still sending over it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bettong.engine.ingest.frames import CODEC
from bettong.engine.net.codec import ErrorReply
from bettong.engine.net.connection import Connection

PATIENCE_S = 30.0
MORE_THAN_THERE_IS_ROOM_FOR = bytes(32 << 20)


@contextmanager
def connected() -> Iterator[tuple[Connection, socket.socket]]:
    """A listener's end, and the peer's."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), timeout=PATIENCE_S) as peer,
    ):
        sock, _ = listener.accept()
        with Connection(sock, CODEC, limit=1 << 20, timeout=PATIENCE_S, peer="peer") as connection:
            yield connection, peer


@pytest.mark.parametrize(
    "ending",
    [Connection.abort, lambda connection: connection.close_with(ErrorReply("refused", "why"))],
    ids=["abort", "close_with"],
)
def test_who_waits_for_room_to_send_is_told(ending: Callable[[Connection], None]) -> None:
    with connected() as (connection, peer):
        peer.settimeout(0)
        with pytest.raises(BlockingIOError):
            while True:
                peer.send(MORE_THAN_THERE_IS_ROOM_FOR)
        peer.settimeout(PATIENCE_S)
        ending(connection)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            peer.sendall(MORE_THAN_THERE_IS_ROOM_FOR)


def test_who_has_sent_is_told_why() -> None:
    with connected() as (connection, peer):
        peer.sendall(b"x" * 1000)
        peer.shutdown(socket.SHUT_WR)
        connection.close_with(ErrorReply("refused", "because of this"))
        answer = b""
        while more := peer.recv(1 << 16):
            answer += more
        assert b"because of this" in answer
