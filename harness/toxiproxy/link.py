"""A link between two nodes, through one proxy, that can be broken exactly and mended::

    link = ProxiedLink.create(client, "driver->receiver", upstream="127.0.0.3:9000")
    fault = link.lose_request()   # the next request is lost and its connection closed
    ...
    evidence = fault.heal()

A fault is in force when the call that arms it returns, for open connections and for new ones, and
until it is healed: a client that connects again and retries meets it again.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bettong.harness.toxiproxy import spec
from bettong.harness.toxiproxy.client import Proxy, Toxiproxy
from bettong.harness.toxiproxy.errors import ProxyNotFoundError
from bettong.harness.toxiproxy.spec import STREAMS, Stream, Toxic

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Evidence:
    """What a fault did.

    Attributes:
        fired: whether it hit any data or connection. None when the server cannot know: the real
            Toxiproxy counts the bytes of ended connections only, and no server sees the
            connections that a disabled proxy refuses. Then the client's failed step is the proof.
        detail: the counts behind it, for the trace.
    """

    fired: bool | None
    detail: dict[str, Any]


class Armed:
    """A fault in force on a link. A context manager that heals it."""

    def __init__(
        self,
        link: ProxiedLink,
        toxics: tuple[Toxic, ...],
        arm: Callable[[], object],
        heal: Callable[[], object],
    ) -> None:
        self.link = link
        self._toxics = toxics
        self._heal: Callable[[], object] | None = heal
        self._before = link.client.traffic(link.name)
        arm()

    def evidence(self) -> Evidence:
        """What it has done so far."""
        before, after = self._before, self.link.client.traffic(self.link.name)
        if before is None or after is None:
            return Evidence(None, {})
        dropped = {s: after.flow(s).dropped - before.flow(s).dropped for s in STREAMS}
        detail: dict[str, Any] = {"dropped": dropped}
        if not after.live:
            return Evidence(True if any(dropped.values()) else None, detail)
        if self._toxics:
            detail["toxics"] = {
                toxic.name: vars(after.toxics[toxic.name])
                for toxic in self._toxics
                if toxic.name in after.toxics
            }
            return Evidence(any(t["connections"] for t in detail["toxics"].values()), detail)
        detail["killed"] = after.connections["killed"] - before.connections["killed"]
        return Evidence(True if detail["killed"] else None, detail)

    def holding(self) -> int:
        """Bytes that its toxics hold back at this moment and will give on; 0 where the server
        cannot know."""
        now = self.link.client.traffic(self.link.name)
        streams = {toxic.stream for toxic in self._toxics}
        return 0 if now is None else sum(now.flow(stream).held for stream in streams)

    def heal(self) -> Evidence:
        """End the fault; what it held back is gone, and so are its connections. Again: no more
        than the evidence."""
        if self._heal is not None:
            self._heal()
            self._heal = None
        return self.evidence()

    def __enter__(self) -> Armed:
        return self

    def __exit__(self, *error: object) -> None:
        self.heal()


class ProxiedLink:
    """One proxy as a link. ``upstream`` is what the connecting node sends (requests),
    ``downstream`` what comes back (replies).

    Attributes:
        address: (host, port) that the connecting node has to use.
    """

    def __init__(self, client: Toxiproxy, proxy: Proxy) -> None:
        self.client = client
        self.name = proxy.name
        self.address = proxy.address
        self._lock = threading.Lock()
        self._refusing = 0  # faults in force that refuse its connections

    @classmethod
    def create(
        cls, client: Toxiproxy, name: str, upstream: str, listen: str = "127.0.0.1:0"
    ) -> ProxiedLink:
        return cls(client, client.create(Proxy(name, upstream, listen)))

    def lose_request(self) -> Armed:
        """Requests are lost before they arrive: the first byte that the client sends closes its
        connection, and nothing of it passes."""
        return self.cut_after(0, "upstream")

    def lose_reply(self) -> Armed:
        """Requests arrive and are carried out, but the replies are lost: the first byte that comes
        back closes the connection."""
        return self.cut_after(0, "downstream")

    def cut_after(self, count: int, stream: Stream) -> Armed:
        """Exactly ``count`` more bytes of each connection pass, then it is closed."""
        return self.arm(spec.limit_data(count, stream, self._unique("cut")))

    def hold(self, *streams: Stream) -> Armed:
        """A silent partition, of both directions when none is named: connections stay open, no
        data pass. Healing closes the connections that were open, as data are missing in them."""
        return self.arm(
            *(spec.timeout(0, stream, self._unique("hold")) for stream in streams or STREAMS)
        )

    def delay(self, latency_ms: int, *streams: Stream) -> Armed:
        """Data come later by that much, in both directions when none is named."""
        return self.arm(
            *(
                spec.latency(latency_ms, 0, stream, self._unique("delay"))
                for stream in streams or STREAMS
            )
        )

    def arm(self, *toxics: Toxic) -> Armed:
        """Any toxics together, as one fault."""

        def add() -> None:
            for toxic in toxics:
                self.client.add_toxic(self.name, toxic)

        def remove() -> None:
            for toxic in toxics:
                with suppress(ProxyNotFoundError):  # the proxy was reset, or is gone
                    self.client.remove_toxic(self.name, toxic.name)

        return Armed(self, toxics, add, remove)

    def refuse(self) -> Armed:
        """A cut that both sides see: connections are closed, new ones are refused. Of several in
        force at once the last one that is healed opens the link."""
        return Armed(self, (), self._disable, self._enable)

    def _disable(self) -> None:
        with self._lock:
            self.client.disable(self.name)
            self._refusing += 1

    def _enable(self) -> None:
        with self._lock:
            if self._refusing == 1:
                self.client.enable(self.name)
            self._refusing -= 1

    def _unique(self, what: str) -> str:
        return f"{what}-{next(_numbers)}"  # evidence is kept by name, also of healed faults
