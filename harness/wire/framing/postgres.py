"""PostgreSQL's frontend/backend protocol 3.

https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections import Counter

from bettong.harness.wire.framing import refusal
from bettong.harness.wire.framing.base import Frame, FramingError, Info
from bettong.harness.wire.framing.paired import PairedFraming, shown, verb, works
from bettong.harness.wire.framing.refusal import Refusal

_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102
_MAX_STARTUP = 10_000
_MAX_NAMES = 10_000
_ASKS_FOR_PASSWORD = frozenset((3, 5, 10, 11))
# What a client asks in the extended protocol, each with one of the answers below, or an error.
_ASKING = frozenset((b"P", b"B", b"D", b"C", b"E"))
_ANSWERING = frozenset((b"1", b"2", b"3", b"n", b"T", b"C", b"I", b"s"))

_ISOLATION = re.compile(rb"ISOLATION.{,20}(SERIALIZABLE|REPEATABLE)", re.IGNORECASE | re.DOTALL)
_ENCRYPTION = (80877103, 80877104)  # asked for before anything else


class PostgresFraming(PairedFraming):
    """A request is a simple query, or everything up to Sync (or Flush), or the data of one COPY.

    A reply ends with ReadyForQuery; that to what was sent before a Flush, which is not answered by
    itself, with its last message's answer.
    """

    protocol = "postgres"

    @classmethod
    def recognises_client(cls, data: bytes) -> bool:
        if len(data) == 8:
            return struct.unpack("!ii", data) in ((8, code) for code in _ENCRYPTION)
        if len(data) < 12:
            return False
        size, code = struct.unpack_from("!ii", data)
        return 8 <= size <= 10_000 and (code >> 16 == 3 or code in _ENCRYPTION)

    def __init__(self) -> None:
        super().__init__()
        self._started = False
        self._negotiating = False  # one byte will answer the request for encryption
        self._statements: dict[bytes, bytes] = {}
        self._portals: dict[bytes, bytes] = {}
        self._digest = hashlib.blake2b(digest_size=16)
        self._executed: list[bytes] = []  # statements, in the request that is being made
        self._parsed: bytes | None = None
        self._asking = 0  # messages to be answered, in the request that is being made
        self._flushed: dict[int, int] = {}  # requests that end with Flush: answers still to come
        self._extended = False  # the last request was of the extended kind
        self._copying = False
        self._copy_failed = False
        self._serializable = False  # more than to read what is committed

    def measure_client(self, head: bytes) -> int | None:
        if self._started:
            return _typed_size(head)
        if len(head) < 8:
            return None
        size, code = struct.unpack_from("!ii", head)
        known = code in (_SSL, _GSS, _CANCEL) or code >> 16 == 3
        if not known or not 8 <= size <= _MAX_STARTUP:
            raise FramingError("no PostgreSQL startup message")
        return int(size)

    def measure_server(self, head: bytes) -> int | None:
        return 1 if self._negotiating else _typed_size(head)

    def client_frame(self, frame: Frame) -> None:
        if not self._started:
            self._startup(frame)
            return
        kind, body = frame.head[:1], frame.head[5:]
        self._serializable = self._serializable or _isolates(kind, body)
        self._digest.update(frame.digest)
        if kind == b"P":
            name, _, rest = body.partition(b"\0")
            self._parsed = rest.partition(b"\0")[0]
            self._name(self._statements, name, self._parsed)
        elif kind == b"B":
            portal, _, rest = body.partition(b"\0")
            statement = rest.partition(b"\0")[0]
            self._name(self._portals, portal, self._statements.get(statement, b"?"))
        elif kind == b"E":
            self._executed.append(self._portals.get(body.partition(b"\0")[0], b"?"))
        self._asking += kind in _ASKING
        request = self._request(kind, body)
        if request is None:
            self.part(frame.size)
            return
        number = self.part(frame.size, request)
        if kind == b"H" and self._asking:
            self._flushed[number] = self._asking
        self._digest = hashlib.blake2b(digest_size=16)
        self._executed, self._parsed, self._asking = [], None, 0

    def _request(self, kind: bytes, body: bytes) -> Info | None:
        """The request that a message of this kind completes, if it does."""
        content = self._digest.digest()
        if kind == b"Q":
            self._extended = False
            text = body.rstrip(b"\0")
            label = verb(text)
            return Info(label, shown(text), content=content, refusable=works(label))
        if kind == b"H" and not self._asking:
            return Info("Flush", role="noise", replied=False)
        if kind in (b"S", b"H"):
            self._extended = True
            label, detail = self._label()
            refusable = kind == b"S" and works(label)  # after a Flush more is to come
            return Info(label, detail, content=content, refusable=refusable)
        if kind in (b"c", b"f") and not self._extended:
            replied, self._copy_failed = not self._copy_failed, False
            return Info("COPY data", content=content, replied=replied)
        if kind == b"F":
            return Info("function call", content=content)
        if kind == b"p":
            return Info("password", role="login")
        if kind == b"X":
            return Info("Terminate", role="noise", replied=False)
        return None

    def refusal(self, request: Info, data: bytes) -> Refusal | None:
        commits = request.label in ("COMMIT", "END")
        return refusal.of_postgres(commits, self._serializable) if request.refusable else None

    def _label(self) -> tuple[str, str]:
        """Label and detail of what was executed since the last Sync."""
        texts = self._executed
        if not texts:
            if self._parsed is not None:
                return f"prepare {verb(self._parsed)}", shown(self._parsed)
            return ("COPY data" if self._copying else "Sync"), ""
        counts = Counter(verb(text) for text in texts)
        label = "+".join(v if n == 1 else f"{v}x{n}" for v, n in counts.items())
        return label, shown(texts[0])

    def _startup(self, frame: Frame) -> None:
        code = struct.unpack_from("!i", frame.head, 4)[0]
        if code in (_SSL, _GSS):
            self._negotiating = True
            self.part(frame.size, Info("encryption?", role="login"))
        elif code == _CANCEL:
            self.part(frame.size, Info("cancel", role="noise", replied=False))
        else:
            self._started = True
            self.part(frame.size, Info("startup", role="login"))

    def server_frame(self, frame: Frame) -> None:
        kind = frame.head[:1]
        if self._negotiating:
            self._negotiating = False
            self.answer_oldest(frame.size)
            if kind != b"N":
                raise FramingError("the connection is encrypted from here on")
        elif kind == b"R":
            asks = struct.unpack_from("!i", frame.head, 5)[0] in _ASKS_FOR_PASSWORD
            if asks:
                self.answer_oldest(frame.size)
            else:
                self.answer(frame.size)
        elif kind in (b"Z", b"G", b"W"):  # ReadyForQuery, CopyInResponse, CopyBothResponse
            if kind == b"Z" and self._copying and not self.open:
                self._copy_failed = True  # the data still under way will not be answered
            self._copying = kind != b"Z"
            skipped = self._skipped() if kind == b"Z" else []
            if self.open:
                self._flushed.pop(self.open[0], None)
                skipped.append(self.open.popleft())
            self.answer(frame.size, *skipped)
        elif self.open and self.open[0] in self._flushed and self._was_last(kind):
            del self._flushed[self.open[0]]
            self.answer_oldest(frame.size)
        else:
            self.answer(frame.size)

    def _was_last(self, kind: bytes) -> bool:
        """Whether the oldest request, which ended with Flush, is answered by this."""
        self._flushed[self.open[0]] -= kind in _ANSWERING
        return kind == b"E" or self._flushed[self.open[0]] == 0

    def _skipped(self) -> list[int]:
        """Requests before the oldest Sync that an error left without an answer of their own."""
        skipped = []
        while len(self.open) > 1 and self._flushed.pop(self.open[0], None) is not None:
            skipped.append(self.open.popleft())
        return skipped

    @staticmethod
    def _name(names: dict[bytes, bytes], name: bytes, text: bytes) -> None:
        if name in names or len(names) < _MAX_NAMES:
            names[name] = text


def _isolates(kind: bytes, body: bytes) -> bool:
    return kind in (b"Q", b"P") and _ISOLATION.search(body) is not None


def _typed_size(head: bytes) -> int | None:
    """Of a message with a type byte and a length that counts itself."""
    if len(head) < 5:
        return None
    size = struct.unpack_from("!i", head, 1)[0]
    if not head[:1].isalnum() or size < 4:
        raise FramingError("no PostgreSQL message")
    return int(size) + 1
