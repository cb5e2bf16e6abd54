"""Kafka's protocol: requests and responses with a length and a correlation id.

https://kafka.apache.org/protocol
"""

from __future__ import annotations

import base64
import struct

from bettong.harness.wire.framing.base import Frame, FramingError, Info, Role
from bettong.harness.wire.framing.paired import PairedFraming

_MAX_SIZE = 1 << 30
_MAX_API_KEY = 100
_MAX_OPEN = 10_000
_HEADER = 12  # length, API key, version, correlation id
_PRODUCE, _FLEXIBLE, _BY_ID = 0, 9, 13
"""Of Produce: from which version on lengths are varints, and topics have ids instead of names."""
_NAMES = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    22: "InitProducerId",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    28: "TxnOffsetCommit",
    36: "SaslAuthenticate",
}
_LOGIN = frozenset((17, 18, 36))
# Clients send these when their timers say so, or until an answer suits them.
_NOISE = frozenset((1, 2, 3, 9, 10, 12))


class KafkaFraming(PairedFraming):
    """A request is what Kafka calls one; replies are matched by correlation id. Records that nobody
    is to confirm (acks=0) are not replied to."""

    protocol = "kafka"

    @classmethod
    def recognises_client(cls, data: bytes) -> bool:
        if len(data) < 12:
            return False
        size, key, version = struct.unpack_from("!ihh", data)
        return bool(8 <= size < 1 << 24 and 0 <= key <= 100 and 0 <= version <= 40)

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[int, int] = {}  # correlation id -> request

    def measure_client(self, head: bytes) -> int | None:
        if len(head) < _HEADER:
            return None
        key, version = struct.unpack_from("!hh", head, 4)
        size = _size(head)
        if not 0 <= key <= _MAX_API_KEY or not 0 <= version <= 40 or size < _HEADER:
            raise FramingError("no Kafka request")
        return size

    def measure_server(self, head: bytes) -> int | None:
        return None if len(head) < 4 else _size(head)

    def blank_in_request(self, head: bytes) -> tuple[int, int]:
        return 8, _HEADER  # the correlation id

    def client_frame(self, frame: Frame) -> None:
        key, version, correlation = struct.unpack_from("!hhi", frame.head, 4)
        role: Role = "login" if key in _LOGIN else "noise" if key in _NOISE else "request"
        label = _NAMES.get(key, f"API {key}")
        topic, acks = _told(frame.head, version) if key == _PRODUCE else ("", 1)
        detail = f"{label} {topic}" if topic else ""
        number = self.part(frame.size, Info(label, detail, role, frame.digest, acks != 0))
        if not acks:
            return
        if len(self._numbers) >= _MAX_OPEN:
            raise FramingError(f"{_MAX_OPEN} requests without an answer")
        self._numbers[correlation] = number

    def server_frame(self, frame: Frame) -> None:
        if frame.size < 8:
            raise FramingError("no Kafka response")
        number = self._numbers.pop(struct.unpack_from("!i", frame.head, 4)[0], None)
        self.answer(frame.size, *([] if number is None else [number]))


def _size(head: bytes) -> int:
    size = int(struct.unpack_from("!i", head)[0])
    if not 4 <= size <= _MAX_SIZE:
        raise FramingError(f"a Kafka message of {size} bytes")
    return size + 4


def _told(head: bytes, version: int) -> tuple[str, int]:
    """The topic, or the first one, that records go to, empty where that cannot be told; and how
    many are to confirm them: where none are, no reply is due."""
    fields = _Fields(head, version)
    try:
        topic = fields.topic()
    except (struct.error, IndexError):
        topic = ""
    return topic, fields.acks


class _Fields:
    """Reads a Produce from its client id on."""

    def __init__(self, head: bytes, version: int) -> None:
        self._head, self._version, self._at = head, version, _HEADER
        self.acks = 1

    def topic(self) -> str:
        self._text(self._number("!h"))  # the client's id
        if self._version >= _FLEXIBLE and self._varint():
            return ""  # tagged fields, which no client sends here
        if self._version >= 3:
            self._name()  # the transactional id
        self.acks = self._number("!h")
        self._number("!i")  # timeout
        if self._count() < 1:
            return ""
        if self._version >= _BY_ID:
            return base64.urlsafe_b64encode(self._bytes(16)).decode().rstrip("=")
        return self._name()

    def _name(self) -> str:
        return self._text(self._varint() - 1 if self._version >= _FLEXIBLE else self._number("!h"))

    def _count(self) -> int:
        return self._varint() - 1 if self._version >= _FLEXIBLE else self._number("!i")

    def _text(self, size: int) -> str:
        return self._bytes(max(size, 0)).decode("utf-8", "replace")

    def _bytes(self, size: int) -> bytes:
        if self._at + size > len(self._head):
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
