"""Redis' serialization protocol, RESP2 and RESP3.

https://redis.io/docs/latest/develop/reference/protocol-spec/
"""

from __future__ import annotations

import hashlib
import re

from bettong.harness.wire.framing import refusal
from bettong.harness.wire.framing.base import Frame, FramingError, Info, Role
from bettong.harness.wire.framing.paired import PairedFraming
from bettong.harness.wire.framing.refusal import Refusal

_SIMPLE = frozenset(b"+-:,_#(")
_BULK = frozenset(b"$=!")
_AGGREGATES = {ord("*"): 1, ord("~"): 1, ord(">"): 1, ord("%"): 2, ord("|"): 2}
_MAX_ELEMENTS = 1024 * 1024
_MAX_BULK = 1 << 30
_MAX_DEPTH = 32
_NEVER_REFUSED = frozenset(
    ("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "MONITOR", "WAIT", "DISCARD")
)
_LOGIN = frozenset(("AUTH", "HELLO", "CLIENT", "SELECT"))


class _Value:
    """Puts a value together from lines and bulk strings; tells when it is whole."""

    def __init__(self) -> None:
        self._missing = [1]  # elements still to come, outermost first
        self._attributes = [False]
        self.push = False

    @property
    def begun(self) -> bool:
        return len(self._missing) > 1

    def add(self, line: bytes) -> int:
        """A line; gives the size of the bulk string that follows it, or 0."""
        kind = line[0]
        if kind in _SIMPLE:
            self._done()
            return 0
        length = _number(line)
        if kind in _BULK:
            if length < 0:
                self._done()
                return 0
            if length > _MAX_BULK:
                raise FramingError(f"a bulk string of {length} bytes")
            return length + 2
        if kind not in _AGGREGATES:
            raise FramingError(f"no RESP value begins with {line[:1]!r}")
        if length > _MAX_ELEMENTS or len(self._missing) > _MAX_DEPTH:
            raise FramingError("an aggregate that is too large or too deep")
        self.push = self.push or (kind == ord(">") and not self.begun)
        if length <= 0:
            self._done()
        else:
            self._missing.append(length * _AGGREGATES[kind])
            self._attributes.append(kind == ord("|"))
        return 0

    def bulk(self) -> None:
        """The bulk string that a line announced has come."""
        self._done()

    def _done(self) -> None:
        self._missing[-1] -= 1
        while len(self._missing) > 1 and self._missing[-1] == 0:
            self._missing.pop()
            if not self._attributes.pop():  # an attribute comes before its value, not instead
                self._missing[-1] -= 1

    @property
    def whole(self) -> bool:
        return self._missing == [0]


def _number(line: bytes) -> int:
    try:
        return int(line[1:].strip(b"\r\n"))
    except ValueError:
        raise FramingError(f"no length: {line[:20]!r}") from None


def _line_size(head: bytes) -> int | None:
    end = head.find(b"\n")
    return None if end < 0 else end + 1


_FIRST = re.compile(rb"\*[1-9]\d{0,6}\r\n\$\d|PING\r\n|(AUTH|HELLO) ", re.IGNORECASE)


class RespFraming(PairedFraming):
    """A request is a command; its reply is one value. What the server pushes is no reply."""

    protocol = "redis"

    @classmethod
    def recognises_client(cls, data: bytes) -> bool:
        return _FIRST.match(data) is not None

    def __init__(self) -> None:
        super().__init__()
        self._asking, self._answering = _Value(), _Value()
        self._client_bulk = self._server_bulk = 0
        self._words: list[bytes] = []
        self._digest = hashlib.blake2b(digest_size=16)

    def measure_client(self, head: bytes) -> int | None:
        return self._client_bulk or _line_size(head)

    def measure_server(self, head: bytes) -> int | None:
        return self._server_bulk or _line_size(head)

    def client_frame(self, frame: Frame) -> None:
        self._digest.update(frame.digest)
        if self._client_bulk:
            self._client_bulk = 0
            if len(self._words) < 2:
                self._words.append(frame.head[:-2] if frame.size <= len(frame.head) else frame.head)
            self._asking.bulk()
        elif not self._asking.begun and frame.head[:1] != b"*":
            self._words = frame.head.split()[:2]
            if not self._words:
                self.part(frame.size)  # an empty line is no command
                return
            self._ask(frame.size)
            return
        else:
            self._client_bulk = self._asking.add(frame.head)
        if self._asking.whole:
            self._ask(frame.size)
        else:
            self.part(frame.size)

    def _ask(self, size: int) -> None:
        words = [word.decode("utf-8", "replace") for word in self._words]
        label = words[0].upper() if words else "?"
        role: Role = "login" if label in _LOGIN else "noise" if label == "PING" else "request"
        detail = " ".join([label, *words[1:]])[:120] if role == "request" else ""
        refusable = role == "request" and label not in _NEVER_REFUSED
        self.part(size, Info(label, detail, role, self._digest.digest(), refusable=refusable))
        self._asking, self._words = _Value(), []
        self._digest = hashlib.blake2b(digest_size=16)

    def refusal(self, request: Info, data: bytes) -> Refusal | None:
        return refusal.of_redis(request.label == "EXEC") if request.refusable else None

    def server_frame(self, frame: Frame) -> None:
        if self._server_bulk:
            self._server_bulk = 0
            self._answering.bulk()
        else:
            self._server_bulk = self._answering.add(frame.head)
        if not self._answering.whole:
            self.answer(frame.size)
            return
        push, self._answering = self._answering.push, _Value()
        if push:
            self.answer(frame.size)
        else:
            self.answer_oldest(frame.size)
