"""The relay of one endpoint: its listeners, and a tunnel for each connection."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol

from bettong.engine.address import Address
from bettong.harness.wire.redirect import Redirect
from bettong.harness.wire.run import WireRun
from bettong.harness.wire.tunnel import Tunnel

_BACKLOG = 512
_DIAL_SECONDS = 30.0
HOST = "127.0.0.1"


class _Registry(Protocol):
    """Where a relay finds the present run."""

    @property
    def run(self) -> WireRun: ...


class Listener:
    """An address on loopback at which a relay listens.

    Attributes:
        shown: where a server that tells clients where to go next is to send those that came in
            here: the address of the proxy before the listener. None: nothing is changed.
    """

    def __init__(self, relay: Relay) -> None:
        self.shown: Address | None = None
        self._relay = relay
        self._listener = socket.create_server((HOST, 0), backlog=_BACKLOG)
        self._listener.setblocking(False)
        self.address = f"{HOST}:{self._listener.getsockname()[1]}"
        relay.loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(_BACKLOG):
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._relay.accept(client, self.shown)

    def close(self) -> None:
        """Nobody comes in here any more."""
        self._relay.loop.remove_reader(self._listener)
        self._listener.close()
        self._relay.listeners.discard(self)


class Relay:
    """Listens on loopback for one endpoint and passes every connection on to its server."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        registry: _Registry,
        name: str,
        upstream: str,
        protocol: str | None,
    ) -> None:
        self.loop = loop
        self.name = name
        self.protocol = protocol
        self.failures: list[BaseException] = []
        self.upstream = Address.parse(upstream)
        self._registry = registry
        self._tunnels: set[Tunnel] = set()
        self._dials: set[asyncio.Task[None]] = set()
        self.listeners: set[Listener] = set()
        self.address = self.open_listener().address

    def open_listener(self) -> Listener:
        """A further address."""
        listener = Listener(self)
        self.listeners.add(listener)
        return listener

    def accept(self, client: socket.socket, shown: Address | None) -> None:
        """Pass a connection on, unless a refusal turns it away."""
        client.setblocking(False)
        if self._refuses():
            client.close()
            return
        dial = self.loop.create_task(self._connect(client, shown))
        self._dials.add(dial)
        dial.add_done_callback(self._dials.discard)

    def _refuses(self) -> bool:
        """Whether a refusal turns this connection away; then it has done so."""
        armed = self._registry.run.refusals
        found = next((r for r in armed if r.live and r.endpoint == self.name), None)
        if found is not None:
            found.times += 1
        return found is not None

    async def _connect(self, client: socket.socket, shown: Address | None) -> None:
        run = self._registry.run
        tunnel = Tunnel(self, run, Redirect.between(self.upstream, shown))
        connected = False
        try:
            async with asyncio.timeout(_DIAL_SECONDS):
                await self.loop.create_connection(lambda: tunnel.server, *self.upstream)
            await self.loop.connect_accepted_socket(lambda: tunnel.client, client)
            connected = True
        except (OSError, TimeoutError):
            pass  # the client sees its connection closed
        finally:
            if not connected:
                tunnel.abort()
                client.close()
        if connected:
            self._tunnels.add(tunnel)
            run.tunnels.append(tunnel)
            tunnel.begin()

    def forget(self, tunnel: Tunnel) -> None:
        self._tunnels.discard(tunnel)

    def close_tunnels(self) -> None:
        for dial in self._dials:
            dial.cancel()
        for tunnel in list(self._tunnels):
            tunnel.abort()

    def close(self) -> None:
        for listener in list(self.listeners):
            listener.close()
        self.close_tunnels()
