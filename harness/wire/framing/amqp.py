"""AMQP 0-9-1, as RabbitMQ speaks it.

https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf
"""

from __future__ import annotations

import hashlib
import struct
from collections import deque
from dataclasses import dataclass, field

from bettong.harness.wire.framing.base import Frame, FramingError, Info, Role
from bettong.harness.wire.framing.paired import PairedFraming

_METHOD, _HEADER, _BODY, _HEARTBEAT = 1, 2, 3, 8
_FRAME_END = 0xCE
_MAX_SHOWN = 100
_MAX_FRAME = 1 << 28
_CONNECTION = 10
_OPEN = (20, 10)
_PUBLISH, _ACK, _NACK = (60, 40), (60, 80), (60, 120)
_SELECT_CONFIRMS = (85, 10)
_CARRIES_CONTENT = frozenset(((60, 40), (60, 50), (60, 60), (60, 71)))
_UNSOLICITED = frozenset(((60, 50), (60, 60), (20, 20)))  # return, deliver, flow
_UNANSWERED = frozenset(((10, 31), (60, 80), (60, 90), (60, 120), (20, 21), (20, 41)))
_NAMES = {
    (20, 10): "channel.open",
    (20, 40): "channel.close",
    (40, 10): "exchange.declare",
    (50, 10): "queue.declare",
    (50, 20): "queue.bind",
    (50, 30): "queue.purge",
    (50, 40): "queue.delete",
    (60, 10): "basic.qos",
    (60, 20): "basic.consume",
    (60, 40): "basic.publish",
    (60, 70): "basic.get",
    (60, 80): "basic.ack",
    (60, 120): "basic.nack",
    (85, 10): "confirm.select",
    (90, 10): "tx.select",
    (90, 20): "tx.commit",
    (90, 30): "tx.rollback",
}
_NAMES_A_QUEUE = frozenset(((50, 10), (50, 20), (50, 30), (50, 40), (60, 20), (60, 70)))
_LOGIN_METHODS = {10: "start", 11: "start-ok", 31: "tune-ok", 40: "open", 50: "close"}


@dataclass
class _Channel:
    """What is under way on one channel."""

    open: deque[int] = field(default_factory=deque)  # requests that a reply is due to
    confirming: bool = False
    unconfirmed: dict[int, int] = field(default_factory=dict)  # delivery tag -> request
    published: int = 0  # since confirms were asked for: what was before, the broker does not count


class AmqpFraming(PairedFraming):
    """A request is a method with its content. A publish is replied to by the broker's confirm,
    and by nothing where confirms were not asked for."""

    protocol = "amqp"

    @classmethod
    def recognises_client(cls, data: bytes) -> bool:
        return data.startswith(b"AMQP\x00\x00\x09\x01")

    def __init__(self) -> None:
        super().__init__()
        self._greeted = False
        self._channels: dict[int, _Channel] = {}
        self._method: tuple[int, int] | None = None  # whose content is still to come
        self._content_missing = 0
        self._content_channel = 0
        self._where = ""  # what the method whose content is still to come names
        self._digest = hashlib.blake2b(digest_size=16)

    def measure_client(self, head: bytes) -> int | None:
        if not self._greeted:
            if len(head) < 8:
                return None
            if head[:8] != b"AMQP\x00\x00\x09\x01":
                raise FramingError("no AMQP 0-9-1")
            return 8
        return _size(head)

    def measure_server(self, head: bytes) -> int | None:
        return _size(head)

    def client_frame(self, frame: Frame) -> None:
        if not self._greeted:
            self._greeted = True
            request = self.part(frame.size, Info("protocol", role="login"))
            self._channels[0] = _Channel(deque([request]))
            return
        kind, channel = _kind(frame)
        if kind == _HEARTBEAT:
            whole = self._method is None
            self.part(frame.size, Info("heartbeat", role="noise", replied=False) if whole else None)
            return
        self._digest.update(frame.digest)
        if kind == _METHOD and self._method is None:
            method = _method(frame)
            self._where = _named(frame, method)
            if method in _CARRIES_CONTENT:
                self._method, self._content_channel, self._content_missing = method, channel, -1
                self.part(frame.size)
            else:
                self._ask(frame.size, method, channel)
            return
        if channel == self._content_channel and self._method is not None:
            if kind == _HEADER and self._content_missing < 0:
                self._content_missing = _body_size(frame)
            elif kind == _BODY and self._content_missing > 0:
                self._content_missing -= frame.size - 8
            if self._content_missing == 0:
                method, self._method = self._method, None
                self._ask(frame.size, method, channel)
                return
        self.part(frame.size)

    def _ask(self, size: int, method: tuple[int, int], number: int) -> None:
        if method == _OPEN:  # one of this number that was closed has counted for itself
            self._channels[number] = _Channel()
        channel = self._channels.setdefault(number, _Channel())
        content, self._digest = self._digest.digest(), hashlib.blake2b(digest_size=16)
        role: Role = "login" if method[0] == _CONNECTION else "request"
        label = _NAMES.get(method, f"method {method[0]}.{method[1]}")
        if role == "login":
            label = f"connection.{_LOGIN_METHODS.get(method[1], method[1])}"
        replied = method not in _UNANSWERED and (method != _PUBLISH or channel.confirming)
        detail = f"{label} {self._where}" if self._where else ""
        request = self.part(size, Info(label, detail, role, content, replied))
        if method == _SELECT_CONFIRMS:
            channel.confirming = True
        if method == _PUBLISH:
            if channel.confirming:
                channel.published += 1
                channel.unconfirmed[channel.published] = request
        elif replied:
            channel.open.append(request)

    def server_frame(self, frame: Frame) -> None:
        kind, number = _kind(frame)
        channel = self._channels.setdefault(number, _Channel())
        if kind != _METHOD:
            self.answer(frame.size)
            return
        method = _method(frame)
        if method in (_ACK, _NACK) and len(frame.head) >= 20:
            tag, bits = struct.unpack_from("!QB", frame.head, 11)
            tags = [t for t in channel.unconfirmed if t == tag or (bits & 1 and t <= tag)]
            self.answer(frame.size, *(channel.unconfirmed.pop(t) for t in tags))
        elif method in _UNSOLICITED or not channel.open:
            self.answer(frame.size)
        else:
            self.answer(frame.size, channel.open.popleft())


def _size(head: bytes) -> int | None:
    if len(head) < 7:
        return None
    kind, _, size = struct.unpack_from("!BHI", head)
    if kind not in (_METHOD, _HEADER, _BODY, _HEARTBEAT) or size > _MAX_FRAME:
        raise FramingError("no AMQP frame")
    return int(size) + 8


def _kind(frame: Frame) -> tuple[int, int]:
    if frame.last != _FRAME_END:
        raise FramingError("an AMQP frame without its end")
    kind, channel = struct.unpack_from("!BH", frame.head)
    return kind, channel


def _method(frame: Frame) -> tuple[int, int]:
    if frame.size < 12:
        raise FramingError("an AMQP method without its number")
    group, number = struct.unpack_from("!HH", frame.head, 7)
    return group, number


def _body_size(frame: Frame) -> int:
    if frame.size < 20:
        raise FramingError("an AMQP content header without a size")
    return int(struct.unpack_from("!Q", frame.head, 11)[0])


def _named(frame: Frame, method: tuple[int, int]) -> str:
    """The exchange and routing key of a publish; the queue of a method that names one."""
    count = 2 if method == _PUBLISH else 1 if method in _NAMES_A_QUEUE else 0
    names, at = [], 13  # after frame header, method and a number that is reserved
    for _ in range(count):
        size = frame.head[at] if at < len(frame.head) else 0
        names.append(frame.head[at + 1 : at + 1 + size].decode("utf-8", "replace"))
        at += 1 + size
    return " ".join(name for name in names if name)[:_MAX_SHOWN]
