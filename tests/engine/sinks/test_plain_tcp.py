"""Plain TCP as a sink."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from bettong.engine.address import Address
from bettong.engine.net.client import Patience
from bettong.engine.net.errors import ConnectionLostError
from bettong.engine.sinks.base import Noted, Row
from bettong.engine.sinks.tcp import PlainTcpSink
from bettong.lineage.errors import BettongError

QUIET = Noted("")


class Listener:
    """Reads each connection to its end; breaks the first ``broken`` of them."""

    def __init__(self, broken: int) -> None:
        self.got: list[bytes] = []
        self._broken = broken
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = Address(*self._server.getsockname())
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self._server.accept()
            except OSError:
                return
            with sock:
                if self._broken:
                    self._broken -= 1
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    continue
                data = b""
                while part := sock.recv(1 << 16):
                    data += part
                self.got.append(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@pytest.fixture
def listener(request: pytest.FixtureRequest) -> Iterator[Listener]:
    found = Listener(getattr(request, "param", 0))
    yield found
    found.close()


ROWS = [Row("lines/0.0", "k", b"one"), Row("lines/1.0", None, b"two")]


def test_rows_arrive_whole(listener: Listener) -> None:
    PlainTcpSink(listener.address).prepare(1, 0, 0, 0, ROWS, QUIET)
    PlainTcpSink(listener.address, "length").prepare(1, 0, 0, 0, ROWS, QUIET)
    assert listener.got == [b"one\ntwo\n", b"\0\0\0\3one\0\0\0\3two"]


@pytest.mark.parametrize("listener", [2], indirect=True)
def test_a_broken_connection_is_tried_again(listener: Listener) -> None:
    PlainTcpSink(listener.address).prepare(1, 0, 0, 0, ROWS, QUIET)
    assert listener.got == [b"one\ntwo\n"]


def test_it_gives_up(listener: Listener) -> None:
    listener.close()
    sink = PlainTcpSink(listener.address, patience=Patience(1, 0))
    with pytest.raises(ConnectionLostError, match="gave up"):
        sink.prepare(1, 0, 0, 0, ROWS, QUIET)


def test_line_ends_inside_a_line_are_refused(listener: Listener) -> None:
    with pytest.raises(BettongError, match=r"lines/7\.0 has a line end"):
        PlainTcpSink(listener.address).prepare(1, 0, 0, 0, [Row("lines/7.0", None, b"a\nb")], QUIET)
