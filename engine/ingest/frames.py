"""The gateway's protocol: what senders and readers say, and what it answers.

A client's first frame is :class:`Hello`. A sender then sends :class:`Data` and one :class:`End`
and is answered by :class:`Ack`; a reader asks :class:`Status`, :class:`Read` and
:class:`Release`, one at a time. Every error is an ErrorReply, after which the gateway closes.

``cause`` is the id of the step in which a request is sent; ``step`` and ``steps`` in an answer
are ids of the gateway's steps that it rests on. All are empty in production.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bettong.engine.net.block import Block
from bettong.engine.net.codec import Codec

NO_LIMIT = 2**63


def message_id(stream: str, number: int) -> str:
    """``lines/17``."""
    return f"{stream}/{number}"


def create_step(stream: str) -> str:
    """The gateway's step that makes the journal of a new stream."""
    return f"gateway.create/{stream}"


def append_step(stream: str, last: int) -> str:
    """The gateway's step that makes a frame durable whose last message has this number."""
    return f"gateway.append/{message_id(stream, last)}"


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame: which stream, and as ``send`` or ``read``; and from which node, where
    steps are watched."""

    KIND: ClassVar[int] = 1
    stream: str
    role: str
    token: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The answer to Hello. The next message of the stream gets the number ``next``, and a sender
    may send those below ``limit``; ``ended``: the stream takes no more."""

    KIND: ClassVar[int] = 2
    next: int
    limit: int
    ended: bool
    step: str


@dataclass(frozen=True, slots=True)
class Data:
    """Messages ``first``, ``first + 1``, … of the stream."""

    KIND: ClassVar[int] = 3
    first: int
    messages: Block
    cause: str


@dataclass(frozen=True, slots=True)
class End:
    """No message follows; the stream has ``count`` messages."""

    KIND: ClassVar[int] = 4
    count: int
    cause: str


@dataclass(frozen=True, slots=True)
class Ack:
    """Messages below ``upto`` are durable (and the end, if ``ended``); see Welcome.limit."""

    KIND: ClassVar[int] = 5
    upto: int
    limit: int
    ended: bool
    step: str


@dataclass(frozen=True, slots=True)
class Credit:
    """The sender may now send messages below ``limit``. Unasked, or the answer to Ping."""

    KIND: ClassVar[int] = 6
    limit: int


@dataclass(frozen=True, slots=True)
class Ping:
    """From a sender that waits for credit: is the connection alive?"""

    KIND: ClassVar[int] = 7


@dataclass(frozen=True, slots=True)
class Status:
    """Answered when message ``upto - 1`` is durable, the stream has ended, or ``wait_ms``
    milliseconds have gone."""

    KIND: ClassVar[int] = 8
    upto: int
    wait_ms: int
    cause: str


@dataclass(frozen=True, slots=True)
class StatusReply:
    """Messages from ``base`` up to but not including ``end`` can be read, those below
    ``released`` for no longer than it pleases the gateway. ``step``: the append of message
    ``upto - 1``, or of the last one if there are fewer."""

    KIND: ClassVar[int] = 9
    base: int
    end: int
    released: int
    ended: bool
    step: str


@dataclass(frozen=True, slots=True)
class Read:
    """Wants messages ``start`` up to but not including ``stop``."""

    KIND: ClassVar[int] = 10
    start: int
    stop: int
    cause: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages from ``start`` on, at least one, perhaps fewer than wanted: then ask again.
    ``steps``: the appends that made them durable."""

    KIND: ClassVar[int] = 11
    start: int
    messages: Block
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Messages below ``upto`` are not wanted again."""

    KIND: ClassVar[int] = 12
    upto: int
    cause: str


@dataclass(frozen=True, slots=True)
class Released:
    """The release is durable."""

    KIND: ClassVar[int] = 13
    upto: int
    step: str


CODEC = Codec(
    Hello,
    Welcome,
    Data,
    End,
    Ack,
    Credit,
    Ping,
    Status,
    StatusReply,
    Read,
    Batch,
    Release,
    Released,
)
