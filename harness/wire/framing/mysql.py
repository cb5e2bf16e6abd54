"""MySQL's and MariaDB's client/server protocol.

https://mariadb.com/kb/en/clientserver-protocol/
"""

from __future__ import annotations

import hashlib
import struct

from bettong.harness.wire.framing import refusal
from bettong.harness.wire.framing.base import Frame, FramingError, Info
from bettong.harness.wire.framing.paired import PairedFraming, shown, verb, works
from bettong.harness.wire.framing.refusal import Refusal

_FULL = 0xFFFFFF  # a packet of this length is continued by the next one
_SSL, _COMPRESS, _ZSTD = 0x800, 0x20, 1 << 26
_MAX_STATEMENTS = 10_000
_LAST_STATEMENT = 0xFFFFFFFF
_NAMED = 9  # header, command and the number of a prepared statement
_QUERY, _PREPARE, _EXECUTE, _BULK_EXECUTE = 0x03, 0x16, 0x17, 0xFA
_SEND_FILE = b"\xfb"
_NAMES = {0x01: "quit", 0x02: "USE", 0x0E: "ping", 0x11: "change user", 0x1F: "reset"}
_NAMES |= {0x18: "long data", 0x19: "close statement", 0x1A: "reset statement", 0x1B: "set option"}
_ENDS = frozenset(("COMMIT", "ROLLBACK", "BEGIN"))
_KEEPS = frozenset(("SET SESSION", "SHOW", "SELECT"))
"""Statements that leave nothing to be committed, or next to nothing."""
_UNANSWERED = frozenset((0x01, 0x18, 0x19))
_NOISE = frozenset((0x01, 0x0E))


class MySQLFraming(PairedFraming):
    """A request is a command: a client's packet numbered 0 and what continues it. It was carried
    out when the first packet of its reply has come. The file that a LOAD DATA LOCAL sends when it
    is asked for it is a request of its own."""

    protocol = "mysql"

    @classmethod
    def recognises_server(cls, data: bytes) -> bool:
        size = int.from_bytes(data[:3], "little")
        return len(data) > 5 and data[3] == 0 and data[4] == 10 and size > 20

    def __init__(self) -> None:
        super().__init__()
        self._commands = 0
        self._continued = False  # the last packet was a full one
        self._pending: Info | None = None  # the command that is being continued
        self._statements: dict[int, bytes] = {}
        self._preparing: dict[int, bytes] = {}  # requests whose answers will name a statement
        self._last_prepared = b"?"
        self._server_sequence = -1
        self._asked_since = False  # a command has come since the server last said something
        self._loading = False  # the server has asked for a file of the client's
        self._loaded = False  # the file has come, and its reply is due
        self._contents = hashlib.blake2b(digest_size=16)  # of the file
        self._wrote = False  # something has been asked for since a transaction ended

    def measure_client(self, head: bytes) -> int | None:
        size = _packet_size(head)
        return size if size is not None and len(head) >= min(size, _NAMED) else None

    def blank_in_request(self, head: bytes) -> tuple[int, int]:
        named = head[3] == 0 and not self._continued and head[4:5] in (b"\x17", b"\xfa")
        return (5, _NAMED) if named else (0, 0)

    def measure_server(self, head: bytes) -> int | None:
        return _packet_size(head)

    def client_frame(self, frame: Frame) -> None:
        length, sequence, payload = frame.size - 4, frame.head[3], frame.head[4:]
        text = b""
        if self._continued:
            request = self._pending
        elif self._loading:  # its packets' numbers come round to that of a command
            request = self._of_a_file(length, frame.digest)
        elif sequence == 0:
            self._commands += 1
            self._asked_since = True
            request, text = self._command(payload, frame.digest)
        else:
            request = self._further(length, payload)
        self._continued = length == _FULL
        self._pending = request if self._continued else None
        number = self.part(frame.size, None if self._continued else request)
        if text and number >= 0 and len(self._preparing) < _MAX_STATEMENTS:
            self._preparing[number] = text

    def _command(self, payload: bytes, digest: bytes) -> tuple[Info, bytes]:
        """The command, and the text that it prepares."""
        code, text = payload[0] if payload else 0, payload[1:]
        if code == _QUERY:
            return self._statement(text, digest), b""
        if code == _PREPARE:
            self._last_prepared = text  # may be executed before it is answered
            return Info(f"prepare {verb(text)}", shown(text), content=digest), text
        if code in (_EXECUTE, _BULK_EXECUTE) and len(text) >= 4:
            number = struct.unpack_from("<I", text)[0]
            last = number == _LAST_STATEMENT
            known = self._last_prepared if last else self._statements.get(number, b"?")
            return self._statement(known, digest), b""
        return Info(
            _NAMES.get(code, f"command {code}"),
            role="noise" if code in _NOISE else "request",
            content=digest,
            replied=code not in _UNANSWERED,
        ), b""

    def _statement(self, text: bytes, digest: bytes) -> Info:
        label = self._label(verb(text))
        return Info(label, shown(text), content=digest, refusable=works(label))

    def refusal(self, request: Info, data: bytes) -> Refusal | None:
        return refusal.of_mysql() if request.refusable else None

    def _label(self, verb: str) -> str:
        """A BEGIN commits what was done before it; where nothing was it changes nothing."""
        commits = verb == "BEGIN" and self._wrote
        self._wrote = verb not in _ENDS and (self._wrote or verb not in _KEEPS)
        return "COMMIT+BEGIN" if commits else verb

    def _of_a_file(self, length: int, digest: bytes) -> Info | None:
        """A packet of the file that a LOAD has asked for, whose end makes the request: what was
        asked before is carried out with it."""
        self._contents.update(digest)
        if length > 0:
            return None
        content, self._contents = self._contents.digest(), hashlib.blake2b(digest_size=16)
        self._loading, self._loaded = False, True
        return Info("LOAD data", content=content)

    def _further(self, length: int, payload: bytes) -> Info | None:
        """A packet that begins no command: of the log-in, or data that a command asked for."""
        if self._commands:
            return Info("data", role="noise", replied=False)
        if len(payload) >= 4 and length >= 32:
            capabilities = struct.unpack_from("<I", payload)[0]
            if capabilities & (_COMPRESS | _ZSTD) or (capabilities & _SSL and length == 32):
                raise FramingError("the connection is encrypted or compressed from here on")
        return Info("login", role="login")

    def server_frame(self, frame: Frame) -> None:
        previous, self._server_sequence = self._server_sequence, frame.head[3]
        # a reply begins with packet 1, unless the numbers of a longer one have come round to it
        begins = self._server_sequence == 1 and (previous != 0 or self._asked_since)
        begins, self._loaded = begins or self._loaded, False
        self._asked_since = False
        if self._commands and not begins:
            self.answer_more(frame.size)
            return
        oldest = self.open[0] if self.open else None
        self._loading = bool(self._commands) and frame.head[4:5] == _SEND_FILE
        self.answer_oldest(frame.size)
        text = self._preparing.pop(oldest, b"") if oldest is not None else b""
        if text and frame.head[4:5] == b"\0" and len(frame.head) >= 9:
            number = struct.unpack_from("<I", frame.head, 5)[0]
            if len(self._statements) < _MAX_STATEMENTS:
                self._statements[number] = text


def _packet_size(head: bytes) -> int | None:
    if len(head) < 4:
        return None
    return 4 + int.from_bytes(head[:3], "little")
