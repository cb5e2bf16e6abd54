"""NATS' client protocol.

https://docs.nats.io/reference/reference-protocols/nats-protocol
"""

from __future__ import annotations

import hashlib

from bettong.harness.wire.framing.base import Frame, FramingError, Info, Role
from bettong.harness.wire.framing.paired import PairedFraming

_CLIENT = frozenset((b"CONNECT", b"PUB", b"HPUB", b"SUB", b"UNSUB", b"PING", b"PONG"))
_SERVER = frozenset((b"INFO", b"MSG", b"HMSG", b"PING", b"PONG", b"+OK", b"-ERR"))
_WITH_PAYLOAD = frozenset((b"PUB", b"HPUB", b"MSG", b"HMSG"))
_MAX_PAYLOAD = 1 << 30
_MAX_INBOXES = 10_000


class NatsFraming(PairedFraming):
    """A request is a protocol message of the client. The reply to a publish that names an inbox is
    what comes to that inbox: JetStream's acknowledgement."""

    protocol = "nats"

    @classmethod
    def recognises_server(cls, data: bytes) -> bool:
        return data.startswith(b"INFO {")

    def __init__(self) -> None:
        super().__init__()
        self._publishing: list[bytes] = []
        self._payload = 0
        self._server_payload = 0
        self._delivering = b""
        self._inboxes: dict[bytes, int] = {}

    def measure_client(self, head: bytes) -> int | None:
        return self._payload or _line_size(head)

    def measure_server(self, head: bytes) -> int | None:
        return self._server_payload or _line_size(head)

    def client_frame(self, frame: Frame) -> None:
        if self._payload:
            self._payload = 0
            self._publish(frame)
            return
        words = _words(frame, _CLIENT)
        verb = words[0]
        if verb in _WITH_PAYLOAD:
            self._publishing, self._payload = words, _payload_size(words, 3, 4)
            self.part(frame.size)
        elif verb in (b"CONNECT", b"PING", b"PONG"):
            role: Role = "login" if verb == b"CONNECT" else "noise"
            self.part(frame.size, Info(verb.decode(), role=role, replied=False))
        else:
            subject = _shown(words[1]) if verb == b"SUB" and len(words) > 1 else ""
            label = f"{verb.decode()} {subject}".strip()
            content = hashlib.blake2b(label.encode(), digest_size=16).digest()
            self.part(frame.size, Info(label, content=content, replied=False))

    def _publish(self, payload: Frame) -> None:
        words, self._publishing = self._publishing, []
        counts = 2 if words[0] == b"HPUB" else 1
        inbox = words[2] if len(words) > 2 + counts else b""
        # the inbox has a random name
        content = hashlib.blake2b(words[1] + b" " + payload.digest, digest_size=16).digest()
        label = f"PUB {_shown(words[1])}"
        number = self.part(payload.size, Info(label, content=content, replied=bool(inbox)))
        if inbox and len(self._inboxes) < _MAX_INBOXES:
            self._inboxes[inbox] = number

    def server_frame(self, frame: Frame) -> None:
        if not self._server_payload:
            words = _words(frame, _SERVER)
            if words[0] in _WITH_PAYLOAD:
                self._delivering = words[1] if len(words) > 1 else b""
                self._server_payload = _payload_size(words, 4, 5)
            self.answer(frame.size)
            return
        self._server_payload = 0
        number = self._inboxes.pop(self._delivering, None)
        self.answer(frame.size, *([] if number is None else [number]))


def _line_size(head: bytes) -> int | None:
    end = head.find(b"\n")
    return None if end < 0 else end + 1


def _words(line: Frame, known: frozenset[bytes]) -> list[bytes]:
    words = line.head.split()
    if not words or words[0].upper() not in known:
        raise FramingError(f"no NATS message: {line.head[:20]!r}")
    words[0] = words[0].upper()
    return words


def _payload_size(words: list[bytes], shortest: int, longest: int) -> int:
    """The last word of the line counts the bytes that follow it, and a line end follows those."""
    extra = 1 if words[0].startswith(b"H") else 0
    right = shortest + extra <= len(words) <= longest + extra and words[-1].isdigit()
    if not right or int(words[-1]) > _MAX_PAYLOAD:
        raise FramingError(f"no NATS message: {b' '.join(words)[:40]!r}")
    return int(words[-1]) + 2


def _shown(subject: bytes) -> str:
    """A subject; inboxes have random names."""
    text = subject.decode("utf-8", "replace")
    return "_INBOX" if text.startswith("_INBOX.") else text[:100]
