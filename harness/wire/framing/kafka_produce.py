"""Kafka's Produce: where its records go, and how a broker answers that it has not taken them.

https://kafka.apache.org/protocol#The_Messages_Produce
"""

from __future__ import annotations

import base64
import struct

from bettong.harness.wire.framing.refusal import Refusal

HEADER = 12  # length, API key, version, correlation id
ANSWERED = range(3, 14)
"""The versions that are known."""
_TIMED, _STARTED, _EXPLAINED, _FLEXIBLE, _BY_ID = 2, 5, 8, 9, 13
"""From which version on an answer has times, the log's start and errors in words; lengths are
varints; topics have ids instead of names."""
_API_VERSIONS, _NOT_AUTHORIZED = 18, 29


def not_authorized(request: bytes) -> Refusal | None:
    """A broker that has been told that this client may not write: no client tries again. None where
    the request cannot be read."""
    version, correlation = struct.unpack_from("!hi", request, 6)
    try:
        topics = ProduceFields(request, version).partitions()
    except (struct.error, IndexError):
        return None
    answer = _with_size(struct.pack("!i", correlation) + _tags(version) + _answer(topics, version))
    asked = _with_size(struct.pack("!hhih", _API_VERSIONS, 0, correlation, -1))
    return Refusal(f"{_NOT_AUTHORIZED} (not authorized)", lambda _: answer, asked)


def _answer(topics: list[tuple[bytes, list[int]]], version: int) -> bytes:
    told = _count(len(topics), version)
    for name, partitions in topics:
        told += name if version >= _BY_ID else _name(name, version)
        told += _count(len(partitions), version)
        for partition in partitions:
            told += struct.pack("!ihq", partition, _NOT_AUTHORIZED, -1)
            told += struct.pack("!q", -1) if version >= _TIMED else b""
            told += struct.pack("!q", -1) if version >= _STARTED else b""
            if version >= _EXPLAINED:
                told += _count(0, version) + (b"\0" if version >= _FLEXIBLE else b"\xff\xff")
            told += _tags(version)
        told += _tags(version)
    return told + struct.pack("!i", 0) + _tags(version)


def _count(number: int, version: int) -> bytes:
    return _varint(number + 1) if version >= _FLEXIBLE else struct.pack("!i", number)


def _name(name: bytes, version: int) -> bytes:
    size = _varint(len(name) + 1) if version >= _FLEXIBLE else struct.pack("!h", len(name))
    return size + name


def _tags(version: int) -> bytes:
    return b"\0" if version >= _FLEXIBLE else b""


def _varint(number: int) -> bytes:
    written = b""
    while number >= 0x80:
        written += bytes([number & 0x7F | 0x80])
        number >>= 7
    return written + bytes([number])


def _with_size(message: bytes) -> bytes:
    return struct.pack("!i", len(message)) + message


class ProduceFields:
    """Reads a Produce from its client id on. Raises struct.error or IndexError where it ends, or is
    no such request."""

    def __init__(self, head: bytes, version: int) -> None:
        self._head, self._version, self._at = head, version, HEADER
        self.acks = 1

    def first_topic(self) -> str:
        """Empty where there is none."""
        if self._topics() < 1:
            return ""
        name = self._topic()
        if self._version >= _BY_ID:
            return base64.urlsafe_b64encode(name).decode().rstrip("=")
        return name.decode("utf-8", "replace")

    def partitions(self) -> list[tuple[bytes, list[int]]]:
        """Each topic, by its name or id, and those of its partitions that records go to."""
        found = []
        for _ in range(self._topics()):
            name, numbers = self._topic(), []
            for _ in range(self._count()):
                numbers.append(self._number("!i"))
                self._bytes(self._count())  # the records
                self._tags()
            self._tags()
            found.append((name, numbers))
        return found

    def _topics(self) -> int:
        """How many follow."""
        self._bytes(max(self._number("!h"), 0))  # the client's id
        self._tags()
        if self._version >= 3:
            self._name()  # the transactional id
        self.acks = self._number("!h")
        self._number("!i")  # timeout
        return self._count()

    def _topic(self) -> bytes:
        return self._bytes(16) if self._version >= _BY_ID else self._name()

    def _tags(self) -> None:
        if self._version >= _FLEXIBLE and self._varint():
            raise IndexError  # fields that no client sends here

    def _name(self) -> bytes:
        size = self._varint() - 1 if self._version >= _FLEXIBLE else self._number("!h")
        return self._bytes(max(size, 0))

    def _count(self) -> int:
        return self._varint() - 1 if self._version >= _FLEXIBLE else self._number("!i")

    def _bytes(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._head):
            raise IndexError
        self._at += size
        return self._head[self._at - size : self._at]

    def _number(self, kind: str) -> int:
        return int(struct.unpack(kind, self._bytes(struct.calcsize(kind)))[0])

    def _varint(self) -> int:
        number = shift = 0
        while True:
            (byte,) = self._bytes(1)
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number
