"""One connection through a relay: two sockets around a Session. Runs on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from bettong.harness.toxiproxy.spec import Stream
from bettong.harness.wire.armed import ArmedCut
from bettong.harness.wire.conversation import Chunk, History
from bettong.harness.wire.framing.adaptive import AdaptiveFraming
from bettong.harness.wire.redirect import Redirect
from bettong.harness.wire.run import EndpointJudge, WireRun
from bettong.harness.wire.session import Close, Forward, Session, Step

_MAX_CHUNKS = 100_000  # of one connection that are kept


class TunnelOwner(Protocol):
    """The relay that a tunnel belongs to.

    Attributes:
        name: the endpoint's.
        protocol: what is spoken there; None when nobody has said so.
        failures: what went wrong in a tunnel.
    """

    loop: asyncio.AbstractEventLoop
    name: str
    protocol: str | None
    failures: list[BaseException]

    def forget(self, tunnel: Tunnel) -> None: ...


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

    def __init__(self, relay: TunnelOwner, run: WireRun, redirect: Redirect | None = None) -> None:
        self.relay = relay
        self.endpoint = relay.name
        self.opened = run.tick()
        self.closed: int | None = None
        self.chunks: list[Chunk] = []
        self.size: dict[Stream, int] = {"upstream": 0, "downstream": 0}
        self.framing = AdaptiveFraming(relay.protocol)
        self.acting = False
        self._run = run
        self._redirect = redirect
        history = History(self.endpoint, run.ledger)
        self.session = Session(self.framing, history, EndpointJudge(run, self.endpoint), run.tick)
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
        if stream == "upstream":
            self._when_free(lambda: self._do(self.session.client(data)))
            return
        if self._redirect is not None and self.framing.recognised == "kafka":
            data = self._redirect.feed(data)
        self._when_free(lambda: self._do(self.session.server(data)))

    def ended(self, stream: Stream) -> None:
        """That side has closed its direction: so does the relay, when all has gone on."""

        if stream == "downstream" and self._redirect is not None:
            rest = self._redirect.rest()
            self._when_free(lambda: self._do(self.session.server(rest)))

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
                cut.hit(step.request.info)
                if cut.action is not None:
                    self._act(cut.action, steps[at + 1 :])
                    return

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
