"""A proxy: a listener, its connections, its toxics, and what crossed it."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from typing import Any

from bettong.engine.address import Address
from bettong.harness.toxiproxy.embedded.link import Connection
from bettong.harness.toxiproxy.embedded.stages import Tally
from bettong.harness.toxiproxy.embedded.toxic import Counts, Toxic
from bettong.harness.toxiproxy.spec import STREAMS, Stream
from bettong.lineage.errors import UsageError

_BACKLOG = 512
_DIAL_SECONDS = 30.0


def address_of(text: str) -> Address:
    """The address that is meant in the API; one without a host is on loopback. Raises
    ValueError."""
    try:
        return Address.parse(f"127.0.0.1{text}" if text.startswith(":") else text)
    except UsageError as e:
        raise ValueError(f"address {text!r} is not host:port") from e


@dataclass
class Proxy:
    """One proxy. All methods are to be called on the event loop."""

    loop: asyncio.AbstractEventLoop
    name: str
    listen: str
    upstream: str
    enabled: bool = False
    toxics: dict[str, Toxic] = field(default_factory=dict)
    accepted: int = 0
    unreachable: int = 0  # clients turned away since the upstream could not be dialled
    killed: int = 0  # connections that disabling the proxy cut
    _listener: socket.socket | None = None
    _connections: set[Connection] = field(default_factory=set)
    _dials: set[asyncio.Task[None]] = field(default_factory=set)
    _finished: dict[Stream, Counts] = field(default_factory=dict)
    _tallies: dict[str, Tally] = field(default_factory=dict)  # of removed toxics too

    def start(self) -> None:
        """Listen. Raises OSError or ValueError when the address cannot be listened on."""
        host, port = address_of(self.listen or "127.0.0.1:0")
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        try:
            if port:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            # Not before: two that both may share it can be given the same free port, and only one
            # of them can listen. Its connections have it from here, so that it may listen again.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
        listener.setblocking(False)
        self.listen = str(Address(*listener.getsockname()[:2]))
        self._listener = listener
        self.enabled = True
        self.loop.add_reader(listener, self._accept, listener)

    def stop(self) -> None:
        """Stop listening and close every connection."""
        self.enabled = False
        if self._listener is not None:
            self.loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for dial in self._dials:
            dial.cancel()
        self.killed += len(self._connections)
        for connection in list(self._connections):
            connection.abort()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_BACKLOG):
            try:
                client, _ = listener.accept()
            except OSError:  # nothing left to accept, or the client is gone already
                return
            client.setblocking(False)
            self.accepted += 1
            dial = self.loop.create_task(self._connect(client))
            self._dials.add(dial)
            dial.add_done_callback(self._dials.discard)

    async def _connect(self, client: socket.socket) -> None:
        connection = Connection(self.loop, self)
        handed_over = False
        try:
            host, port = address_of(self.upstream)
            async with asyncio.timeout(_DIAL_SECONDS):
                await self.loop.create_connection(lambda: connection.server, host, port)
            await self.loop.connect_accepted_socket(lambda: connection.client, client)
            handed_over = True
        except (OSError, ValueError, TimeoutError):
            self.unreachable += 1
        finally:
            if not handed_over:
                connection.server.abort()
                client.close()
        if handed_over:
            self._connections.add(connection)
            connection.begin()

    def ended(self, connection: Connection) -> None:
        """Both sides of a connection are closed: keep its counts."""
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        for stream, link in connection.links.items():
            counts = self._finished.setdefault(stream, Counts())
            counts.received += link.received
            counts.passed += link.passed

    def chain(self, stream: Stream) -> list[Toxic]:
        """One direction's toxics, in the order in which they act."""
        return [toxic for toxic in self.toxics.values() if toxic.stream == stream]

    def add_toxic(self, toxic: Toxic) -> None:
        toxic.tally = self._tallies.setdefault(toxic.name, toxic.tally)
        self.toxics[toxic.name] = toxic
        for connection in self._connections:
            connection.links[toxic.stream].add(toxic)

    def changed_toxic(self, toxic: Toxic) -> None:
        """A toxic's attributes or toxicity have been changed: bring them into force."""
        for connection in self._connections:
            connection.links[toxic.stream].update(toxic)

    def remove_toxic(self, name: str) -> None:
        toxic = self.toxics.pop(name)
        for connection in self._connections:
            connection.links[toxic.stream].remove(name)

    def counts(self, stream: Stream) -> Counts:
        finished = self._finished.get(stream, Counts())
        links = [connection.links[stream] for connection in self._connections]
        return Counts(
            finished.received + sum(link.received for link in links),
            finished.passed + sum(link.passed for link in links),
            sum(link.held for link in links),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": self.enabled,
            "toxics": [toxic.to_json() for stream in STREAMS for toxic in self.chain(stream)],
        }

    def traffic(self) -> dict[str, Any]:
        """Evidence: bytes of each direction, connections, and what each toxic touched."""
        return {
            **{stream: self.counts(stream).to_json() for stream in STREAMS},
            "connections": {
                "accepted": self.accepted,
                "open": len(self._connections),
                "unreachable": self.unreachable,
                "killed": self.killed,
            },
            "toxics": {
                name: {"bytes": tally.bytes, "connections": tally.connections}
                for name, tally in self._tallies.items()
            },
        }
