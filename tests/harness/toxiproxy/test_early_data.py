"""What a side of a connection says before the other one is there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from bettong.harness.toxiproxy.embedded.link import Connection
from bettong.harness.toxiproxy.embedded.toxic import Toxic
from bettong.harness.toxiproxy.spec import Stream


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = self.is_read = False

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def is_closing(self) -> bool:
        return self.is_closed

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True


class _Proxy:
    def chain(self, stream: Stream) -> list[Toxic]:
        return []

    def ended(self, connection: Connection) -> None:
        pass


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.mark.parametrize("ends", [False, True])
def test_it_arrives_once_both_are_there(loop: asyncio.AbstractEventLoop, ends: bool) -> None:
    connection, server, client = Connection(loop, _Proxy()), _Transport(), _Transport()
    connection.server.connection_made(server)
    connection.server.data_received(b"wel")
    connection.server.data_received(b"come")
    if ends:
        connection.server.eof_received()
    connection.client.connection_made(client)
    assert client.written == b""
    connection.begin()
    assert (client.written, client.is_closed) == (b"welcome", ends)
    assert (server.is_read, client.is_read) == (True, True)
