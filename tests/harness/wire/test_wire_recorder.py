"""Recording through real sockets, and cutting what was recorded."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_server import Client, Counting

from bettong.harness.toxiproxy import ProxiedLink, ToxiproxyServer
from bettong.harness.wire import (
    CutPoint,
    Recording,
    WireEndpoint,
    WireError,
    WireRecorder,
    cut_points,
)
from bettong.harness.wire.conversation import Span, numbered
from bettong.lineage.errors import UsageError


@pytest.fixture
def server() -> Iterator[Counting]:
    server = Counting()
    yield server
    server.close()


@pytest.fixture
def recorder() -> Iterator[WireRecorder]:
    with WireRecorder() as recorder:
        yield recorder


@pytest.fixture
def relay(recorder: WireRecorder, server: Counting) -> WireEndpoint:
    return recorder.endpoint("kv", server.address)


def load(address: str, *values: str, retries: int = 0) -> bool:
    """A client that stores values, each as it is answered; sends again on a new connection."""
    client = Client(address)
    for value in values:
        answer = client.ask("SET", value)
        for _ in range(retries):
            if answer is None:
                client.close()
                client = Client(address)
                answer = client.ask("SET", value)
        if answer is None:
            client.close()
            return False
    client.close()
    return True


def clean(recorder: WireRecorder, relay: WireEndpoint, *values: str) -> Recording:
    recorder.begin()
    assert load(relay.address, *values)
    return recorder.recording()


def points(recorder: WireRecorder, relay: WireEndpoint, *values: str) -> dict[str, CutPoint]:
    first, second = (clean(recorder, relay, *values) for _ in range(2))
    found = cut_points(first, second)
    assert not found.unpinned
    recorder.begin()
    return {point.id: point for point in found.points}


def test_a_conversation_is_recorded(recorder: WireRecorder, relay: WireEndpoint) -> None:
    recording = clean(recorder, relay, "a", "bb")
    [talk] = recording.conversations
    assert (talk.endpoint, talk.number, talk.protocol) == ("kv", 1, "redis")
    assert talk.problem is None
    assert [request.id for request in talk.requests] == [
        "kv/conn=1/request=1 SET",
        "kv/conn=1/request=2 SET",
    ]
    assert [request.detail for request in talk.requests] == ["SET a", "SET bb"]
    assert [(r.size, r.reply_size) for r in talk.requests] == [(20, 4), (21, 4)]
    assert (talk.sent, talk.received) == (41, 8)
    assert sum(chunk.size for chunk in talk.chunks) == 49
    assert talk.chunks[0].stream == "upstream"
    assert relay.bytes == 49


def test_the_clock_tells_what_was_met_before_it(
    recorder: WireRecorder, relay: WireEndpoint
) -> None:
    recorder.begin()
    client = Client(relay.address)
    assert client.ask("SET", "a")
    now = recorder.clock()
    assert recorder.met() == 1
    assert client.ask("SET", "b")
    client.close()
    assert [request.order < now for request in recorder.recording().requests] == [True, False]


def test_a_relay_that_nobody_uses_says_so(recorder: WireRecorder, relay: WireEndpoint) -> None:
    recorder.begin()
    assert recorder.recording() == Recording(())
    assert relay.bytes == 0


def test_points_come_in_the_order_of_the_requests(
    recorder: WireRecorder, relay: WireEndpoint
) -> None:
    assert list(points(recorder, relay, "a", "b")) == [
        "omit(kv/conn=1/request=1 SET)",
        "omit-reply(kv/conn=1/request=1 SET)",
        "cut(kv/conn=1/request=1 SET)",
        "omit(kv/conn=1/request=2 SET)",
        "omit-reply(kv/conn=1/request=2 SET)",
        "cut(kv/conn=1/request=2 SET)",
    ]


@pytest.mark.parametrize("kind", ["omit", "cut"])
def test_a_request_that_is_cut_is_not_carried_out(
    recorder: WireRecorder, relay: WireEndpoint, server: Counting, kind: str
) -> None:
    point = points(recorder, relay, "a", "b", "c")[f"{kind}(kv/conn=1/request=2 SET)"]
    server.done.clear()
    armed = recorder.arm(point)
    assert not load(relay.address, "a", "b", "c")
    assert server.done == ["SET a"]
    evidence = armed.heal()
    assert (evidence.fired, evidence.times, evidence.request) == (True, 1, "SET b")


def test_a_reply_that_is_lost_was_earned(
    recorder: WireRecorder, relay: WireEndpoint, server: Counting
) -> None:
    point = points(recorder, relay, "a", "b", "c")["omit-reply(kv/conn=1/request=2 SET)"]
    server.done.clear()
    armed = recorder.arm(point)
    assert not load(relay.address, "a", "b", "c")
    assert server.done == ["SET a", "SET b"]
    assert armed.heal().fired


def test_a_cut_that_nothing_met_did_not_fire(recorder: WireRecorder, relay: WireEndpoint) -> None:
    point = points(recorder, relay, "a", "b")["omit(kv/conn=1/request=2 SET)"]
    armed = recorder.arm(point)
    assert load(relay.address, "a", "other")
    evidence = armed.heal()
    assert (evidence.fired, evidence.times) == (False, 0)


def test_a_cut_that_fires_once_lets_the_retry_through(
    recorder: WireRecorder, relay: WireEndpoint, server: Counting
) -> None:
    point = points(recorder, relay, "a", "b")["omit-reply(kv/conn=1/request=1 SET)"]
    server.done.clear()
    armed = recorder.arm(point)
    assert load(relay.address, "a", "b", retries=1)
    assert server.done == ["SET a", "SET a", "SET b"]
    assert armed.heal().times == 1


def test_a_cut_that_lasts_meets_every_retry_of_its_request_and_no_other(
    recorder: WireRecorder, relay: WireEndpoint, server: Counting
) -> None:
    point = points(recorder, relay, "a", "b")["omit-reply(kv/conn=1/request=1 SET)"]
    server.done.clear()
    armed = recorder.arm(point, lasts="retries")
    assert not load(relay.address, "a", "b", retries=3)
    assert server.done == ["SET a"] * 4
    assert load(relay.address, "b")
    assert armed.evidence().times == 4
    armed.heal()
    assert load(relay.address, "a")


def test_one_connection_is_refused_and_the_next_one_is_not(
    recorder: WireRecorder, relay: WireEndpoint, server: Counting
) -> None:
    client = Client(relay.address)
    assert client.ask("SET", "1") is not None
    with relay.refuse_once() as refusal:
        assert client.ask("SET", "2") is None  # it was closed
        assert not refusal.evidence().fired
        assert not load(relay.address, "3")
        assert refusal.evidence().times == 1
        assert load(relay.address, "4")
    client.close()
    assert (refusal.evidence().times, server.done) == (1, ["SET 1", "SET 4"])


def test_a_request_is_told_by_its_label_from_the_arming_on(
    recorder: WireRecorder, relay: WireEndpoint, server: Counting
) -> None:
    load(relay.address, "1")
    point = CutPoint("omit", "kv", "kv/2nd SET", "since", "SET", 2, "SET")
    with recorder.arm(point) as cut:
        assert not load(relay.address, "2", "3")
        assert load(relay.address, "4")
    assert (cut.evidence().times, server.done) == (1, ["SET 1", "SET 2", "SET 4"])


@pytest.mark.parametrize(
    ("kind", "done"), [("omit", ["SET a"]), ("cut", ["SET a"]), ("omit-reply", ["SET a", "SET b"])]
)
def test_an_action_runs_exactly_at_the_point(
    recorder: WireRecorder, relay: WireEndpoint, server: Counting, kind: str, done: list[str]
) -> None:
    point = points(recorder, relay, "a", "b", "c")[f"{kind}(kv/conn=1/request=2 SET)"]
    server.done.clear()
    seen: list[list[str]] = []
    armed = recorder.arm(point, action=lambda: seen.append(list(server.done)), close=False)
    assert load(relay.address, "a", "b", "c")
    assert seen == [done]
    assert server.done == ["SET a", "SET b", "SET c"]
    assert armed.heal().times == 1


def test_other_connections_go_on_while_an_action_runs(
    recorder: WireRecorder, relay: WireEndpoint
) -> None:
    point = points(recorder, relay, "a")["omit(kv/conn=1/request=1 SET)"]
    reached, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        assert go_on.wait(60)

    recorder.arm(point, action=hold, close=False)
    client = Client(relay.address)
    client.send("SET", "a")
    assert reached.wait(60)
    assert load(relay.address, "x", "y")
    go_on.set()
    assert client.answer() == "5"  # two in the clean runs, x and y, then a
    client.close()


def test_an_action_that_fails_is_reported(recorder: WireRecorder, relay: WireEndpoint) -> None:
    point = points(recorder, relay, "a")["omit(kv/conn=1/request=1 SET)"]

    def fail() -> None:
        raise RuntimeError("no such pid")

    armed = recorder.arm(point, action=fail)
    assert not load(relay.address, "a")
    with pytest.raises(WireError, match="RuntimeError: no such pid"):
        armed.heal()
    assert armed.evidence().fired


def test_racing_connections_are_told_by_what_they_say(
    recorder: WireRecorder, relay: WireEndpoint, server: Counting
) -> None:
    def race(order: list[str]) -> Recording:
        recorder.begin()
        clients = {name: Client(relay.address) for name in order}
        for name in order:
            assert clients[name].ask("SET", name)
            assert clients[name].ask("SET", "same")
        recording = recorder.recording()
        for client in clients.values():
            client.close()
        return recording

    first, second = race(["p0", "p1"]), race(["p1", "p0"])
    ids = [
        {request.detail: request.id for talk in run.conversations for request in talk.requests[:1]}
        for run in (first, second)
    ]
    assert ids[0] == ids[1]
    found = cut_points(first, second)
    assert not found.unpinned
    last_of_p1 = [
        point
        for point in found.points
        if point.kind == "omit" and point.request == ids[0]["SET p1"].replace("=1 S", "=2 S")
    ]
    recorder.begin()
    server.done.clear()
    recorder.arm(last_of_p1[0])
    assert not load(relay.address, "p1", "same")
    assert load(relay.address, "p0", "same")
    assert server.done == ["SET p1", "SET p0", "SET same"]


def test_what_differs_between_clean_runs_is_told_by_labels_or_not_at_all(
    recorder: WireRecorder, relay: WireEndpoint, server: Counting
) -> None:
    one, two = clean(recorder, relay, "a", "time=1"), clean(recorder, relay, "a", "time=2")
    found = cut_points(one, two)
    assert {(p.kind, p.match) for p in found.points if "request=2" in p.request} == {
        ("omit", "labels"),
        ("omit-reply", "labels"),
        ("cut", "labels"),
    }
    point = next(p for p in found.points if p.id == "omit(kv/conn=1/request=2 SET)")
    recorder.begin()
    server.done.clear()
    armed = recorder.arm(point, lasts="retries")
    assert not load(relay.address, "a", "time=3", retries=1)
    assert server.done == ["SET a"]
    assert armed.heal().times == 2

    longer = clean(recorder, relay, "a", "time=1", "more")
    assert [r.id for r in cut_points(longer, two).unpinned] == ["kv/conn=1/request=3 SET"]


def test_requests_that_come_on_one_connection_or_another_are_told_by_their_number(
    recorder: WireRecorder, relay: WireEndpoint, server: Counting
) -> None:
    def split(*loads: tuple[str, ...]) -> Recording:
        recorder.begin()
        for values in loads:
            assert load(relay.address, *values)
        return recorder.recording()

    one, two = split(("time=1", "time=2", "time=3")), split(("time=4", "time=5"), ("time=6",))
    found = cut_points(one, two)
    assert not found.unpinned
    point = next(p for p in found.points if p.id == "omit(kv/SET=3)")
    assert CutPoint.from_json(point.to_json()) == point
    recorder.begin()
    server.done.clear()
    armed = recorder.arm(point)
    assert load(relay.address, "time=7")
    assert not load(relay.address, "time=8", "time=9")
    assert server.done == ["SET time=7", "SET time=8"]
    assert armed.heal().times == 1


def test_a_new_run_closes_what_is_left_of_the_last(
    recorder: WireRecorder, relay: WireEndpoint
) -> None:
    client = Client(relay.address)
    assert client.ask("SET", "a")
    recorder.begin()
    assert client.ask("SET", "b") is None
    assert recorder.recording().conversations == ()
    client.close()


def test_a_server_that_is_not_there_closes_the_client(recorder: WireRecorder) -> None:
    gone = Counting()
    gone.close()
    relay = recorder.endpoint("gone", gone.address)
    assert Client(relay.address).ask("SET", "a") is None


def test_a_client_that_goes_past_the_relay_is_seen(relay: WireEndpoint, server: Counting) -> None:
    through = Client(relay.address)
    assert through.ask("SET", "a")
    assert relay.bypassed() == []
    host, _, port = server.address.rpartition(":")
    program = (
        "import socket, sys\n"
        f"sock = socket.create_connection(({host!r}, {port}))\n"
        "print(flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as stranger:
        assert stranger.stdout is not None
        stranger.stdout.readline()
        for session in (None, stranger.pid):
            found = [seen.partition(" ")[2] for seen in relay.bypassed(session)]
            assert found == [f"(pid {stranger.pid})"]
        assert relay.bypassed(os.getsid(0)) == []
        stranger.communicate()
    assert relay.bypassed() == []
    through.close()


def test_mistakes_are_named(recorder: WireRecorder, relay: WireEndpoint) -> None:
    with pytest.raises(UsageError, match="did you mean kafka"):
        recorder.endpoint("x", "127.0.0.1:1", protocol="kafak")
    with pytest.raises(UsageError, match="write HOST:PORT"):
        recorder.endpoint("x", "nowhere")
    with pytest.raises(UsageError, match="already"):
        recorder.endpoint("kv", "127.0.0.1:1")
    point = CutPoint("omit", "kvs", "kvs/conn=1/request=1 SET", "content", "k", 1, "o")
    with pytest.raises(UsageError, match=r"endpoint 'kvs' is not known; did you mean kv\?"):
        recorder.arm(point)


def test_cut_points_survive_json(recorder: WireRecorder, relay: WireEndpoint) -> None:
    for point in points(recorder, relay, "a").values():
        assert CutPoint.from_json(point.to_json()) == point


@given(
    st.dictionaries(
        st.sampled_from(["kind", "endpoint", "request", "match", "key", "occurrence", "own", "x"]),
        st.one_of(st.text(max_size=5), st.integers(), st.none(), st.just("omit")),
    )
)
def test_what_is_no_cut_point_is_refused(given_: dict[str, object]) -> None:
    try:
        point = CutPoint.from_json(given_)
    except UsageError:
        return
    assert point.to_json() == given_


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30), st.text("ab", max_size=2))))
def test_connections_are_numbered_without_gaps_and_in_time(
    spans: list[tuple[int, int, str]],
) -> None:
    made = [Span(opened, opened + length, (message,)) for opened, length, message in spans]
    numbers = numbered(made)
    assert sorted(numbers) == list(range(1, len(made) + 1))
    for a, number_a in zip(made, numbers, strict=True):
        for b, number_b in zip(made, numbers, strict=True):
            if a.closed < b.opened:
                assert number_a < number_b


def test_connections_that_were_open_together_are_numbered_by_what_was_said() -> None:
    spans = [Span(1, 10, ("b",)), Span(2, 9, ("a",)), Span(11, 12, ("0",)), Span(3, 99, ("z",))]
    assert numbered(spans) == [2, 1, 3, 4]


@pytest.mark.parametrize("kind", ["omit", "omit-reply", "cut"])
def test_cuts_work_behind_a_toxiproxy(
    recorder: WireRecorder, relay: WireEndpoint, server: Counting, kind: str
) -> None:
    """As sinks under test are wired: client, Toxiproxy, relay, server."""
    with ToxiproxyServer() as toxiproxy:
        link = ProxiedLink.create(toxiproxy.client(), "sink->kv", relay.address)
        address = f"{link.address[0]}:{link.address[1]}"
        runs = []
        for _ in range(2):
            recorder.begin()
            assert load(address, "a", "b")
            runs.append(recorder.recording())
        wanted = f"{kind}(kv/conn=1/request=2 SET)"
        point = next(p for p in cut_points(*runs).points if p.id == wanted)
        recorder.begin()
        server.done.clear()
        armed = recorder.arm(point)
        assert not load(address, "a", "b")
        assert server.done == (["SET a", "SET b"] if kind == "omit-reply" else ["SET a"])
        assert armed.heal().fired
        with link.refuse(), pytest.raises(ConnectionRefusedError):
            Client(address)
        assert load(address, "c")
