"""Which bytes go on when a cut is armed, however they come."""

from __future__ import annotations

import gzip
import itertools
import json
import struct
from dataclasses import dataclass, field

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from wire_samples import (
    POSTGRES,
    READY,
    REDIS,
    SAMPLES,
    Turn,
    asks,
    command,
    kafka,
    kafka_reply,
    my,
    pg,
    pg_extended,
    says,
    split_turns,
)

from bettong.harness.wire.conversation import History, Keys, Ledger
from bettong.harness.wire.cutpoints import KINDS, Kind
from bettong.harness.wire.framing.adaptive import AdaptiveFraming
from bettong.harness.wire.framing.base import Info
from bettong.harness.wire.session import Close, Fire, Forward, Session


@dataclass
class Cut:
    """Hits the n-th counted request."""

    kind: Kind = "omit"
    nth: int = 0  # none
    close: bool = True
    answer: bytes = b""
    why: str = ""
    seen: int = 0
    keys: list[Keys] = field(default_factory=list)

    @property
    def armed(self) -> bool:
        return self.nth > 0

    def decide(self, request: Info, keys: Keys) -> Cut | None:
        self.seen += 1
        self.keys.append(keys)
        return self if self.seen == self.nth else None

    def missed(self, why: str) -> None:
        self.why = why

    def refused(self, error: str) -> None:
        self.why = error


class Played:
    """What came out when a conversation was played through a session."""

    def __init__(self, turns: list[Turn], cut: Cut) -> None:
        framing = AdaptiveFraming()
        history = History("e", Ledger())
        session = Session(framing, history, cut, itertools.count(1).__next__)
        self.session = session
        self.up = self.down = b""
        self.fired = self.closed = 0
        for turn in turns:
            if self.closed:
                break
            for step in session.client(turn.data) if turn.client else session.server(turn.data):
                assert not self.closed
                if isinstance(step, Forward):
                    if step.stream == "upstream":
                        self.up += step.data
                    else:
                        self.down += step.data
                elif isinstance(step, Fire):
                    self.fired += 1
                elif isinstance(step, Close):
                    self.closed += 1


def joined(turns: list[Turn], client: bool) -> bytes:
    return b"".join(turn.data for turn in turns if turn.client is client)


@given(split_turns())
def test_without_a_cut_everything_goes_on_as_it_comes(sample: tuple[str, list[Turn]]) -> None:
    _, turns = sample
    played = Played(turns, Cut())
    assert played.up == joined(turns, client=True)
    assert played.down == joined(turns, client=False)


@given(split_turns())
def test_a_cut_that_is_not_met_changes_no_byte(sample: tuple[str, list[Turn]]) -> None:
    _, turns = sample
    played = Played(turns, Cut(nth=999))
    assert played.up == joined(turns, client=True)
    assert played.down == joined(turns, client=False)


@given(split_turns())
def test_a_request_that_is_lost_may_be_answered_all_the_same(
    sample: tuple[str, list[Turn]],
) -> None:
    _, turns = sample
    whole = Played(turns, Cut())
    played = Played(turns, Cut(nth=1, answer=b"no"))
    assert (played.fired, played.closed) == (1, 1)
    assert played.down.endswith(b"no") and whole.down.startswith(played.down[:-2])
    assert whole.up.startswith(played.up) and len(played.up) < len(whole.up)


@given(split_turns())
def test_a_request_that_was_carried_out_may_be_answered_otherwise(
    sample: tuple[str, list[Turn]],
) -> None:
    name, turns = sample
    whole = Played(SAMPLES[name], Cut())
    counted = [r for r in whole.session.requests if r.keys is not None]
    nth = next((n for n, r in enumerate(counted, 1) if r.reply_size), 0)
    assume(nth)
    plain, played = (
        Played(turns, Cut("omit-reply", nth)),
        Played(turns, Cut("omit-reply", nth, answer=b"no")),
    )
    assert (played.fired, played.closed) == (1, 1)
    assert played.down == plain.down + b"no"
    assert played.up == plain.up


@given(split_turns(), st.sampled_from(KINDS), st.data())
def test_a_cut_is_exact(sample: tuple[str, list[Turn]], kind: Kind, data: st.DataObject) -> None:
    name, turns = sample
    whole = Played(SAMPLES[name], Cut())
    counted = [r for r in whole.session.requests if r.keys is not None]
    nth = data.draw(st.integers(1, len(counted)))
    target = counted[nth - 1]
    before = sum(
        r.size for r in itertools.takewhile(lambda r: r is not target, whole.session.requests)
    )
    played = Played(turns, Cut(kind, nth))
    if kind == "omit-reply" and not target.reply_size:
        assert (played.fired, played.closed) == (0, 0)
        assert played.up == whole.up
        return
    assert (played.fired, played.closed) == (1, 1)
    assert whole.down.startswith(played.down)
    if kind == "omit":
        assert played.up == whole.up[:before]
    elif kind == "cut":
        assert played.up == whole.up[: before + target.size // 2]
    else:
        assert played.up.startswith(whole.up[: before + target.size])
        assert len(played.down) < len(whole.down)


ERRORS = {
    "http": b"HTTP/1.1 429 Too Many Requests\r\n",
    "mysql": b"\xff\xbd\x04#40001",
    "postgres": b"C40P01\0",
    "redis": b"-READONLY ",
}


@given(split_turns(), st.data())
def test_a_request_that_is_refused_is_answered_with_an_error_in_its_place(
    sample: tuple[str, list[Turn]], data: st.DataObject
) -> None:
    name, turns = sample
    whole = Played(SAMPLES[name], Cut())
    counted = [r for r in whole.session.requests if r.keys is not None]
    refusable = [n for n, r in enumerate(counted, 1) if r.info.refusable]
    assert bool(refusable) == (name in ERRORS)
    assume(refusable)
    nth = data.draw(st.sampled_from(refusable))
    target = counted[nth - 1]
    before = sum(
        r.size for r in itertools.takewhile(lambda r: r is not target, whole.session.requests)
    )
    played = Played(turns, Cut("refuse", nth))
    assert played.fired == 1
    assert played.up.startswith(whole.up[:before])
    assert played.down.count(ERRORS[name]) == 1
    if name == "http":
        assert (played.up, played.closed) == (whole.up[:before], 1)
        return
    rest = whole.up[before + target.size :]
    asked = played.up[before:].removesuffix(rest)
    assert asked and asked != whole.up[before : before + target.size]
    assert played.closed == 0
    told = played.down.partition(ERRORS[name])[0]
    assert whole.down.startswith(told[:-40])  # what came before it, but for the error's own head


@pytest.mark.parametrize("encoded", ["plain", "gzip", "chunked"])
def test_a_bulk_request_is_refused_item_by_item(encoded: str) -> None:
    """All is well of the whole, so that a client has to look at what it is told of each."""
    asked = [
        {"index": {"_index": "rows", "_id": "a"}},
        {"value": 1},
        {"update": {"_id": "b"}},
        {"doc": {"index": {}}},
        {"delete": {"_id": "c"}},
    ]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in asked)
    how = b"Content-Length: %d" % len(body)
    if encoded == "gzip":
        body = gzip.compress(body)
        how = b"Content-Encoding: gzip\r\nContent-Length: %d" % len(body)
    if encoded == "chunked":
        how, body = (
            b"Transfer-Encoding: chunked",
            b"9\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n"
            % (
                body[:9],
                len(body) - 9,
                body[9:],
            ),
        )
    request = b"POST /rows/_bulk HTTP/1.1\r\nHost: h\r\n" + how + b"\r\n\r\n" + body
    played = Played([asks(request)], Cut("refuse", 1))
    assert (played.up, played.fired, played.closed) == (b"", 1, 1)
    head, _, answer = played.down.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    told = json.loads(answer)
    assert told["errors"] is True
    items = [
        (*item, *((of["_id"], of["status"]) for of in item.values())) for item in told["items"]
    ]
    assert items == [("index", ("a", 429)), ("update", ("b", 429)), ("delete", ("c", 429))]


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_broker_refuses_the_records_of_each_partition(version: int) -> None:
    """As the protocol's document has it, from version 9 on with varints, from 13 on with ids."""
    flexible, by_id = version >= 9, version >= 13
    tags, topic = (
        b"\0" if flexible else b"",
        b"i" * 16 if by_id else b"\2t" if flexible else b"\0\1t",
    )
    records = b"\3ab" if flexible else b"\0\0\0\2ab"
    two, one = (b"\3", b"\2") if flexible else (b"\0\0\0\2", b"\0\0\0\1")
    nobody = b"\0" if flexible else b"\xff\xff"
    partitions = b"".join(struct.pack("!i", n) + records + tags for n in (0, 4))
    head = struct.pack("!hhih", 0, version, 7, 2) + b"me" + tags + nobody
    asked = head + struct.pack("!hi", -1, 1000) + one + topic + two + partitions + tags + tags
    no_more = b"\1\0" if flexible else b"\0\0\0\0\xff\xff" if version >= 8 else b""
    times = struct.pack("!qq", -1, -1) if version >= 5 else struct.pack("!q", -1)
    told = b"".join(struct.pack("!ihq", n, 29, -1) + times + no_more + tags for n in (0, 4))
    answer = struct.pack("!i", 7) + tags + one + topic + two + told + tags + struct.pack("!i", 0)
    answer += tags
    login = [asks(kafka(18, 1, b"")), says(kafka_reply(1, b"versions"))]
    turns = [*login, asks(struct.pack("!i", len(asked)) + asked), says(kafka_reply(7, b"\0\0"))]
    cut = Cut("refuse", 1)
    played = Played(turns, cut)
    assert (played.fired, played.closed, cut.why) == (1, 0, "29 (not authorized)")
    instead = struct.pack("!ihhih", 10, 18, 0, 7, -1)
    assert played.up == login[0].data + instead
    assert played.down == login[1].data + struct.pack("!i", len(answer)) + answer


def test_what_cannot_be_refused_goes_on_and_is_missed() -> None:
    turns = [asks(command(b"SUBSCRIBE", b"a")), says(b"+OK\r\n")]
    cut = Cut("refuse", 1)
    played = Played(turns, cut)
    assert (played.fired, played.up, played.down) == (0, turns[0].data, turns[1].data)
    assert "not known" in cut.why


def test_a_transaction_that_is_refused_is_gone_at_the_server() -> None:
    """The server ends it, or knows that it has failed: it must not be as if nothing had been."""
    [*login, _, _] = POSTGRES[:8]
    begin, commit = pg(b"Q", b"BEGIN\0"), pg(b"Q", b"COMMIT\0")
    insert = pg_extended(b"INSERT INTO t VALUES ($1)", b"1")
    failed = pg(b"E", b"C42601\0\0") + pg(b"Z", b"E")
    asked = [*login, asks(begin), says(READY), asks(insert), says(failed), asks(commit)]
    cut = Cut("refuse", 2)
    played = Played(asked, cut)
    assert played.up.endswith(begin + pg(b"Q", b"refused\0") + commit)
    assert played.down.endswith(b"C40P01\0Mdeadlock detected\0\0" + pg(b"Z", b"E"))
    assert cut.why == "40P01 (deadlock detected)"
    played = Played([*asked, says(pg(b"C", b"ROLLBACK\0") + READY)], Cut("refuse", 3))
    assert played.up.endswith(insert + pg(b"Q", b"ROLLBACK\0"))
    assert played.down.endswith(b"\0\0" + READY)


def test_who_asked_for_more_isolation_is_told_that_it_cannot_be() -> None:
    begin = pg(b"Q", b"BEGIN ISOLATION LEVEL SERIALIZABLE\0")
    turns = [*POSTGRES[:6], asks(begin), says(READY), asks(pg(b"Q", b"DELETE FROM t\0"))]
    cut = Cut("refuse", 2)
    Played(turns, cut)
    assert cut.why.startswith("40001")


def test_a_lost_reply_is_lost_whole_and_those_before_it_arrive() -> None:
    turns = [
        asks(command(b"SET", b"a", b"1") + command(b"GET", b"a") + command(b"GET", b"b")),
        says(b"+OK\r\n$3\r\n"),
        says(b"one\r\n$3\r\ntwo\r\n"),
    ]
    played = Played(turns, Cut("omit-reply", 2))
    assert played.up == turns[0].data
    assert played.down == b"+OK\r\n"
    assert played.closed == 1


def test_an_action_without_a_close_loses_nothing() -> None:
    for kind in KINDS:
        played = Played(REDIS, Cut(kind, 2, close=False))
        assert (played.fired, played.closed) == (1, 0)
        assert played.up == joined(REDIS, client=True)
        assert played.down == joined(REDIS, client=False)


def test_a_request_that_had_passed_when_the_cut_was_armed_is_missed() -> None:
    cut = Cut()
    session = Session(AdaptiveFraming("redis"), History("e", Ledger()), cut, lambda: 1)
    request = command(b"SET", b"a", b"1")
    assert session.client(request[:-1]) == [Forward("upstream", request[:-1])]
    cut.nth = 1
    assert session.client(request[-1:]) == [Forward("upstream", request[-1:])]
    assert "had passed" in cut.why


def test_a_side_that_closes_gives_up_what_was_held_of_it() -> None:
    session = Session(AdaptiveFraming("redis"), History("e", Ledger()), Cut(nth=1), lambda: 1)
    assert session.client(b"*2\r\n$3\r\nGET") == []
    assert session.end("upstream") == [Forward("upstream", b"*2\r\n$3\r\nGET")]


def test_an_unknown_protocol_is_cut_where_the_direction_changes() -> None:
    turns = [asks(b"one"), says(b"1"), asks(b"two"), asks(b"more"), says(b"2"), asks(b"three")]
    assert Played(turns, Cut("omit", 2)).up == b"one"
    assert Played(turns, Cut("cut", 2)).up == b"onet"
    lost = Played(turns, Cut("omit-reply", 2))
    assert (lost.up, lost.down) == (b"onetwomore", b"1")


def test_keys_tell_equal_connections_by_occurrence_and_others_by_content() -> None:
    ledger = Ledger()

    def keys(*values: bytes) -> list[Keys]:
        cut = Cut()
        session = Session(AdaptiveFraming("redis"), History("e", ledger), cut, lambda: 1)
        for value in values:
            session.client(command(b"SET", b"k", value))
        return cut.keys

    one, two, other = keys(b"1", b"2"), keys(b"1", b"2"), keys(b"1", b"3")
    assert [k.content for k in one] == [k.content for k in two]
    assert [k.content_nth for k in (*one, *two)] == [1, 1, 2, 2]
    assert other[0].content_nth == 3
    assert other[1].content != one[1].content
    assert other[1].label == one[1].label
    assert other[1].label_nth == 3


def test_the_rest_of_a_reply_goes_on_when_the_next_one_is_to_be_lost() -> None:
    """As a MariaDB client does that sends a command before the last one is answered."""
    first, second = my(0, b"\x16INSERT"), my(0, b"\x17\xff\xff\xff\xff\0")
    prepared = my(1, b"\0" + b"\1\0\0\0" + b"\0" * 7)
    turns = [
        says(my(0, b"\x0a10.11\0" + b"x" * 30)),
        asks(my(1, b"\0" * 40)),
        says(my(2, b"\0")),
        asks(first + second),
        says(prepared),
        says(my(2, b"parameter")),
        says(my(1, b"\0")),
    ]
    played = Played(turns, Cut("omit-reply", 2))
    assert played.fired == 1
    assert played.down == turns[0].data + turns[2].data + prepared + my(2, b"parameter")
