"""What was said on each connection of a run, and by what a request is told again in another run."""

from __future__ import annotations

import hashlib
import heapq
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bettong.harness.toxiproxy.spec import Stream
from bettong.harness.wire.framing.base import Info

_REQUEST = re.compile(r"([^/]+)/conn=(\d+)/request=(\d+)(?: (.*))?\Z", re.DOTALL)


class RequestId(NamedTuple):
    """A request by its place in a recording: ``postgres/conn=1/request=3 INSERT``."""

    endpoint: str
    connection: int
    number: int
    label: str = ""

    @classmethod
    def parse(cls, text: str) -> RequestId | None:
        """The parts of an id; None for other text."""
        found = _REQUEST.match(text)
        return found and cls(found[1], int(found[2]), int(found[3]), found[4] or "")

    def __str__(self) -> str:
        return f"{self.endpoint}/conn={self.connection}/request={self.number} {self.label}"


@dataclass(frozen=True, slots=True)
class Keys:
    """By what a request is told again.

    Attributes:
        content: digest of all that its connection has asked up to and with it; None where the
            protocol does not say.
        content_nth: which request of the run with that digest it is, from 1.
        label: the same from labels only.
        label_nth: the same from labels only.
        own: digest of this request alone, by which one that is sent again is told.
    """

    content: str | None
    content_nth: int
    label: str
    label_nth: int
    own: str


class Ledger:
    """How often each key was met in a run."""

    def __init__(self) -> None:
        self._met: Counter[str] = Counter()

    def count(self, key: str) -> int:
        self._met[key] += 1
        return self._met[key]


class History:
    """What one connection has asked so far."""

    def __init__(self, endpoint: str, ledger: Ledger) -> None:
        self._ledger = ledger
        self._content: bytes | None = endpoint.encode()
        self._label = endpoint.encode()

    def add(self, request: Info) -> Keys:
        label = request.label.encode()
        self._label = _digest(self._label, label)
        if self._content is not None:
            known = request.content is not None
            self._content = _digest(self._content, label, request.content or b"") if known else None
        label_key = f"label:{self._label.hex()}"
        content_key = None if self._content is None else f"content:{self._content.hex()}"
        return Keys(
            content_key,
            self._ledger.count(content_key) if content_key else 0,
            label_key,
            self._ledger.count(label_key),
            request.label if request.content is None else request.content.hex(),
        )


def _digest(*pieces: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=12)
    for piece in pieces:
        digest.update(len(piece).to_bytes(8, "big") + piece)
    return digest.digest()


@dataclass(frozen=True)
class Request:
    """One request of a recorded conversation.

    Attributes:
        index: within its connection, from 1; log-ins, heartbeats and polls are not counted.
        order: within the run, over all endpoints.
        alike: as :class:`~bettong.harness.wire.framing.base.Info` has it.
        size: bytes.
        reply_size: bytes of the reply, 0 when none came.
        replied: when the last of them came, in the same order; 0 when none did.
        refusable: as Info has it.
    """

    endpoint: str
    connection: int
    index: int
    order: int
    label: str
    detail: str
    size: int
    reply_size: int
    keys: Keys
    alike: str = ""
    replied: int = 0
    refusable: bool = False

    @property
    def id(self) -> str:
        """``postgres/conn=1/request=3 INSERT``"""
        return str(RequestId(self.endpoint, self.connection, self.index, self.label))


@dataclass(frozen=True)
class Chunk:
    """Bytes as they came in one read."""

    stream: Stream
    size: int


@dataclass(frozen=True)
class Conversation:
    """One connection.

    Attributes:
        number: from 1 within the endpoint; connections that were open at the same time are
            numbered by what was said, not by which came first.
        protocol: as recognised; ``opaque`` where requests are told by direction changes.
        chunks: in the order in which they came, as far as they were kept.
        sent: bytes from client to server, ``received`` back.
        problem: why a framing was given up, or what was not kept.
    """

    endpoint: str
    number: int
    protocol: str
    requests: tuple[Request, ...]
    chunks: tuple[Chunk, ...]
    sent: int
    received: int
    problem: str | None


@dataclass(frozen=True)
class Recording:
    """Every conversation of a run."""

    conversations: tuple[Conversation, ...]

    @property
    def requests(self) -> list[Request]:
        """All requests, in the order in which they were made."""
        found = [request for talk in self.conversations for request in talk.requests]
        return sorted(found, key=lambda request: request.order)

    def of(self, endpoint: str) -> Iterator[Conversation]:
        return (talk for talk in self.conversations if talk.endpoint == endpoint)

    def bytes(self, endpoint: str) -> int:
        """Bytes that crossed, both ways; 0 when the endpoint was not used."""
        return sum(talk.sent + talk.received for talk in self.of(endpoint))


@dataclass(frozen=True)
class Span:
    """When a connection was open, and what orders it among those that were open with it."""

    opened: int
    closed: int
    message: tuple[str, ...]


def numbered(spans: list[Span]) -> list[int]:
    """The number of each connection, from 1: one that had ended before another began comes before
    it; else what was said decides, since which of two racing connections is first is chance."""
    by_opening = sorted(range(len(spans)), key=lambda i: spans[i].opened)
    ends = [(span.closed, i) for i, span in enumerate(spans)]
    heapq.heapify(ends)
    ready: list[tuple[tuple[str, ...], int, int]] = []  # opened before any that is left has ended
    numbers = [0] * len(spans)
    begun = 0
    for number in range(1, len(spans) + 1):
        while numbers[ends[0][1]]:
            heapq.heappop(ends)
        while begun < len(spans) and spans[by_opening[begun]].opened < ends[0][0]:
            i = by_opening[begun]
            heapq.heappush(ready, (spans[i].message, spans[i].opened, i))
            begun += 1
        numbers[heapq.heappop(ready)[2]] = number
    return numbers
