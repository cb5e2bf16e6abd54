"""The relay: sockets around a Session. Runs on one event loop."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable
from typing import Protocol, cast

from bettong.harness.toxiproxy.spec import Stream
from bettong.harness.wire.armed import ArmedCut
from bettong.harness.wire.conversation import Chunk, History, Keys, Ledger
from bettong.harness.wire.framing.adaptive import AdaptiveFraming
from bettong.harness.wire.framing.base import Info
from bettong.harness.wire.session import Close, Forward, Session, Step

_BACKLOG = 512
_DIAL_SECONDS = 30.0
_MAX_CHUNKS = 100_000  # of one connection that are kept
HOST = "127.0.0.1"


class Run:
    """What is recorded from one ``begin`` to the next, over all endpoints."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.tunnels: list[Tunnel] = []
        self.cuts: list[ArmedCut] = []
        self._clock = itertools.count(1)

    def tick(self) -> int:
        return next(self._clock)


class _Judge:
    """The armed cuts of a run as one endpoint meets them."""

    def __init__(self, run: Run, endpoint: str) -> None:
        self._run = run
        self._endpoint = endpoint

    @property
    def armed(self) -> bool:
        return any(c.live and c.point.endpoint == self._endpoint for c in self._run.cuts)

    def decide(self, request: Info, keys: Keys) -> ArmedCut | None:
        met = [c for c in self._run.cuts if c.met_by(self._endpoint, request, keys)]
        return met[0] if met else None


class _End(asyncio.Protocol):
    """The client's or the server's end of a tunnel."""

    def __init__(self, tunnel: Tunnel, stream: Stream) -> None:
        self.tunnel = tunnel
        self.stream = stream  # the direction in which this end sends
        self.transport: asyncio.Transport | None = None
        self.blocked = False  # what is written to it does not go out
        self.lost = False

    @property
    def peer(self) -> _End:
        return self.tunnel.server if self is self.tunnel.client else self.tunnel.client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self.tunnel.received(self.stream, data)

    def eof_received(self) -> bool:
        self.tunnel.ended(self.stream)
        return True

    def pause_writing(self) -> None:
        self.blocked = True
        self.peer.read()

    def resume_writing(self) -> None:
        self.blocked = False
        self.peer.read()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self.tunnel.lost()

    def read(self) -> None:
        """Read on, or not, as the other end and the tunnel allow."""
        if self.transport is None or self.transport.is_closing():
            return
        if self.peer.blocked or self.tunnel.acting:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()


class Tunnel:
    """One connection through the relay, and what is recorded of it."""

    def __init__(self, relay: Relay, run: Run) -> None:
        self.relay = relay
        self.endpoint = relay.name
        self.opened = run.tick()
        self.closed: int | None = None
        self.chunks: list[Chunk] = []
        self.size: dict[Stream, int] = {"upstream": 0, "downstream": 0}
        self.framing = AdaptiveFraming(relay.protocol)
        self.acting = False
        self._run = run
        history = History(self.endpoint, run.ledger)
        self.session = Session(self.framing, history, _Judge(run, self.endpoint), run.tick)
        self.client = _End(self, "upstream")
        self.server = _End(self, "downstream")
        self._waiting: list[Callable[[], None]] = []  # what came while an action runs
        self._ended: set[Stream] = set()

    def begin(self) -> None:
        self.client.read()
        self.server.read()

    def received(self, stream: Stream, data: bytes) -> None:
        self.size[stream] += len(data)
        if len(self.chunks) < _MAX_CHUNKS:
            self.chunks.append(Chunk(stream, len(data)))
        take = self.session.client if stream == "upstream" else self.session.server
        self._when_free(lambda: self._do(take(data)))

    def ended(self, stream: Stream) -> None:
        """That side has closed its direction: so does the relay, when all has gone on."""

        def end() -> None:
            self._do(self.session.end(stream))
            self._ended.add(stream)
            to = (self.server if stream == "upstream" else self.client).transport
            if len(self._ended) == 2:
                self.close()
            elif to is not None and not to.is_closing():
                to.write_eof()

        self._when_free(end)

    def _when_free(self, act: Callable[[], None]) -> None:
        if self.acting:
            self._waiting.append(act)
        else:
            act()

    def _do(self, steps: list[Step]) -> None:
        for at, step in enumerate(steps):
            if isinstance(step, Forward):
                to = (self.server if step.stream == "upstream" else self.client).transport
                if to is not None and not to.is_closing():
                    to.write(step.data)
            elif isinstance(step, Close):
                self.close()
            else:
                cut = cast(ArmedCut, step.hit)
                cut.struck(step.request.info)
                if cut.action is not None:
                    self._act(cut.action, steps[at + 1 :])
                    return
        if self.relay.down:
            self.relay.close_tunnels()

    def _act(self, action: Callable[[], object], then: list[Step]) -> None:
        """Run a fault's action in a thread, with this connection's flow held meanwhile."""
        self.acting = True
        self.client.read()
        self.server.read()

        def go_on(future: asyncio.Future[object]) -> None:
            self.acting = False
            error = future.exception()
            if error is not None:
                self.relay.failures.append(error)
            self._do(then)
            waiting, self._waiting = self._waiting, []
            for act in waiting:
                self._when_free(act)
            self.client.read()
            self.server.read()

        loop = self.relay.loop
        loop.run_in_executor(None, action).add_done_callback(go_on)

    def close(self) -> None:
        for end in (self.client, self.server):
            if end.transport is not None:
                end.transport.close()

    def abort(self) -> None:
        for end in (self.client, self.server):
            if end.transport is not None:
                end.transport.abort()

    def lost(self) -> None:
        """One end is gone: so must the other go, after what it is still to be given."""
        if self.client.lost and self.server.lost:
            self.closed = self._run.tick()
            self.relay.forget(self)
            return
        self._when_free(self.close)


class _Registry(Protocol):
    """Where a relay finds the present run."""

    @property
    def run(self) -> Run: ...


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
        host, _, port = upstream.rpartition(":")
        self.upstream = (host, int(port))
        self._registry = registry
        self._tunnels: set[Tunnel] = set()
        self._dials: set[asyncio.Task[None]] = set()
        self._listener = socket.create_server((HOST, 0), backlog=_BACKLOG)
        self._listener.setblocking(False)
        self.address = f"{HOST}:{self._listener.getsockname()[1]}"
        loop.add_reader(self._listener, self._accept)

    @property
    def down(self) -> bool:
        """Whether a cut keeps every connection from working."""
        return any(c.down and c.point.endpoint == self.name for c in self._registry.run.cuts)

    def _accept(self) -> None:
        for _ in range(_BACKLOG):
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setblocking(False)
            if self.down:
                client.close()
                continue
            dial = self.loop.create_task(self._connect(client))
            self._dials.add(dial)
            dial.add_done_callback(self._dials.discard)

    async def _connect(self, client: socket.socket) -> None:
        run = self._registry.run
        tunnel = Tunnel(self, run)
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
        self.loop.remove_reader(self._listener)
        self._listener.close()
        self.close_tunnels()
