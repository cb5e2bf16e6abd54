"""Telling requests and replies apart in two byte streams.

A framing sees every byte of one connection, in the order in which they came, and says how the
streams divide: the client's bytes into parts of requests, the server's into answers. It holds a
few kilobytes at most, however long the messages are that it is told to expect.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from bettong.harness.wire.framing.refusal import Refusal
from bettong.lineage.errors import BettongError

Role = Literal["request", "login", "noise"]

HEAD = 4096  # bytes of a frame that are kept for its meaning
MAX_HEADER = 65536  # bytes within which a frame must have told its length


class FramingError(BettongError):
    """The bytes are not of this protocol, or in a part of it that cannot be read (encrypted).

    Attributes:
        parts, replies: what came right before them in the same read.
    """

    parts: Sequence[Part] = ()
    replies: Sequence[Reply] = ()


@dataclass(frozen=True, slots=True)
class Info:
    """What a request is.

    Attributes:
        label: what it does, in the protocol's words: ``INSERT``, ``POST /rows``, ``Produce``.
        detail: more of it for people, without values; may be empty.
        role: ``login`` belongs to setting the connection up, ``noise`` comes when it likes
            (heartbeats, polls); neither is counted.
        content: digest of what it asks, without what differs between equal requests (correlation
            ids); None where that cannot be known.
        replied: False when no reply is due.
        alike: equal for requests with this label that do the same with other values; empty where
            the detail tells that.
        refusable: whether the framing knows how a server refuses it, and it is one that servers
            do refuse.
    """

    label: str
    detail: str = ""
    role: Role = "request"
    content: bytes | None = None
    replied: bool = True
    alike: str = ""
    refusable: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """The next ``size`` bytes of the client. ``request`` is set on the part that completes one;
    ``more`` says that these bytes still belong to the request completed last."""

    size: int
    request: Info | None = None
    more: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The next ``size`` bytes of the server. ``to`` are the requests, counted from 0 over all that
    the framing has told of, whose replies are complete with them, or far enough to show that they
    were carried out; ``more`` says that these bytes still belong to the reply told of last."""

    size: int
    to: tuple[int, ...] = ()
    more: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that has wholly come: its first bytes, its last byte, its size, its digest."""

    head: bytes
    last: int
    size: int
    digest: bytes


class Framing(ABC):
    """The framing of one connection."""

    protocol: ClassVar[str]

    @classmethod
    def recognises_client(cls, data: bytes) -> bool:
        """Whether a client's first bytes are of this protocol."""
        return False

    @classmethod
    def recognises_server(cls, data: bytes) -> bool:
        """Whether a server that speaks first speaks this protocol."""
        return False

    @abstractmethod
    def client(self, data: bytes) -> list[Part]:
        """Raises FramingError when the stream makes no sense."""

    @abstractmethod
    def server(self, data: bytes) -> list[Reply]:
        """Raises FramingError when the stream makes no sense."""

    def refusal(self, request: Info, data: bytes) -> Refusal | None:
        """How a server refuses a request made of ``data``; None where that is not known."""
        return None


class FrameReader(ABC):
    """Cuts one direction into frames that tell their length at their beginning."""

    def __init__(self) -> None:
        self._begun = b""  # of a frame whose length is not known yet
        self._head = b""
        self._size = 0
        self._missing = 0
        self._blank = 0, 0
        self._digest = hashlib.blake2b(digest_size=16)

    @abstractmethod
    def measure(self, head: bytes) -> int | None:
        """The size of the frame that begins with ``head``; None when more is needed to tell."""

    @abstractmethod
    def frame(self, frame: Frame) -> None:
        """A frame is complete; the next one is measured after this."""

    def blank(self, head: bytes) -> tuple[int, int]:
        """From where to where the frame's digest takes zeros instead of what is there; ``head`` is
        what its size was told from."""
        return 0, 0

    def feed(self, data: bytes) -> None:
        """Measure and complete as many frames as ``data`` make up."""
        at = 0
        while at < len(data):
            if self._missing == 0:
                probe = self._begun + data[at : at + MAX_HEADER - len(self._begun)]
                size = self.measure(probe)
                if size is None:
                    if len(probe) == MAX_HEADER:
                        raise FramingError(f"no length within {MAX_HEADER} bytes")
                    self._begun = probe
                    return
                self._begin(size, self.blank(probe))
            piece = data[at : at + self._missing]
            at += len(piece)
            self._hash(piece)
            self._missing -= len(piece)
            if len(self._head) < HEAD:
                self._head += piece[: HEAD - len(self._head)]
            if self._missing == 0:
                self.frame(Frame(self._head, piece[-1], self._size, self._digest.digest()))

    def _begin(self, size: int, blank: tuple[int, int]) -> None:
        if size <= len(self._begun):
            raise FramingError(f"a frame of {size} bytes")
        self._head, self._size, self._blank = self._begun[:HEAD], size, blank
        self._missing = size
        self._digest = hashlib.blake2b(digest_size=16)
        self._hash(self._begun)
        self._missing -= len(self._begun)
        self._begun = b""

    def _hash(self, piece: bytes) -> None:
        at = self._size - self._missing
        start, end = (min(max(0, edge - at), len(piece)) for edge in self._blank)
        if start < end:
            piece = piece[:start] + bytes(end - start) + piece[end:]
        self._digest.update(piece)
