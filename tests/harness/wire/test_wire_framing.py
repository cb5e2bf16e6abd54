"""Requests and replies distinguished, however the bytes are split, cut off or wrong."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_samples import (
    AMQP,
    HTTP,
    POSTGRES,
    READY,
    SAMPLES,
    Turn,
    amqp,
    asks,
    kafka,
    method,
    my,
    names,
    pg,
    pg_startup,
    publish,
    says,
    split_turns,
)

from bettong.harness.queries.faults.read_only_requests import harmless
from bettong.harness.wire.framing.adaptive import AdaptiveFraming
from bettong.harness.wire.framing.base import Info
from bettong.harness.wire.framing.paired import shown, verb


class Framed:
    """What a framing said of a conversation."""

    def __init__(self, turns: list[Turn], protocol: str | None = None) -> None:
        self.framing = AdaptiveFraming(protocol)
        self.labels: list[str] = []
        self.requests = 0
        self.due: set[int] = set()
        self.answered: list[int] = []
        self.client_bytes = self.server_bytes = 0
        for turn in turns:
            if turn.client:
                self._client(turn.data)
            else:
                self._server(turn.data)

    def _client(self, data: bytes) -> None:
        for part in self.framing.client(data):
            assert part.size > 0
            self.client_bytes += part.size
            if part.request is not None:
                if part.request.replied:
                    self.due.add(self.requests)
                if part.request.role == "request":
                    self.labels.append(part.request.label)
                self.requests += 1

    def _server(self, data: bytes) -> None:
        for answer in self.framing.server(data):
            assert answer.size > 0
            self.server_bytes += answer.size
            assert all(number < self.requests for number in answer.to)
            self.answered += answer.to


def total(turns: list[Turn], client: bool) -> int:
    return sum(len(turn.data) for turn in turns if turn.client is client)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_request_is_reported_and_answered(name: str) -> None:
    turns = SAMPLES[name]
    reported = Framed(turns)
    assert reported.framing.problem is None
    assert reported.framing.recognised == name
    assert reported.labels == [label for turn in turns for label in turn.labels]
    assert reported.client_bytes == total(turns, client=True)
    assert reported.server_bytes == total(turns, client=False)
    assert sorted(reported.answered) == sorted(reported.due)


@given(split_turns())
def test_how_bytes_are_split_changes_nothing(sample: tuple[str, list[Turn]]) -> None:
    name, turns = sample
    whole, split = Framed(SAMPLES[name]), Framed(turns)
    assert split.framing.problem is None
    assert split.labels == whole.labels
    assert split.answered == whole.answered
    assert (split.client_bytes, split.server_bytes) == (whole.client_bytes, whole.server_bytes)


@given(names, st.data())
def test_requests_of_a_conversation_that_is_cut_off_are_a_prefix(
    name: str, data: st.DataObject
) -> None:
    turns = SAMPLES[name]
    last = data.draw(st.integers(0, len(turns) - 1))
    kept = data.draw(st.integers(0, len(turns[last].data)))
    cut = [*turns[:last], Turn(turns[last].client, turns[last].data[:kept])]
    reported, whole = Framed(cut, name), Framed(turns)
    assert reported.framing.problem is None
    assert reported.labels == whole.labels[: len(reported.labels)]
    assert reported.answered == whole.answered[: len(reported.answered)]


@given(names, st.lists(st.tuples(st.booleans(), st.binary(min_size=1, max_size=200)), max_size=12))
def test_nonsense_never_raises_and_loses_no_byte(
    name: str, turns: list[tuple[bool, bytes]]
) -> None:
    reported = Framed([Turn(*turn) for turn in turns], name)
    if reported.framing.problem is not None:
        last_client = [data for client, data in turns if client]
        last_server = [data for client, data in turns if not client]
        assert reported.client_bytes <= sum(map(len, last_client))
        assert reported.server_bytes <= sum(map(len, last_server))


@given(names, st.data())
def test_a_flipped_byte_never_raises(name: str, data: st.DataObject) -> None:
    turns = list(SAMPLES[name])
    which = data.draw(st.integers(0, len(turns) - 1))
    at = data.draw(st.integers(0, len(turns[which].data) - 1))
    flipped = bytearray(turns[which].data)
    flipped[at] ^= data.draw(st.integers(1, 255))
    turns[which] = Turn(turns[which].client, bytes(flipped))
    reported = Framed(turns, name)
    assert reported.client_bytes <= total(turns, client=True)
    assert reported.server_bytes <= total(turns, client=False)


HUGE = {
    "amqp": b"AMQP\x00\x00\x09\x01" + struct.pack("!BHI", 1, 1, 1 << 28),
    "http": b"POST / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n",
    "kafka": struct.pack("!ihhi", 1 << 30, 0, 3, 1),
    "mysql": b"\xff\xff\xff\x00\x03",
    "nats": b"PUB x 1000000000\r\n",
    "postgres": pg_startup() + b"Q" + struct.pack("!i", (1 << 31) - 1),
    "redis": b"*1\r\n$1000000000\r\n",
}
ENDLESS = {  # what never tells its length
    "http": b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000,
    "nats": b"PUB " + b"x" * 200_000,
    "redis": b"*" + b"1" * 200_000,
}


@pytest.mark.parametrize("name", sorted(HUGE))
def test_a_huge_message_is_not_kept(name: str) -> None:
    framing = AdaptiveFraming(name)
    framing.client(HUGE[name])
    block = b"x" * (1 << 20)
    tracemalloc.start()
    for _ in range(14):
        framing.client(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20
    assert framing.problem is None


@pytest.mark.parametrize("name", sorted(ENDLESS))
def test_what_never_tells_its_length_is_given_up(name: str) -> None:
    reported = Framed([asks(ENDLESS[name]), says(b"?"), asks(b"x")], name)
    assert reported.framing.problem is not None
    assert "no length" in reported.framing.problem
    assert reported.client_bytes == len(ENDLESS[name]) + 1


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("postgres", pg_startup() + b"Q" + struct.pack("!i", 3)),
        ("postgres", pg_startup() + b"Q" + struct.pack("!i", -1)),
        ("kafka", struct.pack("!ihhi", -5, 0, 3, 1)),
        ("kafka", struct.pack("!ihhi", 2, 0, 3, 1)),
        ("kafka", struct.pack("!ihhi", 7, 0, 3, 1)),
        ("redis", b"*1\r\n$9999999999999\r\n"),
        ("redis", b"*1\r\n$x\r\n"),
        ("redis", b"*99999999999\r\n"),
        ("redis", b"*1\r\n" * 100),
        ("http", b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
        ("http", b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        ("http", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("nats", b"PUB x -1\r\n"),
        ("nats", b"PUB x 99999999999999\r\n"),
        ("amqp", b"AMQP\x00\x00\x09\x01" + struct.pack("!BHI", 1, 0, 1 << 31)),
        ("amqp", b"AMQP\x00\x01\x00\x00"),
    ],
)
def test_a_length_that_makes_no_sense_is_given_up(name: str, data: bytes) -> None:
    reported = Framed([asks(data)], name)
    assert reported.framing.problem is not None
    assert reported.framing.problem.startswith(f"{name}: ")
    assert reported.framing.recognised == "opaque"
    assert reported.client_bytes == len(data)


def test_an_encrypted_connection_goes_on_by_direction_changes() -> None:
    turns = [
        asks(struct.pack("!ii", 8, 80877103)),
        says(b"S"),
        asks(b"\x16\x03\x01hello"),
        says(b"\x16\x03\x03hello"),
        asks(b"\x17\x03\x03query"),
        says(b"\x17\x03\x03rows"),
    ]
    reported = Framed(turns)
    assert reported.framing.problem == "postgres: the connection is encrypted from here on"
    assert reported.labels == ["bytes", "bytes"]
    assert reported.answered[-2:] == [1, 2]


def test_an_unknown_protocol_is_told_by_direction_changes() -> None:
    reported = Framed([asks(b"a"), asks(b"b"), says(b"1"), says(b"2"), asks(b"c"), says(b"3")])
    assert reported.framing.recognised == "opaque"
    assert reported.labels == ["bytes", "bytes"]
    assert reported.answered == [0, 1]


def contents(turns: list[Turn], protocol: str) -> list[bytes | None]:
    framing = AdaptiveFraming(protocol)
    found = []
    for turn in turns:
        if turn.client:
            reported = [part.request for part in framing.client(turn.data)]
            found += [request.content for request in reported if request is not None]
        else:
            framing.server(turn.data)
    return found


def test_content_leaves_out_what_differs_between_equal_requests() -> None:
    assert contents([asks(kafka(0, 1, b"x"))], "kafka") == contents(
        [asks(kafka(0, 99, b"x"))], "kafka"
    )
    assert contents([asks(kafka(0, 1, b"x"))], "kafka") != contents(
        [asks(kafka(0, 1, b"y"))], "kafka"
    )
    one, two = (my(0, b"\x17" + struct.pack("<I", n) + b"x" * 9000) for n in (1, 2))
    assert contents([asks(one)], "mysql") == contents([asks(two)], "mysql")
    one, two = (
        b"POST /r HTTP/1.1\r\nX-Id: %s\r\nContent-Length: 1\r\n\r\nx" % i for i in (b"1", b"2")
    )
    assert contents([asks(one)], "http") == contents([asks(two)], "http")
    one, two = (b"PUB s _INBOX.%s 1\r\nx\r\n" % i for i in (b"1", b"2"))
    assert contents([asks(one)], "nats") == contents([asks(two)], "nats")
    one, two = (pg_startup() + pg(b"Q", b"INSERT %d\0" % i) for i in (1, 2))
    assert contents([asks(one)], "postgres") != contents([asks(two)], "postgres")


def test_a_copy_that_fails_half_way_does_not_shift_the_replies() -> None:
    turns = [
        *POSTGRES[:6],
        asks(pg(b"Q", b"COPY t FROM STDIN\0")),
        says(pg(b"G", b"\0\0\0")),
        asks(pg(b"d", b"bad\n")),
        says(pg(b"E", b"oops\0") + READY),
        asks(pg(b"d", b"more\n") + pg(b"c")),
        asks(pg(b"Q", b"SELECT 1\0")),
        says(READY),
    ]
    reported = Framed(turns)
    assert reported.labels == ["COPY", "COPY data", "SELECT"]
    assert reported.answered == [0, 1, 2, 3, 5]


# What psycopg 3.3 and PostgreSQL 15 said to each other at an executemany of two rows; recorded.
EXECUTEMANY = [
    asks(
        b"P\0\0\0\x32_pg3_0\0INSERT INTO t VALUES ($1,$2)\0\0\x02\0\0\0\0\0\0\0\x15"
        b"B\0\0\0\x24\0_pg3_0\0\0\x02\0\0\0\x01\0\x02\0\0\0\x02a0\0\0\0\x02\0\0\0\x01\0\0"
        b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0"
        b"B\0\0\0\x24\0_pg3_0\0\0\x02\0\0\0\x01\0\x02\0\0\0\x02a1\0\0\0\x02\0\x01\0\x01\0\0"
        b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04H\0\0\0\x04"
    ),
    says(
        b"1\0\0\0\x042\0\0\0\x04n\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0"
        b"2\0\0\0\x04n\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0Z\0\0\0\x05T"
    ),
    asks(b"Q\0\0\0\x0bCOMMIT\0"),
    says(b"C\0\0\0\x0bCOMMIT\0Z\0\0\0\x05I"),
]


def test_a_flush_that_asks_nothing_is_no_request() -> None:
    reported = Framed([*POSTGRES[:6], *EXECUTEMANY])
    assert reported.labels == ["INSERTx2", "COMMIT"]
    assert reported.answered == [0, 1, 2, 3, 5]  # 4 is the Flush
    assert reported.due == set(reported.answered)


def test_an_error_ends_what_was_flushed_and_skips_the_rest_up_to_sync() -> None:
    first, second = (
        pg(b"P", b"\0%s\0\0\0" % text) + pg(b"D", b"S\0") + pg(b"H")
        for text in (b"SELEKT 1", b"SELECT 2")
    )
    turns = [*POSTGRES[:6], asks(first), says(pg(b"E", b"syntax\0")), asks(second + pg(b"S"))]
    reported = Framed([*turns, says(READY), asks(pg(b"Q", b"SELECT 3\0")), says(READY)])
    assert reported.labels == ["prepare SELEKT", "prepare SELECT", "Sync", "SELECT"]
    assert reported.answered == [0, 1, 2, 3, 4, 5, 6]


def test_a_response_without_a_length_is_complete_with_its_head() -> None:
    reported = Framed(
        [HTTP[6], says(b"HTTP/1.0 200 OK\r\n\r\n"), says(b"HTTP/1.0 200 OK\r\n\r\nabc")]
    )
    assert reported.answered == [0, 1]
    assert reported.server_bytes == 19 * 2 + 3


def test_a_statement_longer_than_a_packet_is_one_request() -> None:
    first = b"\x03INSERT " + b"x" * (0xFFFFFF - 8)
    reported = Framed([asks(my(0, first) + my(1, b"rest")), says(my(1, b"\0"))], "mysql")
    assert reported.labels == ["INSERT"]
    assert reported.answered == [0]


def test_rows_whose_numbers_come_round_are_no_new_reply() -> None:
    rows = b"".join(my(number % 256, b"row") for number in range(1, 600))
    turns = [asks(my(0, b"\x03SELECT 1") + my(0, b"\x03COMMIT")), says(rows), says(my(1, b"\0"))]
    reported = Framed(turns, "mysql")
    assert reported.labels == ["SELECT", "COMMIT"]
    assert reported.answered == [0, 1]


@pytest.mark.parametrize("packets", [255, 256, 257, 512])
def test_however_many_rows_a_reply_has_the_next_one_is_of_the_next_request(packets: int) -> None:
    rows = b"".join(my(number % 256, b"row") for number in range(1, packets + 1))
    turns = [asks(my(0, b"\x03SELECT 1")), says(rows)]
    for statement in (b"\x03INSERT", b"\x03COMMIT"):
        turns += [asks(my(0, statement)), says(my(1, b"\0"))]
    reported = Framed(turns, "mysql")
    assert reported.labels == ["SELECT", "INSERT", "COMMIT"]
    assert reported.answered == [0, 1, 2]


def test_a_file_that_the_server_asks_for_is_no_command_however_long_it_is() -> None:
    file = b"".join(my(number % 256, b"dataxxxxxxxx") for number in range(2, 300))
    turns = [
        asks(my(0, b"\x03LOAD DATA LOCAL")),
        says(my(1, b"\xfbfile")),
        asks(file + my(300 % 256, b"")),
        says(my(301 % 256, b"\0")),
        asks(my(0, b"\x03COMMIT")),
        says(my(1, b"\0")),
    ]
    reported = Framed(turns, "mysql")
    assert reported.labels == ["LOAD", "LOAD data", "COMMIT"]
    assert reported.answered == [0, 1, 2]


def test_a_file_is_loaded_when_it_has_come() -> None:
    """The reply to the LOAD itself only asks for it: whoever loses that has loaded nothing."""
    turns = [
        asks(my(0, b"\x03LOAD DATA LOCAL")),
        says(my(1, b"\xfbfile")),
        asks(my(2, b"rows") + my(3, b"")),
    ]
    assert Framed(turns, "mysql").answered == [0]
    assert Framed([*turns, says(my(4, b"\0"))], "mysql").answered == [0, 1]
    refused = [*turns[:1], says(my(1, b"\xff")), asks(my(0, b"\x03COMMIT")), says(my(1, b"\0"))]
    assert Framed(refused, "mysql").answered == [0, 1]


@pytest.mark.parametrize(
    ("statements", "labels"),
    [
        (["BEGIN", "INSERT", "COMMIT", "BEGIN"], ["BEGIN", "INSERT", "COMMIT", "BEGIN"]),
        (["INSERT", "BEGIN", "INSERT"], ["INSERT", "COMMIT+BEGIN", "INSERT"]),
        (["SELECT 1", "BEGIN", "BEGIN"], ["SELECT", "BEGIN", "BEGIN"]),
        (["BEGIN", "INSERT", "BEGIN"], ["BEGIN", "INSERT", "COMMIT+BEGIN"]),
    ],
)
def test_a_transaction_of_mysql_that_begins_ends_the_one_before(
    statements: list[str], labels: list[str]
) -> None:
    """What it commits is there from then on: it is no request that changes nothing."""
    turns = [asks(my(0, b"\x03" + text.encode())) for text in statements]
    assert Framed(turns, "mysql").labels == labels
    assert not harmless("COMMIT+BEGIN")


def test_a_channel_that_is_opened_again_counts_its_confirms_for_itself() -> None:
    opened = [asks(method(1, 20, 10)), says(method(1, 20, 11))]
    closed = [asks(method(1, 20, 40)), says(method(1, 20, 41))]
    confirmed = [
        asks(method(1, 85, 10, b"\0")),
        says(method(1, 85, 11)),
        asks(publish(b"one")),
        says(method(1, 60, 80, struct.pack("!QB", 1, 0))),
    ]
    turns = [*AMQP[:6], *opened, *confirmed, *closed, *opened, asks(publish(b"no"))]
    reported = Framed([*turns, *confirmed])
    assert reported.framing.problem is None
    assert sorted(reported.answered) == sorted(reported.due)


LINE = b"SET k " + b"v" * 70_000 + b"\r\n"


@pytest.mark.parametrize("first", [len(LINE), 1000, 65_535, 65_536, 65_537])
def test_a_line_that_is_too_long_is_given_up_however_it_is_split(first: int) -> None:
    reported = Framed([asks(LINE[:first]), asks(LINE[first:] + b"GET k\r\n")], "redis")
    assert reported.framing.problem == "redis: no length within 65536 bytes"
    assert reported.labels == ["bytes"]
    assert reported.client_bytes == len(LINE) + 7


TOLD = b"POST /rows HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"
DONE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@given(st.integers(0, len(TOLD) + 9), st.integers(0, len(DONE) + 9))
def test_what_came_before_nonsense_is_told_however_it_is_split(asked: int, said: int) -> None:
    data, answer = TOLD + b"nonsense\n\n", DONE + b"nonsense\n\n"
    turns = [asks(data[:asked]), asks(data[asked:]), says(answer[:said]), says(answer[said:])]
    reported = Framed([turn for turn in turns if turn.data], "http")
    assert reported.labels == ["POST /rows", "bytes"]
    reported = Framed([asks(TOLD), *(turn for turn in turns[2:] if turn.data)], "http")
    assert (reported.labels, reported.answered) == (["POST /rows"], [0])


@pytest.mark.parametrize(
    ("statement", "reported"),
    [
        (b"SET NAMES utf8mb4", "SET SESSION"),
        (b"set autocommit = 0", "SET SESSION"),
        (b"SET AUTOCOMMIT=1", "SET"),
        (b"SET autocommit=TRUE", "SET"),
        (b"SET @@session.autocommit := @before", "SET"),
        (b"SET autocommit= OFF", "SET SESSION"),
        (b"SET autocommit = false, sql_mode=''", "SET SESSION"),
        (b"SET @@GLOBAL.read_only = 1", "SET"),
        (b"/* a */ SET GLOBAL x = 1", "SET"),
        (b"-- a\ninsert into t", "INSERT"),
        (b"SET STATEMENT max_statement_time = 9 FOR INSERT INTO t VALUES (1)", "SET"),
        (b"SET @written = write_rows(1)", "SET"),
        (b"BEGIN;", "BEGIN"),
        (b"begin; -- ready\n", "BEGIN"),
        (b"SET a = 1; SHOW b", "SET SESSION"),
    ],
)
def test_what_only_concerns_the_session_has_a_label_of_its_own(
    statement: bytes, reported: str
) -> None:
    assert verb(statement) == reported


@pytest.mark.parametrize(
    ("statement", "reported"),
    [
        (b"BEGIN; INSERT INTO t VALUES ('a;b'); COMMIT", "BEGIN+INSERT"),
        (b"BEGIN;/* a */ INSERT INTO t VALUES (1); COMMIT;", "BEGIN+INSERT"),
        (b"SET a = 1; BEGIN; DELETE FROM t", "SET SESSION+BEGIN+DELETE"),
        (b"SHOW a; COMMIT", "SHOW+COMMIT"),
        (b"BEGIN NOT ATOMIC INSERT INTO t VALUES (1); END", "BEGIN+END"),
    ],
)
def test_what_changes_something_is_not_hidden_by_a_statement_before_it(
    statement: bytes, reported: str
) -> None:
    """Requests that change nothing are not hit as others are; this one does."""
    assert verb(statement) == reported
    assert not harmless(verb(statement))


def infos(data: bytes, protocol: str) -> list[Info]:
    parts = AdaptiveFraming(protocol).client(data)
    return [part.request for part in parts if part.request and part.request.role == "request"]


def posted(*bodies: str) -> list[str]:
    head = "POST /rpc HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s"
    data = "".join(head % (len(body), body) for body in bodies)
    return [info.alike for info in infos(data.encode(), "http")]


def test_what_is_asked_for_at_one_target_is_told_by_the_beginning_of_its_body() -> None:
    mark, row, other, longer = posted(
        '{"call": "mark", "batch": 1}',
        '{"call": "insert", "rows": [{"id": "m/000007", "value": 12}]}',
        '{"call": "insert", "rows": [{"id": "m/000017", "value": 9}]}',
        '{"call": "insert", "rows": [' + '{"id": "m/000017", "value": 9}, ' * 400,
    )
    assert row == other
    assert len({mark, row, longer}) == 3
    assert posted("a" * 200 + "b", "a" * 200 + "c")[0] == posted("a" * 200)[0]


def test_what_is_asked_for_at_one_path_is_told_by_its_query() -> None:
    targets = ("/api?do=mark&batch=1", "/api?do=mark&batch=12", "/api?do=insert", "/api")
    data = "".join(f"POST {target} HTTP/1.1\r\n\r\n" for target in targets).encode()
    mark, again, insert, plain = (info.alike for info in infos(data, "http"))
    assert mark == again
    assert len({mark, insert, plain}) == 3


def produced(version: int, client: bytes, body: bytes) -> str:
    tagged = b"\0" if version >= 9 else b""
    data = struct.pack("!hhih", 0, version, 7, len(client)) + client + tagged + body
    (info,) = infos(struct.pack("!i", len(data)) + data, "kafka")
    return info.detail


def test_a_produce_shows_the_topic_that_it_is_for() -> None:
    asks_and_waits = struct.pack("!hi", -1, 30_000)
    named = struct.pack("!ih", 1, 4) + b"rows" + struct.pack("!i", 1) + b"records" * 2000
    assert produced(8, b"me", struct.pack("!h", -1) + asks_and_waits + named) == "Produce rows"
    assert produced(3, b"", struct.pack("!h", 2) + b"tx" + asks_and_waits + named) == "Produce rows"
    flexible = b"\x02" + b"\x05rows" + b"\x02 and records"
    assert produced(9, b"me", b"\0" + asks_and_waits + flexible) == "Produce rows"
    assert produced(12, b"me", b"\x03tx" + asks_and_waits + flexible) == "Produce rows"
    by_id = b"\x02" + bytes(range(16)) + b"\x02 and records"
    assert produced(13, b"me", b"\0" + asks_and_waits + by_id) == "Produce AAECAwQFBgcICQoLDA0ODw"
    assert produced(9, b"me", b"\0" + asks_and_waits + b"\x01") == ""
    assert produced(8, b"me", b"\xff") == ""


def test_what_is_asked_for_at_one_path_is_told_by_the_field_that_names_it() -> None:
    def post(action: str) -> bytes:
        fields = f"X-Amz-Target: {action}\r\nX-Amz-Date: 20261127T0659\r\nContent-Length: 2"
        return f"POST / HTTP/1.1\r\n{fields}\r\n\r\n{{}}".encode()

    put, again, get = infos(b"".join(map(post, ("Db.Put", "Db.Put", "Db.Get"))), "http")
    assert put.alike == again.alike
    assert put.alike != get.alike


def test_records_that_nobody_confirms_are_not_waited_for() -> None:
    named = struct.pack("!ih", 1, 4) + b"rows" + struct.pack("!i", 1) + b"records"
    for acks, replied in ((0, False), (1, True), (-1, True)):
        body = struct.pack("!hhi", -1, acks, 30_000) + named
        data = struct.pack("!hhih", 0, 8, 7, 2) + b"me" + body
        asked = struct.pack("!i", len(data)) + data
        (info,) = infos(asked, "kafka")
        assert (info.detail, info.replied) == ("Produce rows", replied)
    assert Framed([asks(kafka(3, 1, b"x")), *[asks(asked)] * 3], "kafka").due == {0, 1, 2, 3}


def test_who_asks_does_not_hide_what_is_asked() -> None:
    """A comment before a statement is longer than what is shown of it."""
    comment = b"/* " + b"app=orders,trace=1 " * 20 + b"*/ "
    details = {shown(comment + text) for text in (b"INSERT INTO rows", b"INSERT INTO marks")}
    assert details == {"INSERT INTO rows", "INSERT INTO marks"}


def test_what_a_message_is_published_to_is_shown() -> None:
    def publish(exchange: bytes, key: bytes) -> bytes:
        names = b"".join(bytes([len(name)]) + name for name in (exchange, key))
        header = struct.pack("!HHQH", 60, 0, 0, 0)
        return amqp(1, 1, struct.pack("!HHH", 60, 40, 0) + names + b"\0") + amqp(2, 1, header)

    declare = amqp(1, 1, struct.pack("!HHH", 50, 10, 0) + b"\x04rows\0" + bytes(4))
    data = b"AMQP\x00\x00\x09\x01" + declare + publish(b"", b"rows") + publish(b"logs", b"a.b")
    assert [info.detail for info in infos(data, "amqp")] == [
        "queue.declare rows",
        "basic.publish rows",
        "basic.publish logs a.b",
    ]
