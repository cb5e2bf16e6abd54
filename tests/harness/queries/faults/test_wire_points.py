"""At which requests of clean runs faults are placed, and which of them leave the same behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.crash_points import DURABLE
from bettong.harness.queries.faults.kinds import parse_fault
from bettong.harness.queries.faults.wake import (
    Wake,
    WakeAtRequest,
    WakeAtStep,
    at_request,
    in_batch,
)
from bettong.harness.queries.faults.wire import (
    CLOCK,
    WirePoint,
    endpoints_asked,
    not_placeable,
    not_read,
    placeable,
    taken_for_granted,
    wire_points,
)
from bettong.harness.queries.faults.wire_fault import How, WireFault
from bettong.harness.wire import CutPoint, Recording, cut_points
from bettong.harness.wire.armed import ArmedCut
from bettong.harness.wire.conversation import Conversation, History, Ledger, Request, RequestId
from bettong.harness.wire.cutpoints import KINDS, Kind
from bettong.harness.wire.framing.base import Info
from bettong.lineage.trace import TraceEvent

# Steps of batch n are at the wire's times 100 n and 100 n + 99, requests between them.
EVENTS = [
    TraceEvent(f"batch={n}/{step}", phase, "driver", detail={CLOCK: 100 * n + at, DURABLE: "files"})
    for n in range(4)
    for step, phase, at in (("offsets", "after", 0), ("commits", "before", 99))
]
STAGES = ("1 DELETE", "2 INSERT", "4 UPSERT")
LABELS = ("BEGIN", "INSERT", "COMMIT", "GET /rows", "HEAD /rows", "POST /rows")
Asked = tuple[int, str, str]  # batch, label, content


def recording(asked: Sequence[Asked], size: int = 100, protocol: str = "test") -> Recording:
    history, counts, requests = History("db", Ledger()), Counter[int](), []
    for index, (batch, label, content) in enumerate(asked, 1):
        counts[batch] += 1
        order = 100 * batch + counts[batch]
        keys = history.add(Info(label, content=content.encode()))
        requests.append(Request("db", 1, index, order, label, "", size, 9, keys))
    return Recording((Conversation("db", 1, protocol, tuple(requests), (), 1, 1, None),))


def placed(
    first: Sequence[Asked],
    second: Sequence[Asked] | None = None,
    servers: Sequence[str] = (),
    tail: Sequence[int] = (),
    started: int = 0,
) -> list[WirePoint]:
    clean = recording(first)
    pinned = cut_points(clean, clean if second is None else recording(second)).points
    return wire_points(clean, pinned, EVENTS, 2, "run1", servers, tail, started)


def placed_of(sent: Sequence[tuple[str, str]], own_connections: bool = False) -> list[WirePoint]:
    """The same of one batch, with what the requests say, each on a connection of its own if so."""
    return placed_in([(1, *each) for each in sent], own_connections)


def placed_in(
    asked: Sequence[tuple[int, str, str]], own_connections: bool = False
) -> list[WirePoint]:
    """The same of several batches."""
    clean = recording(asked)
    sent = [each[1:] for each in asked]
    (talk,) = clean.conversations
    told = [
        replace(request, detail=detail, connection=number if own_connections else 1)
        for number, (request, (_, detail)) in enumerate(zip(talk.requests, sent, strict=True))
    ]
    clean = Recording((replace(talk, requests=tuple(told)),))
    return wire_points(clean, cut_points(clean, clean).points, EVENTS, 2, "run1")


def numbers(points: Sequence[WirePoint], between: bool = False) -> list[int]:
    """Of the requests that are hit, in their order; ``between``: of those after which the driver
    dies and nothing else happens."""
    found: dict[str, list[str]] = {}
    for point in points:
        for fault, _ in point.faults:
            found.setdefault(fault.point.request, []).append(fault.id)
    crash = "crash(driver, after "
    hit = [
        RequestId.parse(request)
        for request, ids in found.items()
        if (len(ids) == 1 and ids[0].startswith(crash)) == between
    ]
    return sorted(request.number for request in hit if request is not None)


def ids(points: Sequence[WirePoint]) -> list[str]:
    return [fault.id for point in points for fault, _ in point.faults]


def test_a_request_that_changes_something_is_lost_and_repeated_in_every_way() -> None:
    point, server, held, slow = placed([(0, "INSERT", "a"), (1, "INSERT", "b"), (2, "INSERT", "c")])
    request = "db/conn=1/request=2 INSERT"
    assert [fault.id for fault, _ in point.faults] == [
        f"omit({request})",
        f"crash(driver, before {request})",
        f"omit-reply({request})",
        f"omit-reply({request}) and each time again",
        f"crash(driver, after {request})",
        f"cut({request})",
        f"omit({request}) and each time again",
        f"pause(driver, before {request})",
    ]
    assert len({left for _, left in point.faults}) == 8
    assert ids([server]) == [f"pause(server, before {request})", f"silence({request})"]
    assert ids([held]) == [f"pause(driver, before {request} until db/batch=2/INSERT=1)"]
    assert ids([slow]) == [f"crash(driver, awaiting {request})"]


def test_a_request_of_http_is_refused_whatever_it_asks_for() -> None:
    asked = [(0, "POST /rows", "a"), (1, "GET /rows", ""), (1, "POST /rows", "b")]
    for protocol, refused in (("test", set[str]()), ("http", {"2 GET /rows", "3 POST /rows"})):
        clean = recording(asked, protocol=protocol)
        found = wire_points(clean, cut_points(clean, clean).points, EVENTS, 2, "run1")
        once = {f"unavailable(db/conn=1/request={request})" for request in refused}
        expected = once | {f"{id} and each time again" for id in once}
        assert {id for id in ids(found) if id.startswith("unavailable")} == expected
        late = {f"timeout(db/conn=1/request={request})" for request in refused}
        assert {id for id in ids(found) if id.startswith("timeout")} == late
        silent = {
            f"silence(db/conn=1/request={x})" for x in refused or {"2 GET /rows", "3 POST /rows"}
        }
        assert {id for id in ids(found) if id.startswith("silence")} == silent


def test_the_last_request_of_each_kind_is_refused_with_an_error() -> None:
    """In the second batch, and where a later one does what that does not; not what only reads."""
    asked = [(n, *each) for n in (0, 1) for each in (("INSERT", "a"), ("INSERT", "b"))]
    asked += [(1, "COMMIT", ""), (1, "WATCH", ""), (1, "GET /rows", ""), (3, "DELETE", "")]
    asked += [(3, "COMMIT", "")]
    clean = recording(asked)
    (talk,) = clean.conversations
    able = [replace(r, refusable=not r.label.startswith("GET ")) for r in talk.requests]
    clean = Recording((replace(talk, requests=tuple(able)),))
    found = wire_points(clean, cut_points(clean, clean).points, EVENTS, 2, "run1", tail=[3])
    assert [id for id in ids(found) if id.startswith("refuse")] == [
        "refuse(db/conn=1/request=4 INSERT)",
        "refuse(db/conn=1/request=5 COMMIT)",
        "refuse(db/conn=1/request=8 DELETE)",
    ]


def test_losing_one_that_changes_nothing_leaves_the_same_behind_in_every_way() -> None:
    (point,) = placed([(1, "HEAD /rows", "a")])
    left = {fault.id: left for fault, left in point.faults}
    request = "db/conn=1/request=1 HEAD /rows"
    assert not any(id.endswith("again") for id in left)
    assert left[f"omit({request})"] == left[f"omit-reply({request})"]
    assert left[f"crash(driver, before {request})"] == left[f"crash(driver, after {request})"]


def test_a_get_is_hit_as_one_that_may_write() -> None:
    """A service may commit something at it: its reply is lost, and it comes late, as a POST's."""
    asked = [(n, label, "") for n in (1, 2) for label in ("POST /stage", "GET /commit")]
    found = ids(placed(asked, servers=["db"]))
    request = "db/conn=1/request=2 GET /commit"
    for fault in (
        f"omit-reply({request}) and each time again",
        f"crash(driver, after {request})",
        f"pause(driver, before {request})",
        f"restart(server, after {request})",
        f"restart(server, after {request.replace('2 GET /commit', '1 POST /stage')})",
        "pause(driver, before db/conn=1/request=1 POST /stage until db/batch=2/GET /commit=1)",
    ):
        assert fault in found


@pytest.mark.parametrize(
    ("label", "changes"),
    [
        *((label, False) for label in ("SISMEMBER", "HEXISTS", "ZRANGE", "XLEN", "TTL", "STRLEN")),
        *((label, True) for label in ("GETDEL", "GETEX", "SORT", "SELECT", "XREADGROUP", "SPOP")),
    ],
)
def test_commands_of_redis_that_only_read_change_nothing(label: str, changes: bool) -> None:
    assert any(fault.takes_over for p in placed([(1, label, "a")]) for fault, _ in p.faults) == (
        changes
    )


def test_a_driver_stands_still_at_the_last_of_what_it_asks_before_it_writes() -> None:
    """But not at the first: it knows nothing yet. In Redis, where the others are no moments."""
    asked = [(1, label, "") for label in ("PING", "GET", "HGET", "GET", "WATCH", "MULTI", "EXEC")]
    late = [id for id in ids(placed(asked)) if id.startswith("pause(driver") and "until" not in id]
    places = ("3 HGET", "4 GET", "5 WATCH", "7 EXEC")
    assert sorted(late) == [f"pause(driver, before db/conn=1/request={place})" for place in places]


def test_of_many_kinds_of_what_is_asked_the_last_are_such_moments() -> None:
    kinds = ("GET", "HGET", "LLEN", "EXISTS", "TTL", "XLEN", "ZCARD", "SCARD")
    found = ids(placed([(1, label, "") for label in kinds]))
    late = [id.split()[-1].rstrip(")") for id in found if id.startswith("pause(driver")]
    assert sorted(late) == sorted(kinds[-6:])


def test_of_requests_that_are_alike_the_first_and_the_last_stand_for_all() -> None:
    asked = [(1, "BEGIN", "")] + [(1, "INSERT", str(n)) for n in range(5)] + [(1, "COMMIT", "")]
    assert numbers(placed(asked)) == [1, 2, 6, 7]


def test_between_requests_that_are_alike_the_driver_dies_once_the_second_was_answered() -> None:
    rows = [("INSERT", f"INSERT INTO rows VALUES ({n})") for n in range(5)]
    assert numbers(placed_of(rows), between=True) == [2]
    assert numbers(placed_of(rows[:2]), between=True) == []
    assert numbers(placed_of([("HEAD /rows", "")] * 5), between=True) == []
    row = [("INSERT", "INSERT INTO rows VALUES (1)"), ("COMMIT", "COMMIT")]
    assert numbers(placed_of(row * 5), between=True) == [4]
    of_one_batch = [*rows, ("COMMIT", "COMMIT")]
    assert numbers(placed_of(of_one_batch * 4), between=True) == [2, 12, 20]
    each = [(f"PUT /rows/m-{n:06d}", "") for n in range(5)]
    for own_connections in (True, False):
        assert numbers(placed_of(each, own_connections), between=True) == [2]


def test_a_marker_beside_rows_is_no_row() -> None:
    sent = [
        ("INSERT", "INSERT INTO marks VALUES (1)"),
        *(("INSERT", f"INSERT INTO rows VALUES ('k{n}', {n})") for n in range(4)),
        ("INSERT", "INSERT INTO done VALUES (1)"),
        *(("INSERT", f"INSERT INTO audit VALUES ('k{n}', {n})") for n in range(2)),
    ]
    assert numbers(placed_of(sent)) == [1, 2, 5, 6, 7, 8]


def test_requests_of_which_no_two_are_alike_count_as_one_kind() -> None:
    sent = [("SET", f"SET {'abcdefghij'[n] * 3} {n}") for n in range(10)]
    assert numbers(placed_of(sent)) == [1, 10]


@pytest.mark.parametrize("last", ["COMMIT", None])
def test_each_of_many_tables_that_every_batch_writes_to_is_hit(last: str | None) -> None:
    """What differs is no row then; those of the first batch are as these."""
    once = [("INSERT", f"INSERT INTO {'x' * n} VALUES (1)") for n in range(1, 9)]
    if last is not None:
        once = [each for insert in once for each in (insert, (last, last))]
    points = placed_in([(batch, *each) for batch in (0, 1) for each in once])
    assert numbers(points) == list(range(len(once) + 1, 2 * len(once) + 1))


@pytest.mark.parametrize("own_connections", [False, True])
def test_a_request_for_each_row_is_hit_the_first_and_the_last_time(own_connections: bool) -> None:
    sent = [(f"PUT /rows/m-{n:06d}", "") for n in range(20)]
    assert numbers(placed_of(sent, own_connections)) == [1, 20]


def test_of_what_is_repeated_as_a_whole_the_first_and_the_last_time_stand_for_all() -> None:
    row = [("INSERT", "INSERT INTO rows VALUES (1)"), ("COMMIT", "COMMIT")]
    mark = [("INSERT", "INSERT INTO marks VALUES (1)"), ("COMMIT", "COMMIT")]
    assert numbers(placed_of(row * 10)) == [1, 2, 19, 20]
    assert numbers(placed_of(row * 4 + mark + row * 4)) == [1, 2, 7, 8, 9, 10, 11, 16, 17, 18]
    assert numbers(placed_of(row * 2)) == [1, 2, 3, 4]


def test_what_a_request_of_a_row_was_called_does_not_make_it_another_kind() -> None:
    asked = [(n // 3, f"PUT /rows/{n}", "") for n in range(6)]
    assert {point.batch for point in placed(asked)} == {1}


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=30))
def test_of_each_shape_there_is_one_that_stands_for_it(shapes: list[str]) -> None:
    found = numbers(placed_of([("SET", x) for x in shapes]))
    assert {shapes[n - 1] for n in found} == set(shapes)
    assert not shapes or {1, len(shapes)} <= set(found)


def test_between_many_that_nobody_replies_to_the_driver_dies_before_the_second() -> None:
    clean = recording([(1, "basic.publish", f"{n}") for n in range(5)])
    (talk,) = clean.conversations
    sent = tuple(replace(request, reply_size=0) for request in talk.requests)
    clean = Recording((replace(talk, requests=sent),))
    found = wire_points(clean, cut_points(clean, clean).points, EVENTS, 2, "run1")
    assert "crash(driver, before db/conn=1/request=2 basic.publish)" in ids(found)


def test_between_what_is_repeated_the_driver_dies_where_something_was_done() -> None:
    """To ask what is there leaves nothing behind: a row was sent before that."""
    again = [("SET", "SET m/1"), ("EXISTS", "EXISTS m/1")]
    points = placed_of([*again * 5])
    assert numbers(points, between=True) == [3]


def not_readable(*connections: Sequence[tuple[int, int]]) -> Recording:
    """A conversation of batch 1 on encrypted connections: how much each request and its reply
    have."""
    ledger, talks, order = Ledger(), [], 100
    for number, sizes in enumerate(connections, 1):
        history, requests = History("db", ledger), []
        for index, (size, reply) in enumerate(sizes, 1):
            order += 1
            keys = history.add(Info("bytes"))
            asked = Request("db", number, index, order, "bytes", "", size, reply, keys)
            requests.append(asked)
        talks.append(Conversation("db", number, "opaque", tuple(requests), (), 1, 1, None))
    return Recording(tuple(talks))


def placed_unread(*connections: Sequence[tuple[int, int]]) -> list[WirePoint]:
    clean = not_readable(*connections)
    return wire_points(clean, cut_points(clean, clean).points, EVENTS, 2, "run1")


MARKER_FIRST = [(517, 2200), (160, 400), (92, 38), (140, 60), (95, 38), (210, 60), (97, 0)]
"""Greetings, BEGIN, an INSERT of a marker, COMMIT, an INSERT of rows, good-bye."""


def test_of_requests_that_cannot_be_read_each_may_be_another_one() -> None:
    """All are called the same, and none is known to be like another one: between a marker and its
    rows a driver may die there, too."""
    points = placed_unread(MARKER_FIRST)
    assert numbers(points) == [1, 2, 3, 4, 5, 6, 7]
    assert "crash(driver, after db/conn=1/request=5 bytes)" in ids(points)
    (told,) = not_read(not_readable(MARKER_FIRST))
    assert told == "db (no protocol that is known)"
    assert not_read(recording([(1, "INSERT", "")])) == []


def test_of_many_that_cannot_be_read_those_of_the_same_size_are_alike() -> None:
    points = placed_unread([(500, 900), *[(130, 60)] * 20, (90, 40)])
    assert numbers(points) == [1, 2, 21, 22]
    assert numbers(points, between=True) == [3]
    a_row_each = [[(517, 2200), (160, 400), (130 + n % 3, 60), (90, 0)] for n in range(20)]
    points = placed_unread(*a_row_each)
    connections = {RequestId.parse(f.point.request) for p in points for f, _ in p.faults}
    assert {request.connection for request in connections if request} == {1, 2, 20}


sizes = st.lists(st.tuples(st.integers(70, 500), st.integers(1, 99)), min_size=1, max_size=40)


@given(sizes)
def test_of_each_size_of_what_cannot_be_read_there_is_one_that_stands_for_it(
    sent: list[tuple[int, int]],
) -> None:
    hit = {number - 1 for number in numbers(placed_unread(sent))}
    assert {sent[place] for place in hit} == set(sent)


def test_a_driver_is_held_at_what_changes_something_in_the_last_batch_or_only_before_it() -> None:
    first = [(0, "TRUNCATE", ""), (0, "INSERT", "a"), (0, "COMMIT", "")]
    points = placed([*first, (1, "BEGIN", ""), (1, "INSERT", "a"), (1, "COMMIT", "")])
    held = [fault for point in points for fault, _ in point.faults if fault.takes_over]
    assert [fault.label for fault in held] == ["TRUNCATE", "INSERT", "COMMIT"]
    assert {(fault.bound, fault.mechanism, fault.crashes) for fault in held} == {
        ("pause", "zombie", False)
    }


@pytest.mark.parametrize(
    ("batch", "held"),
    [
        (
            ["BEGIN", "DROP", "INSERT", "INSERT", "COMMIT", "BEGIN", "INSERT", "COMMIT"],
            [
                "request=2 DROP until db/batch=2/BEGIN=2",
                "request=5 COMMIT until db/batch=2/BEGIN=2",
                "request=7 INSERT until db/batch=2/BEGIN=2",
            ],
        ),
        (
            # A mark, rows that are put aside, rows that are published, a row for a dashboard.
            [
                *("UPDATE", "SELECT", "BEGIN", "TRUNCATE", "INSERT", "COMMIT"),
                *("BEGIN", "INSERT", "COMMIT", "BEGIN", "UPSERT", "COMMIT"),
            ],
            [
                "request=1 UPDATE until db/batch=2/BEGIN=3",
                "request=4 TRUNCATE until db/batch=2/BEGIN=3",
                "request=8 INSERT until db/batch=2/BEGIN=3",
                "request=11 UPSERT until db/batch=2/BEGIN=3",
                "request=1 UPDATE until db/batch=2/BEGIN=2",
                "request=4 TRUNCATE until db/batch=2/BEGIN=2",
                "request=8 INSERT until db/batch=2/BEGIN=2",
                "request=11 UPSERT until db/batch=2/BEGIN=2",
                "request=1 UPDATE until db/batch=2/SELECT=1",
                "request=4 TRUNCATE until db/batch=2/SELECT=1",
                "request=8 INSERT until db/batch=2/SELECT=1",
                "request=11 UPSERT until db/batch=2/SELECT=1",
            ],
        ),
        (  # The last statement is a transaction of its own.
            ["BEGIN", "DELETE", "COMMIT", "BEGIN", "INSERT", "COMMIT", "NOTIFY"],
            [
                "request=2 DELETE until db/batch=2/NOTIFY=1",
                "request=3 COMMIT until db/batch=2/NOTIFY=1",
                "request=5 INSERT until db/batch=2/NOTIFY=1",
                "request=7 NOTIFY until db/batch=2/NOTIFY=1",
                "request=2 DELETE until db/batch=2/BEGIN=2",
                "request=5 INSERT until db/batch=2/BEGIN=2",
                "request=7 NOTIFY until db/batch=2/BEGIN=2",
                "request=3 COMMIT until db/batch=2/BEGIN=2",
            ],
        ),
        (
            [f"PUT /rows/m-{n:06}" for n in range(5)],
            ["request=1 PUT /rows/m-000000 until db/batch=2/PUT /rows/m-?=5"],
        ),
        (
            ["BEGIN", "SELECT", "TRUNCATE", "INSERT", "COMMIT", "BEGIN", "UPSERT", "COMMIT"],
            [
                "request=2 SELECT until db/batch=2/BEGIN=2",
                "request=5 COMMIT until db/batch=2/BEGIN=2",
                "request=3 TRUNCATE until db/batch=2/BEGIN=2",
                "request=7 UPSERT until db/batch=2/BEGIN=2",
            ],
        ),
        (["INSERT", "INSERT", "INSERT"], ["request=1 INSERT until db/batch=2/INSERT=3"]),
        (
            ["BEGIN", "INSERT", "COMMIT"],
            [
                "request=2 INSERT until db/batch=2/COMMIT=1",
                "request=3 COMMIT until db/batch=2/COMMIT=1",
            ],
        ),
        (
            ["POST /rows", "GET /rows", "POST /rows"],
            [
                "request=1 POST /rows until db/batch=2/GET /rows=1",
                "request=1 POST /rows until db/batch=2/POST /rows=2",
                "request=2 GET /rows until db/batch=2/POST /rows=2",
                "request=2 GET /rows until db/batch=2/GET /rows=1",
            ],
        ),
        (["HSET"], ["request=1 HSET until db/batch=2/HSET=1"]),
        (["GET /rows"], ["request=1 GET /rows until db/batch=2/GET /rows=1"]),
        (["HEAD /rows"], []),
    ],
)
def test_a_driver_wakes_before_a_transaction_of_its_successors_next_batch(
    batch: list[str], held: list[str]
) -> None:
    asked = [(n, label, str(n)) for n in (1, 2) for label in batch]
    found = [id for id in ids(placed(asked)) if " until db/batch=2" in id]
    assert found == [f"pause(driver, before db/conn=1/{request})" for request in held]
    assert not [id for id in ids(placed(asked[: len(batch)])) if " until db/batch=2" in id]
    later = [(n + 1, label, content) for n, label, content in asked]
    found = [id for id in ids(placed(later, tail=[2])) if " until db/batch=3" in id]
    assert found == [
        f"pause(driver, before db/conn=1/{request.replace('batch=2', 'batch=3')})"
        for request in held
    ]


@pytest.mark.parametrize(
    ("batch", "held"),
    [
        (  # What is put aside is emptied, filled by tasks and published.
            [
                *("DELETE", "BEGIN", "INSERT", "COMMIT", "BEGIN", "INSERT", "COMMIT"),
                *("BEGIN", "SELECT", "UPSERT", "COMMIT"),
            ],
            [
                "request=1 DELETE until db/restarted/BEGIN=3",
                "request=3 INSERT until db/restarted/BEGIN=3",
                "request=1 DELETE until db/restarted/BEGIN=2",
                "request=3 INSERT until db/restarted/BEGIN=2",
            ],
        ),
        (  # The same, and it is emptied again in the end.
            ["DELETE", "INSERT", "BEGIN", "UPSERT", "COMMIT", "TRUNCATE"],
            [
                *(f"request={x} until db/restarted/TRUNCATE=1" for x in STAGES),
                *(f"request={x} until db/restarted/BEGIN=1" for x in STAGES[:2]),
                "request=1 DELETE until db/restarted/INSERT=1",
            ],
        ),
        (["BEGIN", "DELETE", "INSERT", "COMMIT"], []),
        (["SELECT", "INSERT"], []),
        (
            ["HSET", "HSET", "PUBLISH"],
            [
                "request=1 HSET until db/restarted/PUBLISH=1",
                "request=1 HSET until db/restarted/HSET=2",
            ],
        ),
        (["GET /rows"], []),
    ],
)
def test_a_driver_wakes_before_a_later_transaction_of_the_replay_of_its_batch(
    batch: list[str], held: list[str]
) -> None:
    asked = [(1, label, "1") for label in batch]
    found = [id for id in ids(placed(asked)) if " until " in id]
    assert found == [f"pause(driver, before db/conn=1/{request})" for request in held]


@pytest.mark.parametrize(("started", "number"), [(-300, 4), (-150, 3)])
def test_what_was_asked_before_the_query_began_is_not_counted_in_its_replay(
    started: int, number: int
) -> None:
    """An empty target is made once; what the query asks before any batch it asks at each start."""
    asked = [(-2, "DELETE", ""), (-1, "DELETE", ""), (1, "DELETE", "1"), (1, "INSERT", "1")]
    found = ids(placed([*asked, (1, "DELETE", "2")], started=started))
    until = f"until db/restarted/DELETE={number})"
    assert any(id.endswith(until) for id in found)
    assert all(id.endswith((until, "INSERT=1)")) for id in found if " until " in id)


def test_who_is_about_to_tidy_up_wakes_before_what_is_put_aside_is_used() -> None:
    """What is put aside and what is published may have the same first word."""
    aside, published, tidied = "INSERT INTO aside", "INSERT INTO rows", "DELETE FROM aside"
    said = [(text.partition(" ")[0], text) for text in (aside, published, tidied)]
    found = ids(placed_in([(n, *each) for n in (1, 2) for each in said]))
    assert [id for id in found if " until db/batch=2" in id] == [
        f"pause(driver, before db/conn=1/request={x} until db/batch=2/{until})"
        for until in ("DELETE=1", "INSERT=2")
        for x in ("1 INSERT", "2 INSERT", "3 DELETE")
    ]


def test_a_server_is_hit_at_the_last_request_that_changes_something() -> None:
    points = placed([(1, "BEGIN", ""), (1, "COMMIT", ""), (1, "HEAD /rows", "")], servers=["db"])
    request = "db/conn=1/request=2 COMMIT"
    server, slow = points[-2:]
    assert ids([slow]) == [f"crash(driver, awaiting {request})"]
    assert [fault.id for fault, _ in server.faults] == [
        f"restart(server, before {request})",
        f"pause(server, before {request})",
        f"silence({request})",
        f"restart(server, after {request})",
        f"restart(server, answered {request})",
    ]
    assert placed([(1, "HEAD /rows", "")], servers=["db"])[-1].faults[0][0].how == "lost"


def test_of_each_connection_the_last_request_may_be_slow_of_each_kind_the_first_and_last() -> None:
    """Where several are on their way at once, those that are not slow arrive meanwhile."""
    sent = [*[("POST /rows", "")] * 3, ("POST /marks", ""), ("HEAD /marks", "")]
    rows = ["conn=0/request=1 POST /rows", "conn=2/request=3 POST /rows"]
    for own, expected in (
        (True, [*rows, "conn=3/request=4 POST /marks"]),
        (False, ["conn=1/request=4 POST /marks"]),
    ):
        slow = [id for id in ids(placed_of(sent, own)) if "awaiting" in id]
        assert slow == [f"crash(driver, awaiting db/{request})" for request in expected]


def test_a_server_that_does_not_reply_is_killed_when_it_has_replied_to_what_came_next() -> None:
    clean = recording([(1, "basic.publish", ""), (1, "channel.close", ""), (1, "HEAD /x", "")])
    (talk,) = clean.conversations
    unreplied = replace(talk.requests[0], reply_size=0)
    clean = Recording((replace(talk, requests=(unreplied, *talk.requests[1:])),))
    points = wire_points(clean, cut_points(clean, clean).points, EVENTS, 2, "run1", ["db"])
    assert "restart(server, answered db/conn=1/request=2 channel.close)" in ids(points)
    assert not any(id.startswith("restart") and "HEAD" in id for id in ids(points))


def test_where_one_run_asked_once_more_requests_are_told_within_their_batch() -> None:
    asked = [(0, "Init", "0"), (0, "Init", "0"), (0, "Produce", "1"), (0, "Produce", "2")]
    later = [(1, "Produce", "3"), (1, "Produce", "4")]
    first, second = recording(asked + later), recording(asked[1:3] + later)
    assert len(cut_points(first, second).unpinned) > 3
    found = placeable(first, EVENTS, second, EVENTS)
    assert [r.id for r in found.unpinned] == [
        "db/conn=1/request=2 Init",
        "db/conn=1/request=4 Produce",
    ]
    points = wire_points(first, found.points, EVENTS, 2, "run1")
    assert "crash(driver, before db/batch=1/Produce=2)" in ids(points)
    assert placeable(first, EVENTS, first, EVENTS) == cut_points(first, first)


def told_alike(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Ids of the faults at requests of batch 1 that are called otherwise in another run."""
    runs = [recording([(1, label, "") for label in labels]) for labels in (first, second)]
    found = placeable(runs[0], EVENTS, runs[1], EVENTS)
    assert [r.label for r in found.unpinned] == []
    return ids(wire_points(runs[0], found.points, EVENTS, 2, "run1"))


def test_requests_whose_names_are_made_at_random_are_told_by_what_is_not() -> None:
    """An object's name has a random id, or the run's own name."""
    random = ("3f2a91c0-abcd-4e5f-9a1b-0c2d3e4f5a6b", "0b1c2d3e-1234-4aaa-bbbb-ffffffffffff")
    found = told_alike(*([f"PUT /run{n:04d}/b-{x}.json"] * 2 for n, x in enumerate(random)))
    assert "crash(driver, after db/batch=1/PUT /run?/b-?.json=1)" in found
    assert "omit-reply(db/batch=1/PUT /run?/b-?.json=2)" in found
    found = told_alike(["PUT /a/xyz", "POST /done"], ["PUT /a/zyx", "POST /done"])
    assert "crash(driver, after db/batch=1/PUT *=1)" in found
    for id in found:
        if "batch=1/PUT" in id:
            assert parse_fault(id).id == id


@given(st.lists(st.sampled_from(["PUT /a/x1", "PUT /a/x2", "PUT /b", "GET /b"]), max_size=6))
def test_a_name_that_is_common_to_several_is_counted_over_all_of_them(labels: list[str]) -> None:
    """The request that is counted when faults are placed is the one that meets them."""
    other = [f"{label[:5]}?{number}y{label[5:]}" for number, label in enumerate(labels)]
    runs = [recording([(1, label, "") for label in called]) for called in (labels, other)]
    for point in placeable(runs[0], EVENTS, runs[1], EVENTS).points:
        cut = ArmedCut(point, "once")
        met = [r for r in runs[0].requests if cut.met_by("db", Info(r.label), r.keys)]
        assert [r.id for r in met] == [point.request]


class _Armed:
    def __init__(self) -> None:
        self.hit: list[str] = []

    def hit_request(self, fault: str, *_: object, **more: object) -> None:
        self.hit.append(fault)


def test_a_request_told_within_a_batch_is_waited_for_when_that_begins() -> None:
    fault, run = parse_fault("omit(db/batch=1/Produce=2)"), _Armed()
    for again in (False, True):
        fault.arm(run, again)  # type: ignore[arg-type]
    for event in EVENTS[:3]:
        assert run.hit == []
        fault.met(event, run)  # type: ignore[arg-type]
    assert run.hit == [fault.id]
    assert fault.describe() == (
        "The second Produce to db in batch 1 was lost with its connection before it arrived."
    )


def test_what_is_supposed_of_a_server_is_said() -> None:
    asked = [(1, "BEGIN", ""), (1, "COMMIT", "")]
    assert taken_for_granted([]) == []
    (expiry,) = taken_for_granted(placed(asked, servers=["db"]))
    assert "outlives every outage" in expiry
    assert taken_for_granted(placed(asked)) == [
        expiry,
        "the server of db was not killed: what it forgets then was not seen",
    ]


def test_that_requests_are_taken_to_change_nothing_is_said() -> None:
    """A service whose HEAD commits something is another one than HTTP has it."""
    said = "requests with HEAD or OPTIONS to db change nothing, as HTTP (RFC 9110) says"
    assert said in taken_for_granted(placed([(1, "POST /rows", "a"), (1, "HEAD /rows", "")]))
    assert said not in taken_for_granted(placed([(1, "POST /rows", "a"), (1, "GET /rows", "")]))


requests = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(LABELS), st.sampled_from("abc")), max_size=8
).map(lambda asked: sorted(asked, key=lambda a: a[0]))


def test_a_batch_that_only_reads_holds_nobody_amid_transactions() -> None:
    asked = [(1, "SELECT", "a"), (2, "INSERT", "b"), (2, "UPDATE", "c")]
    woken = [id for id in ids(placed(asked)) if " until " in id]
    assert woken == ["pause(driver, before db/conn=1/request=1 SELECT until db/batch=2/UPDATE=1)"]


def test_what_is_done_once_only_is_hit_where_it_is_done() -> None:
    asked = [(0, "CREATE", ""), (0, "INSERT", "a"), (1, "INSERT", "b"), (2, "VACUUM", "")]
    points = placed(asked)
    requests = dict.fromkeys(fault.point.request for p in points for fault, _ in p.faults)
    assert list(requests) == ["db/conn=1/request=1 CREATE", "db/conn=1/request=3 INSERT"]
    # The server stands still, one is held until amid the next batch, the last is slow as well.
    assert [point.batch for point in points] == [0, 1, 1, 1, 1]


def test_a_later_batch_that_does_what_none_before_does_is_hit_as_the_last_one_is() -> None:
    asked = [(0, "INSERT", "a"), (1, "INSERT", "b"), (2, "INSERT", "c"), (2, "VACUUM", "")]
    points = placed(asked, servers=["db"], tail=[2])
    alone = [id for id in ids(points) if " until " not in id]
    window, later = (
        {id.replace(f"request={n} {label}", "it") for id in alone if f"request={n}" in id}
        for n, label in ((2, "INSERT"), (4, "VACUUM"))
    )
    assert window == later
    assert {"pause(driver, before db/conn=1/it)", "restart(server, before db/conn=1/it)"} <= later
    assert "crash(driver, after db/conn=1/request=3 INSERT)" in ids(points)


def test_nothing_is_hit_before_the_first_batch() -> None:
    later = [TraceEvent(e.step, e.phase, e.node, detail={**e.detail, CLOCK: 999}) for e in EVENTS]
    clean = recording([(0, "CREATE", "")])
    assert wire_points(clean, cut_points(clean, clean).points, later, 2, "run1") == []


def test_an_endpoint_is_known_by_what_a_batch_asks_of_it() -> None:
    run = recording([(0, "CREATE", ""), (1, "INSERT", "")])
    assert [endpoints_asked(run, EVENTS, batch) for batch in (0, 1, 2)] == [["db"], ["db"], []]


def test_requests_that_runs_do_not_make_equally_are_named() -> None:
    first, second = recording([(1, "A", ""), (1, "B", "")]), recording([(1, "A", ""), (1, "C", "")])
    assert not_placeable(cut_points(first, second).unpinned, EVENTS, 2) == ["db/conn=1/request=2 B"]
    assert not_placeable(cut_points(first, first).unpinned, EVENTS, 2) == []
    later, other = recording([(2, "A", "")]), recording([])
    unpinned = cut_points(later, other).unpinned
    assert not_placeable(unpinned, EVENTS, 2) == []
    assert not_placeable(unpinned, EVENTS, 2, tail=[2]) == ["db/conn=1/request=1 A"]


@given(requests, requests)
def test_faults_are_placed_only_where_both_clean_runs_are_the_same(
    first: list[Asked], second: list[Asked]
) -> None:
    points = placed(first, second)
    assert {point.batch for point in points} <= {0, 1}
    runs = [recording(asked).requests for asked in (first, second)]
    known = {r.keys.label for r in runs[0]} & {r.keys.label for r in runs[1]}
    by_id = {r.id: r for r in runs[0]}
    for point in points:
        for fault, _ in point.faults:
            if fault.point.by_count:
                assert len({sum(r.label == fault.label for r in run) for run in runs}) == 1
            else:
                assert by_id[fault.point.request].keys.label in known
    assert len(set(ids(points))) == len(ids(points))


@given(requests)
def test_equal_runs_leave_the_same_behind(asked: list[Asked]) -> None:
    assert placed(asked) == placed(asked)


@given(
    st.sampled_from(KINDS),
    st.sampled_from(get_args(How)),
    st.sampled_from(["INSERT", "POST /rows", "PUB a=b", "EndTxn"]),
    st.integers(1, 99),
    st.sampled_from(
        [
            WakeAtRequest(in_batch("omit", "api", "", "POST /marks", 2, 2)),
            WakeAtRequest(at_request("omit", "api", "POST /marks", 2)),
            WakeAtStep(Point("batch=2/sink.file=3.rename")),
        ]
    ),
)
def test_faults_told_by_number_are_known_by_their_ids(
    kind: Kind, how: How, label: str, number: int, amid: Wake
) -> None:
    over_the_run = CutPoint(kind, "db", "db/conn=1/request=1", "nth", label, number, label)
    until = amid if how == "amid" else None
    for point in (over_the_run, in_batch(kind, "db", "db/conn=1/request=1", label, number, 1)):
        fault = WireFault(point, how, until)
        found = parse_fault(fault.id)
        assert isinstance(found, WireFault)
        assert found.id == fault.id
        assert (found.how, found.label, found.point.occurrence) == (how, label, number)
        assert found.until == until
        assert found.point.batch == point.batch
        assert CutPoint.from_json(point.to_json()) == point


def test_ids_of_other_faults_are_not_taken_for_requests() -> None:
    for id in (
        "crash(driver, before batch=1/commits)",
        "crash(driver, before batch=1/p=0/a=0/source.middle#2)",
        "storage(EIO, before batch=1/sink.file=1.rename)",
        "omit(db/conn=1/request=2 INSERT)",
        "crash(server, before db/INSERT=1)",
        "pause(driver, after db/INSERT=1)",
    ):
        assert WireFault.parse(id) is None


def of_two_batches(*sent: tuple[int, str]) -> list[WirePoint]:
    """Where INSERTs of these two batches are hit."""
    clean = recording([(batch, "INSERT", detail) for batch, detail in sent])
    (talk,) = clean.conversations
    told = [
        replace(request, detail=detail)
        for request, (_, detail) in zip(talk.requests, sent, strict=True)
    ]
    clean = Recording((replace(talk, requests=tuple(told)),))
    return wire_points(clean, cut_points(clean, clean).points, EVENTS, 2, "run1")


def test_a_table_that_only_the_first_batch_writes_to_is_hit_there() -> None:
    """An INSERT is no INSERT into another table: a marker that is made once may come too early."""
    rows = "INSERT INTO rows VALUES ('m/000001', 1)"
    found = of_two_batches((0, "INSERT INTO progress VALUES (0)"), (0, rows), (1, rows))
    assert numbers(found) == [1, 3]


def test_what_differs_in_its_values_only_is_hit_in_the_last_batch() -> None:
    short = "INSERT INTO rows VALUES ('m/000001', 1)"
    cut = "INSERT INTO rows VALUES ('m/000001', 100), ('m/000002', 7), ('m/0…"
    assert numbers(of_two_batches((0, short), (1, cut))) == [2]
    assert numbers(of_two_batches((0, cut), (1, short))) == [2]
