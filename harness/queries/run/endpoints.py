"""The endpoints of a sink: recorded, proxied anew for each incarnation of the driver, cut."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType

from bettong.engine.address import Address
from bettong.harness.events import Handler, Preparing
from bettong.harness.queries.faults.read_only_requests import awaits
from bettong.harness.queries.faults.wire import request_digest
from bettong.harness.servers.server import Server
from bettong.harness.toxiproxy import Armed, ProxiedLink, SupervisedToxiproxy, ToxiproxyServer
from bettong.harness.wire import Armed as WireArmed
from bettong.harness.wire import WireEndpoint, WireListener, WireRecorder
from bettong.harness.wire.session import Logged
from bettong.lineage.errors import UsageError
from bettong.lineage.secrets import masked

Addresses = dict[str, Address]
Contacts = list[tuple[int, int | None]]
"""Of each connection that was made in a run: bytes that its client has sent, when it was closed."""


def start_servers(
    wanted: Mapping[str, Callable[[], Server]],
    given: Mapping[str, str],
    stack: contextlib.ExitStack,
    on_event: Handler,
) -> tuple[dict[str, str], dict[str, Server]]:
    """Start the servers for which no address is given, until the stack ends; the addresses of all
    endpoints, and those servers. Raises ServerMissingError."""
    endpoints, servers = dict(given), {}
    for name, server in wanted.items():
        if name not in endpoints:
            on_event(Preparing(name))
            servers[name] = stack.enter_context(server())
            endpoints[name] = servers[name].address
    return endpoints, servers


class EndpointProxies:
    """Driver -> Toxiproxy -> recording relay -> the real server, for every endpoint.

    Each incarnation of the driver has proxies of its own, so that a connection left over from a
    crashed one leads nowhere for ever. A context manager.

    Attributes:
        recorder: of what crosses.
        servers: those of the endpoints that are ours to restart and stop.
    """

    def __init__(
        self, endpoints: Mapping[str, str], servers: Mapping[str, Server] | None = None
    ) -> None:
        self.servers = dict(servers or {})
        self._stack = contextlib.ExitStack()
        self._ways: dict[tuple[str, int], dict[str, tuple[ProxiedLink, WireListener]]] = {}
        self._relays: dict[str, WireEndpoint] = {}
        self.recorder = self._stack.enter_context(WireRecorder())
        if not endpoints:
            return
        server = self._stack.enter_context(ToxiproxyServer())
        self._toxiproxy = self._stack.enter_context(SupervisedToxiproxy(server))
        for name, address in endpoints.items():
            try:
                Address.parse(address)
            except UsageError as e:
                raise UsageError(f"endpoint {name}: {masked(str(e))}") from e
            self._relays[name] = self.recorder.endpoint(name, address)

    def begin(self) -> None:
        """A new run."""
        self.recorder.begin()

    def open(self, run: str, incarnation: int) -> Addresses:
        """Proxies for an incarnation: where it is to reach each endpoint."""
        ways = self._ways[run, incarnation] = {}
        addresses = {}
        for name, relay in self._relays.items():
            listener = relay.listener()
            link = ProxiedLink.create(
                self._toxiproxy, f"{run}-{incarnation}-{name}", listener.address
            )
            listener.show(Address(*link.address))
            ways[name] = (link, listener)
            addresses[name] = link.address
        return addresses

    def cut(self, run: str, incarnation: int) -> None:
        """Whatever the incarnation still sends arrives nowhere; its connections are closed."""
        for link, listener in self._ways.pop((run, incarnation), {}).values():
            self._toxiproxy.delete(link.name)
            listener.close()

    def end(self, run: str) -> None:
        """The run is over: its proxies go."""
        for key in [key for key in self._ways if key[0] == run]:
            self.cut(*key)

    def clock(self) -> int:
        """The recorder's logical time: requests that are met from now on have a higher order."""
        return self.recorder.run.tick()

    def request_digest(self, run: str) -> str:
        """What servers were sent so far in the run, as
        :func:`~bettong.harness.queries.faults.wire.request_digest` has it; empty: nothing."""
        met = [
            (logged.order, tunnel.endpoint, logged.info.label, logged.keys)
            for tunnel in list(self.recorder.run.tunnels)
            for logged in list(tunnel.session.requests)
        ]
        reported = sorted(met, key=lambda request: request[0])
        return request_digest((request[1:] for request in reported), run) if self._relays else ""

    def contacts(self) -> Contacts:
        """What clients have done so far in the run. A connection that a fault holds tells nothing
        until it is let go."""
        return [(t.size["upstream"], t.closed) for t in list(self.recorder.run.tunnels)]

    def unanswered(self, since: int) -> frozenset[int]:
        """The requests met after that logical time, each by its own, that wait for a reply which
        would have come by itself."""
        return frozenset(
            logged.order for logged in self._waiting(since) if not awaits(logged.info.label)
        )

    def awaits(self, since: int) -> bool:
        """Whether one waits that is answered when there is something to tell."""
        return any(awaits(logged.info.label) for logged in self._waiting(since))

    def _waiting(self, since: int) -> Iterator[Logged]:
        for tunnel in list(self.recorder.run.tunnels):
            if tunnel.closed is None:
                requests = list(tunnel.session.requests)
                yield from (each for each in requests if each.order > since and each.waits)

    def pass_time(self, seconds: int) -> bool:
        """Have our servers forget what they do by themselves in so long; whether that was
        anything."""
        forgot = [server.pass_time(seconds) for server in self.servers.values()]
        return any(forgot)

    def server(self, endpoint: str) -> Server:
        """The server of an endpoint, if it is ours."""
        return self.servers[endpoint]

    def refuse(self, run: str, incarnation: int, endpoint: str) -> Armed:
        """Close the incarnation's connections to an endpoint, and refuse new ones."""
        link, _ = self._ways[run, incarnation][endpoint]
        return link.refuse()

    def refuse_once(self, endpoint: str) -> WireArmed:
        """Close the connections to an endpoint, and turn the next one away."""
        return self._relays[endpoint].refuse_once()

    def unused(self) -> list[str]:
        """Endpoints to which no byte went in the present run."""
        return [name for name, relay in self._relays.items() if relay.bytes == 0]

    def left(self) -> list[str]:
        """Endpoints whose clients were sent past the proxy in the present run."""
        return [name for name, relay in self._relays.items() if relay.left()]

    def bypassed(self, session: int) -> list[str]:
        """Endpoints to whose servers a process of a session is connected, at this moment, past the
        proxy."""
        return [name for name, relay in self._relays.items() if relay.bypassed(session)]

    def __enter__(self) -> EndpointProxies:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
