"""What crossed a proxy, as evidence that a fault fired."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bettong.harness.toxiproxy.spec import STREAMS, Stream


@dataclass(frozen=True)
class Flow:
    """Bytes of one direction: ``received`` from the sender = passed + held + dropped."""

    received: int = 0
    passed: int = 0
    held: int = 0
    dropped: int = 0

    def __sub__(self, earlier: Flow) -> Flow:
        return Flow(
            self.received - earlier.received,
            self.passed - earlier.passed,
            self.held - earlier.held,
            self.dropped - earlier.dropped,
        )


@dataclass(frozen=True)
class Touched:
    """What one toxic did: bytes that it delayed, cut or dropped, and on how many connections."""

    bytes: int = 0
    connections: int = 0


@dataclass(frozen=True)
class Traffic:
    """Counts of one proxy since it was created.

    Attributes:
        live: whether open connections are counted. Toxiproxy's own metrics count a connection
            only when it has ended, and know neither toxics nor connections.
        connections: ``accepted``, ``open``, ``unreachable`` (the upstream could not be dialled)
            and ``killed`` (cut by disabling the proxy).
    """

    upstream: Flow = Flow()
    downstream: Flow = Flow()
    live: bool = True
    connections: Mapping[str, int] = field(default_factory=dict)
    toxics: Mapping[str, Touched] = field(default_factory=dict)

    def flow(self, stream: Stream) -> Flow:
        return self.upstream if stream == "upstream" else self.downstream


def from_json(given: Mapping[str, Any]) -> Traffic:
    """The answer of the embedded server's ``GET /proxies/{name}/traffic``."""
    return Traffic(
        Flow(**given["upstream"]),
        Flow(**given["downstream"]),
        connections=given["connections"],
        toxics={name: Touched(**touched) for name, touched in given["toxics"].items()},
    )


_COUNTER = re.compile(r"toxiproxy_proxy_(received|sent)_bytes_total\{(.*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*")')


def from_metrics(text: str, proxy: str) -> Traffic:
    """The same, as far as the metrics of the real server tell (started with ``-proxy-metrics``)."""
    counts = {("received", s): 0 for s in STREAMS} | {("sent", s): 0 for s in STREAMS}
    for line in text.splitlines():
        if found := _COUNTER.match(line):
            labels = {key: json.loads(value) for key, value in _LABEL.findall(found[2])}
            if labels.get("proxy") == proxy:
                counts[found[1], labels["direction"]] += int(float(found[3]))

    def flow(stream: Stream) -> Flow:
        received, sent = counts["received", stream], counts["sent", stream]
        return Flow(received, sent, 0, max(0, received - sent))

    return Traffic(flow("upstream"), flow("downstream"), live=False)
