"""Small conversations of every protocol, byte by byte as the protocols' documents say.

Each is a list of turns: who speaks, the bytes, and the labels of the requests that are complete
with them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Turn:
    client: bool
    data: bytes
    labels: tuple[str, ...] = ()  # of counted requests only


def asks(data: bytes, *labels: str) -> Turn:
    return Turn(True, data, labels)


def says(data: bytes) -> Turn:
    return Turn(False, data)


def pg(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def pg_startup(code: int = 196608, body: bytes = b"user\0me\0\0") -> bytes:
    return struct.pack("!ii", len(body) + 8, code) + body


READY = pg(b"Z", b"I")
PG_LOGIN = [
    asks(struct.pack("!ii", 8, 80877103)),
    says(b"N"),
    asks(pg_startup()),
    says(pg(b"R", struct.pack("!i", 3))),
    asks(pg(b"p", b"secret\0")),
    says(pg(b"R", struct.pack("!i", 0)) + pg(b"S", b"a\0b\0") + READY),
]


def pg_extended(text: bytes, *values: bytes) -> bytes:
    data = pg(b"P", b"\0" + text + b"\0\0\0")
    for value in values:
        data += pg(b"B", b"\0\0" + value) + pg(b"E", b"\0\0\0\0\0")
    return data + pg(b"S")


POSTGRES = [
    *PG_LOGIN,
    asks(pg(b"Q", b"BEGIN\0"), "BEGIN"),
    says(pg(b"C", b"BEGIN\0") + READY),
    asks(pg_extended(b"INSERT INTO t VALUES ($1)", b"1", b"22"), "INSERTx2"),
    says(pg(b"1") + pg(b"2") + pg(b"C", b"INSERT 0 1\0") * 2 + READY),
    asks(pg(b"Q", b"-- why\n/* how */ copy t from stdin\0"), "COPY"),
    says(pg(b"G", b"\0\0\0")),
    asks(pg(b"d", b"1\n") + pg(b"d", b"2\n") + pg(b"c"), "COPY data"),
    says(pg(b"C", b"COPY 2\0") + READY),
    asks(pg(b"Q", b"COMMIT\0") + pg(b"Q", b"SELECT 1\0"), "COMMIT", "SELECT"),
    says(READY + pg(b"D", b"x" * 300) + READY),
    # psycopg's executemany: a Flush that nothing is asked with follows the Sync
    asks(pg_extended(b"INSERT INTO t VALUES ($1)", b"1", b"22") + pg(b"H"), "INSERTx2"),
    says(pg(b"1") + (pg(b"2") + pg(b"C", b"INSERT 0 1\0")) * 2 + READY),
    asks(pg(b"Q", b"COMMIT\0"), "COMMIT"),
    says(pg(b"C", b"COMMIT\0") + READY),
    # a statement is described before it is executed
    asks(pg(b"P", b"s\0UPDATE t\0\0\0") + pg(b"D", b"Ss\0") + pg(b"H"), "prepare UPDATE"),
    says(pg(b"1") + pg(b"t", b"\0\0") + pg(b"n")),
    asks(pg(b"B", b"\0s\0") + pg(b"E", b"\0\0\0\0\0") + pg(b"S"), "UPDATE"),
    says(pg(b"2") + pg(b"C", b"UPDATE 1\0") + READY),
    asks(pg(b"X")),
]


def my(sequence: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([sequence]) + payload


OK = b"\0\0\0\2\0\0\0"
MYSQL = [
    says(my(0, b"\x0a10.11\0" + b"x" * 30)),
    asks(my(1, struct.pack("<I", 0x200) + b"y" * 40)),
    says(my(2, OK)),
    asks(my(0, b"\x03insert into t values (1)"), "INSERT"),
    says(my(1, OK)),
    asks(my(0, b"\x16UPDATE t SET a=?"), "prepare UPDATE"),
    says(my(1, b"\0" + struct.pack("<I", 7) + b"\0" * 7)),
    asks(my(0, b"\x17" + struct.pack("<I", 7) + b"\0\1\0\0\0"), "UPDATE"),
    says(my(1, OK)),
    asks(my(0, b"\x16INSERT") + my(0, b"\x17\xff\xff\xff\xff\0"), "prepare INSERT", "INSERT"),
    says(my(1, b"\0" + struct.pack("<I", 8) + b"\0" * 7) + my(2, b"parameter") + my(1, OK)),
    asks(my(0, b"\x03SELECT 1"), "SELECT"),
    says(my(1, b"\1") + my(2, b"column") + my(3, b"row")),
    asks(my(0, b"\x03COMMIT"), "COMMIT"),
    says(my(1, OK)),
    asks(my(0, b"\x01")),
]


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


REDIS = [
    asks(command(b"HELLO", b"3")),
    says(b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n"),
    asks(command(b"SET", b"k", b"v" * 500), "SET"),
    says(b"+OK\r\n"),
    asks(command(b"MULTI") + command(b"INCRBY", b"n", b"2") + command(b"EXEC"), *"MIE"),
    says(b"+OK\r\n+QUEUED\r\n*1\r\n:2\r\n"),
    asks(b"PING\r\n"),
    says(b">2\r\n+invalidate\r\n_\r\n+PONG\r\n"),
    asks(command(b"LRANGE", b"l", b"0", b"-1"), "LRANGE"),
    says(b"*3\r\n$1\r\na\r\n$-1\r\n*2\r\n:1\r\n$0\r\n\r\n"),
    asks(command(b"GET", b"k"), "GET"),
    says(b"|1\r\n+ttl\r\n:3\r\n$2\r\nhi\r\n"),
]
REDIS[4] = asks(REDIS[4].data, "MULTI", "INCRBY", "EXEC")

HTTP = [
    asks(b"POST /rows?token=s HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", ""),
    asks(b"[1,2]", "POST /rows"),
    says(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    asks(
        b"PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3;ext=1\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nTrailer: t\r\n\r\n",
        "PUT /x",
    ),
    says(b"HTTP/1.1 204 No Content\r\n\r\n"),
    asks(b"HEAD /y HTTP/1.1\r\n\r\nGET /z HTTP/1.1\r\n\r\n", "HEAD /y", "GET /z"),
    says(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
    says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"),
    asks(b"DELETE /rows HTTP/1.1\r\ncontent-length: 0\r\n\r\n", "DELETE /rows"),
    says(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
]
HTTP[0] = asks(HTTP[0].data)


def kafka(key: int, correlation: int, body: bytes) -> bytes:
    data = struct.pack("!hhih", key, 3, correlation, 2) + b"me" + body
    return struct.pack("!i", len(data)) + data


def kafka_reply(correlation: int, body: bytes) -> bytes:
    return struct.pack("!ii", len(body) + 4, correlation) + body


KAFKA = [
    asks(kafka(18, 1, b"")),
    says(kafka_reply(1, b"versions")),
    asks(kafka(3, 2, b"topics")),
    says(kafka_reply(2, b"where")),
    asks(kafka(22, 3, b"id"), "InitProducerId"),
    says(kafka_reply(3, b"7")),
    asks(kafka(0, 4, b"r" * 300) + kafka(0, 5, b"s" * 9000), "Produce", "Produce"),
    says(kafka_reply(4, b"ok") + kafka_reply(5, b"ok")),
    asks(kafka(26, 6, b"end"), "EndTxn"),
    says(kafka_reply(6, b"ok")),
]


def amqp(kind: int, channel: int, body: bytes) -> bytes:
    return struct.pack("!BHI", kind, channel, len(body)) + body + b"\xce"


def method(channel: int, group: int, number: int, body: bytes = b"") -> bytes:
    return amqp(1, channel, struct.pack("!HH", group, number) + body)


def publish(body: bytes) -> bytes:
    header = amqp(2, 1, struct.pack("!HHQH", 60, 0, len(body), 0))
    half = len(body) // 2
    pieces = [body[:half], body[half:]] if half else [body] if body else []
    return method(1, 60, 40, b"\0\0\0\0\0") + header + b"".join(amqp(3, 1, p) for p in pieces)


AMQP = [
    asks(b"AMQP\x00\x00\x09\x01"),
    says(method(0, 10, 10, b"start")),
    asks(method(0, 10, 11, b"start-ok")),
    says(method(0, 10, 30, b"tune")),
    asks(method(0, 10, 31) + method(0, 10, 40)),
    says(method(0, 10, 41)),
    asks(method(1, 20, 10), "channel.open"),
    says(method(1, 20, 11)),
    asks(publish(b"unconfirmed"), "basic.publish"),
    asks(method(1, 85, 10, b"\0"), "confirm.select"),
    says(method(1, 85, 11)),
    asks(publish(b"one") + amqp(8, 0, b"") + publish(b""), "basic.publish", "basic.publish"),
    says(amqp(8, 0, b"") + method(1, 60, 80, struct.pack("!QB", 1, 0))),
    asks(publish(b"three"), "basic.publish"),
    says(method(1, 60, 80, struct.pack("!QB", 3, 1))),
]

NATS = [
    says(b'INFO {"server_id":"x"}\r\n'),
    asks(b'CONNECT {"verbose":false}\r\nPING\r\n'),
    says(b"PONG\r\n"),
    asks(b"SUB _INBOX.abc.* 1\r\n", "SUB _INBOX"),
    asks(b"PUB orders _INBOX.abc.1 5\r\nhello\r\n", "PUB orders"),
    says(b"MSG _INBOX.abc.1 1 4\r\nack1\r\n"),
    asks(b"HPUB orders _INBOX.abc.2 12 16\r\nNATS/1.0\r\n\r\nbody\r\n", "PUB orders"),
    says(b"PING\r\n" + b"HMSG _INBOX.abc.2 1 12 16\r\nNATS/1.0\r\n\r\nack2\r\n"),
    asks(b"PONG\r\n"),
    asks(b"PUB quiet 0\r\n\r\n", "PUB quiet"),
]

SAMPLES = {
    "amqp": AMQP,
    "http": HTTP,
    "kafka": KAFKA,
    "mysql": MYSQL,
    "nats": NATS,
    "postgres": POSTGRES,
    "redis": REDIS,
}

names = st.sampled_from(sorted(SAMPLES))


def pieces(draw: st.DrawFn, data: bytes) -> Iterator[bytes]:
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(data) - 1)), max_size=6)))
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        yield data[start:end]


@st.composite
def split_turns(draw: st.DrawFn) -> tuple[str, list[Turn]]:
    """A conversation whose turns come in arbitrary pieces. A connection's very first bytes, by
    which its protocol is told, come whole."""
    name = draw(names)
    turns = []
    for number, turn in enumerate(SAMPLES[name]):
        if number == 0:
            turns.append(turn)
        else:
            turns += [Turn(turn.client, piece) for piece in pieces(draw, turn.data)]
    return name, turns
