"""One connection through a proxy: two sides, and a link for each direction between them."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from typing import Protocol, cast

from bettong.harness.toxiproxy.embedded.stages import Next, Stage
from bettong.harness.toxiproxy.embedded.toxic import Toxic
from bettong.harness.toxiproxy.embedded.toxics import STAGES
from bettong.harness.toxiproxy.spec import STREAMS, Stream

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # l_onoff, l_linger


class ConnectionOwner(Protocol):
    """The proxy that a connection belongs to."""

    def chain(self, stream: Stream) -> list[Toxic]: ...
    def ended(self, connection: Connection) -> None: ...


class Side(asyncio.Protocol):
    """One end of a connection: the client's or the server's. What it says before the connection has
    begun is kept: Python 3.11.2, which Debian has, reads from a new transport although it was told
    not to."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.transport: asyncio.Transport | None = None
        self.reads: Link
        self.writes: Link
        self.lost = False
        self._early: list[bytes] | None = []
        self._ended_early = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.pause_reading()  # until the other side is there too

    def begin(self) -> None:
        """Let data flow, those first that have come."""
        early, self._early = self._early or (), None
        for data in early:
            self.reads.feed(data)
        if self._ended_early:
            self.reads.eof_from_source()
        assert self.transport is not None
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self._early is None:
            self.reads.feed(data)
        else:
            self._early.append(data)

    def eof_received(self) -> bool:
        if self._early is None:
            self.reads.eof_from_source()
        else:
            self._ended_early = True
        return True  # the other direction ends by its own

    def pause_writing(self) -> None:
        self.writes.set_blocked(True)

    def resume_writing(self) -> None:
        self.writes.set_blocked(False)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self.reads.eof_from_source()
        self.writes.dead = True
        self.connection.side_lost()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def reset_on_close(self) -> None:
        assert self.transport is not None
        raw: socket.socket = self.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)


class Link:
    """One direction of a connection: source, chain of stages, destination.

    It is the last element of its own chain (``data``, ``eof``).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, source: Side, dest: Side) -> None:
        self.loop = loop
        self.source = source
        self.dest = dest
        self.received = 0
        self.passed = 0
        self.dead = False
        self._ended = False
        self._stages: dict[str, Stage] = {}
        self._blocked = False
        self._paused = False

    # From the source.

    def feed(self, chunk: bytes) -> None:
        self.received += len(chunk)
        if not self._stages:
            self.data(chunk, 0.0)
        else:
            next(iter(self._stages.values())).data(chunk, self.loop.time())
            self.press()

    def eof_from_source(self) -> None:
        if not self._ended:
            self._ended = True
            if self._stages:
                next(iter(self._stages.values())).eof()
            else:
                self.eof()

    # To the destination.

    def data(self, chunk: bytes, at: float) -> None:
        transport = self.dest.transport
        if transport is not None and not (self.dead or transport.is_closing()):
            self.passed += len(chunk)
            transport.write(chunk)

    def eof(self) -> None:
        self.dead = True
        self.dest.close()

    # Back-pressure: what waits here stays bounded.

    @property
    def held(self) -> int:
        return sum(stage.held for stage in self._stages.values())

    def set_blocked(self, blocked: bool) -> None:
        self._blocked = blocked
        self.press()

    def press(self) -> None:
        """Read from the source only while there is room."""
        room = 0
        for stage in self._stages.values():
            room += stage.capacity - stage.held
        pause = self._blocked or (bool(self._stages) and room <= 0)
        transport = self.source.transport
        if pause == self._paused or transport is None or transport.is_closing():
            return
        self._paused = pause
        if pause:
            transport.pause_reading()
        else:
            transport.resume_reading()

    # Toxics come and go while data flow.

    def add(self, toxic: Toxic) -> None:
        active = random.random() < toxic.toxicity
        stage = (STAGES[toxic.type] if active else Stage)(self.loop, toxic.attributes, toxic.tally)
        stage.relieved = self.press
        self._stages[toxic.name] = stage
        self._chain()

    def update(self, toxic: Toxic) -> None:
        """Attributes have changed; whether the toxic is active is drawn again, as in Toxiproxy."""
        stage = self._stages[toxic.name]
        active = random.random() < toxic.toxicity
        if active == (type(stage) is not Stage):
            stage.update(toxic.attributes)
            return
        names = list(self._stages)
        stage.release()
        self.add(toxic)
        self._stages = {name: self._stages[name] for name in names}
        self._chain()

    def remove(self, name: str) -> None:
        self._stages[name].release()
        del self._stages[name]
        self._chain()
        self.press()

    def _chain(self) -> None:
        following: Next = self
        for stage in reversed(self._stages.values()):
            stage.next = following
            following = stage

    def stop(self) -> None:
        for stage in self._stages.values():
            stage.stop()


class Connection:
    """A client's connection and the one made to the upstream for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, proxy: ConnectionOwner) -> None:
        self.proxy = proxy
        self.client = Side(self)
        self.server = Side(self)
        self.links: dict[Stream, Link] = {
            "upstream": Link(loop, self.client, self.server),
            "downstream": Link(loop, self.server, self.client),
        }
        self.client.reads = self.server.writes = self.links["upstream"]
        self.server.reads = self.client.writes = self.links["downstream"]

    def begin(self) -> None:
        """Both sides are there: put the toxics in force and let data flow."""
        for stream in STREAMS:
            for toxic in self.proxy.chain(stream):
                self.links[stream].add(toxic)
                if toxic.type == "reset_peer":
                    self.client.reset_on_close()
                    self.server.reset_on_close()
        sides = self.client, self.server
        if any(side.transport is None or side.transport.is_closing() for side in sides):
            self.abort()
            return
        for side in sides:
            side.begin()

    def abort(self) -> None:
        self.client.abort()
        self.server.abort()

    def side_lost(self) -> None:
        if self.client.lost and self.server.lost:
            for link in self.links.values():
                link.stop()
            self.proxy.ended(self)
