"""HTTP/1.1 message framing (RFC 9112, section 6)."""

from __future__ import annotations

import hashlib
import re
from collections import deque

from bettong.harness.wire.framing import refusal
from bettong.harness.wire.framing.base import Frame, FramingError, Info
from bettong.harness.wire.framing.paired import PairedFraming
from bettong.harness.wire.framing.refusal import Refusal

_REQUEST_LINE = re.compile(rb"([A-Z][A-Z-]{0,31}) (\S+) HTTP/1\.[01]$")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3})(?: .*)?$")
_MAX_BODY = 1 << 40
_BEGINNING, _TELLING = 512, 100
"""So many bytes of a query and of a body are looked at, and so many tell, without numbers, what is
asked for."""
_NUMBERS = re.compile(rb"[0-9a-f]*[0-9][0-9a-f]*")
_UNTIL_CLOSE = -1


class _Body:
    """Where a message's body stands: bytes of it that come next, or chunks."""

    def __init__(self) -> None:
        self.fixed = 0
        self.chunked = False
        self.in_chunk = 0  # with its line end
        self.trailer = False

    @property
    def awaited(self) -> bool:
        return bool(self.fixed) or self.chunked

    def measure(self, head: bytes) -> int | None:
        if self.fixed:
            return self.fixed if self.fixed > 0 else len(head)
        if self.in_chunk:
            return self.in_chunk
        end = head.find(b"\n")
        return None if end < 0 else end + 1

    def took(self, frame: Frame) -> None:
        if self.fixed > 0:
            self.fixed = 0
        elif self.in_chunk:
            self.in_chunk = 0
        elif self.trailer:
            self.chunked = bool(frame.head.strip())
            self.trailer = self.chunked
        elif self.chunked:
            size = frame.head.partition(b";")[0].strip()
            if not re.fullmatch(rb"[0-9a-fA-F]{1,10}", size):
                raise FramingError(f"no chunk size: {frame.head[:20]!r}")
            self.in_chunk = int(size, 16) + 2 if int(size, 16) else 0
            self.trailer = int(size, 16) == 0


def _fields(head: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    lines = head.replace(b"\r\n", b"\n").strip(b"\n").split(b"\n")
    pairs = (line.partition(b":") for line in lines[1:])
    return lines[0], {name.strip().lower(): value.strip().lower() for name, _, value in pairs}


def _body_of(fields: dict[bytes, bytes], otherwise: int) -> _Body:
    body = _Body()
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        body.chunked = True
    elif b"content-length" in fields:
        length = fields[b"content-length"]
        if not length.isdigit() or int(length) > _MAX_BODY:
            raise FramingError(f"no content length: {length[:20]!r}")
        body.fixed = int(length)
    else:
        body.fixed = otherwise
    return body


def _head_size(head: bytes) -> int | None:
    ends = [at + len(end) for end in (b"\r\n\r\n", b"\n\n") if (at := head.find(end)) >= 0]
    return min(ends) if ends else None


def _alike(*pieces: bytes) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for piece in pieces:
        digest.update(_NUMBERS.sub(b"?", piece[:_BEGINNING])[:_TELLING] + b"\0")
    return digest.hexdigest()


_ACTIONS = (b"x-amz-target", b"soapaction")
_SAFE = ("GET ", "HEAD ", "OPTIONS ")
_FIRST_LINE = re.compile(rb"(GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS) \S")


class Http1Framing(PairedFraming):
    """A request is a head and its body, whichever number of writes they come in. Its content is
    method, target and body: header fields carry dates, tokens and trace ids. Where all is asked
    for at one path, query, beginning of the body and a field that names what is to be done tell one
    thing from another."""

    protocol = "http"

    @classmethod
    def recognises_client(cls, data: bytes) -> bool:
        return _FIRST_LINE.match(data) is not None

    def __init__(self) -> None:
        super().__init__()
        self._asking = self._answering = _Body()
        self._info: Info | None = None
        self._digest = hashlib.blake2b(digest_size=16)
        self._query = self._action = self._begins = b""  # the body's beginning
        self._methods: deque[bytes] = deque()

    def measure_client(self, head: bytes) -> int | None:
        return self._asking.measure(head) if self._asking.awaited else _head_size(head)

    def measure_server(self, head: bytes) -> int | None:
        return self._answering.measure(head) if self._answering.awaited else _head_size(head)

    def client_frame(self, frame: Frame) -> None:
        if self._asking.awaited:
            self._asking.took(frame)
            self._digest.update(frame.digest)
            if len(self._begins) < _BEGINNING:
                self._begins += frame.head[: _BEGINNING - len(self._begins)]
        else:
            line, fields = _fields(frame.head)
            found = _REQUEST_LINE.match(line)
            if found is None or found[1] == b"CONNECT":
                raise FramingError(f"no HTTP/1.1 request: {line[:40]!r}")
            target, _, self._query = found[2].partition(b"?")
            self._action = next(filter(None, map(fields.get, _ACTIONS)), b"")
            path = target.decode("ascii", "replace")[:100]
            self._digest = hashlib.blake2b(found[1] + b" " + found[2], digest_size=16)
            self._info = Info(f"{found[1].decode()} {path}")
            self._begins = b""
            self._methods.append(found[1])
            self._asking = _body_of(fields, 0)
            if b"expect" in fields:  # to hold its head back would keep the body from coming
                raise FramingError("the client waits for the server within a request")
        info = self._info
        if info is None or self._asking.awaited:
            self.part(frame.size)
        else:
            content, alike = self._digest.digest(), _alike(self._query, self._action, self._begins)
            refusable = not info.label.startswith(_SAFE)
            told = Info(info.label, content=content, alike=alike, refusable=refusable)
            self.part(frame.size, told)
            self._info = None

    def refusal(self, request: Info, data: bytes) -> Refusal | None:
        return refusal.of_http(request.label, data) if request.refusable else None

    def server_frame(self, frame: Frame) -> None:
        if self._answering.awaited:
            until_close = self._answering.fixed == _UNTIL_CLOSE
            self._answering.took(frame)
            if self._answering.awaited or until_close:
                self.answer(frame.size)
            else:
                self.answer_oldest(frame.size)
            return
        line, fields = _fields(frame.head)
        found = _STATUS_LINE.match(line)
        if found is None:
            raise FramingError(f"no HTTP/1.1 response: {line[:40]!r}")
        status = int(found[1])
        if status == 101:
            raise FramingError("the connection changes its protocol")
        if status < 200:
            self.answer(frame.size)
            return
        method = self._methods.popleft() if self._methods else b""
        empty = method == b"HEAD" or status in (204, 304)
        self._answering = _Body() if empty else _body_of(fields, _UNTIL_CLOSE)
        if self._answering.awaited and self._answering.fixed != _UNTIL_CLOSE:
            self.answer(frame.size)
        else:
            self.answer_oldest(frame.size)
