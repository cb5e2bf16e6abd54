"""Kafka's protocol: requests and responses with a length and a correlation id.

https://kafka.apache.org/protocol
"""

from __future__ import annotations

import struct

from bettong.harness.wire.framing.base import Frame, FramingError, Info, Role
from bettong.harness.wire.framing.kafka_produce import (
    ANSWERED,
    HEADER,
    ProduceFields,
    not_authorized,
)
from bettong.harness.wire.framing.paired import PairedFraming
from bettong.harness.wire.framing.refusal import Refusal

_MAX_SIZE = 1 << 30
_MAX_API_KEY = 100
_MAX_OPEN = 10_000
_PRODUCE = 0
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
        if len(head) < HEADER:
            return None
        key, version = struct.unpack_from("!hh", head, 4)
        size = _size(head)
        if not 0 <= key <= _MAX_API_KEY or not 0 <= version <= 40 or size < HEADER:
            raise FramingError("no Kafka request")
        return size

    def measure_server(self, head: bytes) -> int | None:
        return None if len(head) < 4 else _size(head)

    def blank_in_request(self, head: bytes) -> tuple[int, int]:
        return 8, HEADER  # the correlation id

    def client_frame(self, frame: Frame) -> None:
        key, version, correlation = struct.unpack_from("!hhi", frame.head, 4)
        role: Role = "login" if key in _LOGIN else "noise" if key in _NOISE else "request"
        label = _NAMES.get(key, f"API {key}")
        topic, acks = _told(frame.head, version) if key == _PRODUCE else ("", 1)
        detail = f"{label} {topic}" if topic else ""
        refusable = bool(acks and topic) and version in ANSWERED
        told = Info(label, detail, role, frame.digest, acks != 0, refusable=refusable)
        number = self.part(frame.size, told)
        if not acks:
            return
        if len(self._numbers) >= _MAX_OPEN:
            raise FramingError(f"{_MAX_OPEN} requests without an answer")
        self._numbers[correlation] = number

    def refusal(self, request: Info, data: bytes) -> Refusal | None:
        return not_authorized(data) if request.refusable else None

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
    fields = ProduceFields(head, version)
    try:
        topic = fields.first_topic()
    except (struct.error, IndexError):
        topic = ""
    return topic, fields.acks
