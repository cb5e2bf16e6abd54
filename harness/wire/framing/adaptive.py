"""Recognising a connection's protocol, and doing without when it turns out otherwise."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping

from bettong.harness.wire.framing.amqp import AmqpFraming
from bettong.harness.wire.framing.base import Framing, FramingError, Part, Reply
from bettong.harness.wire.framing.http1 import Http1Framing
from bettong.harness.wire.framing.kafka import KafkaFraming
from bettong.harness.wire.framing.mysql import MySQLFraming
from bettong.harness.wire.framing.nats import NatsFraming
from bettong.harness.wire.framing.opaque import OpaqueFraming
from bettong.harness.wire.framing.postgres import PostgresFraming
from bettong.harness.wire.framing.resp import RespFraming

FRAMINGS: Mapping[str, Callable[[], Framing]] = {
    framing.protocol: framing
    for framing in (
        AmqpFraming,
        Http1Framing,
        KafkaFraming,
        MySQLFraming,
        NatsFraming,
        OpaqueFraming,
        PostgresFraming,
        RespFraming,
    )
}

_HTTP = re.compile(rb"(GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS) \S")
_RESP = re.compile(rb"\*[1-9]\d{0,6}\r\n\$\d|PING\r\n|(AUTH|HELLO) ", re.IGNORECASE)


def recognised_by_client(data: bytes) -> str:
    """The protocol of which a client's first bytes are, ``opaque`` if none."""
    if data.startswith(b"AMQP\x00\x00\x09\x01"):
        return "amqp"
    if _HTTP.match(data):
        return "http"
    if _RESP.match(data):
        return "redis"
    if len(data) >= 12:
        size, code = struct.unpack_from("!ii", data)
        if 8 <= size <= 10_000 and (code >> 16 == 3 or code in (80877103, 80877104)):
            return "postgres"
        key, version = struct.unpack_from("!hh", data, 4)
        if 8 <= size < 1 << 24 and 0 <= key <= 100 and 0 <= version <= 40:
            return "kafka"
    elif len(data) == 8 and struct.unpack("!ii", data) in ((8, 80877103), (8, 80877104)):
        return "postgres"
    return "opaque"


def recognised_by_server(data: bytes) -> str:
    """The protocol of a server that speaks first."""
    if data.startswith(b"INFO {"):
        return "nats"
    if len(data) > 5 and data[3] == 0 and data[4] == 10 and int.from_bytes(data[:3], "little") > 20:
        return "mysql"
    return "opaque"


class AdaptiveFraming(Framing):
    """The framing that suits a connection; direction changes from where it no longer does.

    Never raises FramingError: ``problem`` says why a framing was given up."""

    protocol = "adaptive"

    def __init__(self, protocol: str | None = None) -> None:
        self.problem: str | None = None
        self._framing: Framing | None = FRAMINGS[protocol]() if protocol else None
        self._asked = 0
        self._untold_client = 0  # bytes that no part covers yet
        self._untold_server = 0

    @property
    def recognised(self) -> str:
        """The protocol in force."""
        return "unknown" if self._framing is None else self._framing.protocol

    def client(self, data: bytes) -> list[Part]:
        if self._framing is None:
            self._framing = FRAMINGS[recognised_by_client(data)]()
        self._untold_client += len(data)
        try:
            if self.problem is None:
                parts = self._framing.client(data)
            else:
                parts = self._framing.client(bytes(self._untold_client))
        except FramingError as e:
            parts = self._give_up(e).client(bytes(self._untold_client))
        self._untold_client -= sum(part.size for part in parts)
        self._asked += sum(part.request is not None for part in parts)
        return parts

    def server(self, data: bytes) -> list[Reply]:
        if self._framing is None:
            self._framing = FRAMINGS[recognised_by_server(data)]()
        self._untold_server += len(data)
        try:
            if self.problem is None:
                answers = self._framing.server(data)
            else:
                answers = self._framing.server(bytes(self._untold_server))
        except FramingError as e:
            answers = self._give_up(e).server(bytes(self._untold_server))
        self._untold_server -= sum(answer.size for answer in answers)
        return answers

    def _give_up(self, error: FramingError) -> Framing:
        self.problem = f"{self.recognised}: {error}"
        self._framing = OpaqueFraming(asked=self._asked)
        return self._framing
