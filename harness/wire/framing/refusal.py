"""How a server answers a request that it does not carry out, on a connection that stays."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from bettong.harness.wire.framing.bulk_answer import is_bulk, rejected


@dataclass(frozen=True, slots=True)
class Refusal:
    """What becomes of a request that is refused.

    Attributes:
        error: what the client is told, in the protocol's words.
        answer: what it is sent, made of the server's reply to what was asked instead.
        instead: what the server is asked, so that it is where such an error leaves it: its
            transaction has failed. Empty: it hears nothing, and the connection is closed.
    """

    error: str
    answer: Callable[[bytes], bytes]
    instead: bytes = b""


_READY = 6
"""Bytes of PostgreSQL's ReadyForQuery, with which its reply ends."""


def of_postgres(commits: bool, serializable: bool) -> Refusal:
    """A statement that fails leaves its transaction failed, a commit that fails none."""
    code, text = "40P01", "deadlock detected"
    if serializable:
        code, text = "40001", "could not serialize access due to concurrent update"
    fields = f"SERROR\0VERROR\0C{code}\0M{text}\0\0".encode()
    error = b"E" + struct.pack("!i", 4 + len(fields)) + fields
    asked = b"ROLLBACK\0" if commits else b"refused\0"
    query = b"Q" + struct.pack("!i", 4 + len(asked)) + asked
    return Refusal(f"{code} ({text})", lambda reply: error + reply[-_READY:], query)


def of_mysql() -> Refusal:
    """A deadlock ends its transaction, whichever statement meets it."""
    text = b"Deadlock found when trying to get lock; try restarting transaction"
    error = b"\xff" + struct.pack("<H", 1213) + b"#40001" + text
    packet = struct.pack("<I", len(error))[:3] + b"\x01" + error
    asked = b"\x03ROLLBACK"
    query = struct.pack("<I", len(asked))[:3] + b"\0" + asked
    return Refusal("1213 (deadlock)", lambda _: packet, query)


def of_redis(executes: bool) -> Refusal:
    """A server that has become a replica takes no writes; of a transaction it keeps nothing."""
    text = "READONLY You can't write against a read only replica."
    if executes:
        text = f"EXECABORT Transaction discarded because of: {text}"
    asked = b"DISCARD" if executes else b"REFUSED"
    return Refusal(
        text.partition(" ")[0],
        lambda _: f"-{text}\r\n".encode(),
        b"*1\r\n$%d\r\n%b\r\n" % (len(asked), asked),
    )


def of_http(label: str, request: bytes) -> Refusal:
    """A service that is asked too much: RFC 6585, 4; where it says so of each item, it says that
    all is well of the whole."""
    if is_bulk(label):
        items = rejected(request)
        return Refusal("200 (429 for each item)", lambda _: items)
    head = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    answer = f"{head}Connection: close\r\n\r\n".encode()
    return Refusal("429 (Too Many Requests)", lambda _: answer)
