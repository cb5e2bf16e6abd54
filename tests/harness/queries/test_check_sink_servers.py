"""Sinks that talk to real servers: cut at their requests, each way of failing is seen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from chosen_faults import FAILED_TASK
from chosen_faults import seen as shown
from item_server import ItemServer
from line_server import LineServer

from bettong.harness.queries.check import check_one
from bettong.harness.queries.faults.kinds import refused, refused_once
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.wire_fault import How
from bettong.harness.queries.faults.zombie import WAITED
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.endpoints import EndpointProxies
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.run.runner import SinkRunner
from bettong.harness.queries.search.executor import SinkExecutor
from bettong.harness.queries.search.later_batches import earlier_batches, later_batches
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.sink.loading import load_target
from bettong.harness.queries.sink.rows import Input
from bettong.harness.servers import ServerMissingError
from bettong.lineage.errors import UsageError

HERE = str(Path(__file__).with_name("server_mutants.py"))
LINES = f"{Path(__file__).with_name('line_server.py')}:Lines"
ITEMS = str(Path(__file__).with_name("item_server.py"))
pytestmark = [pytest.mark.spark, pytest.mark.servers]


@contextlib.contextmanager
def executor_of(
    environments: SparkEnvironments, name: str, together: int = 1
) -> Iterator[SinkExecutor]:
    """The sink with its own server, after two clean runs."""
    target = name if ".py:" in name else f"bettong.scenarios.sinks.{name}"
    sink = load_target(target, {})
    with contextlib.ExitStack() as stack:
        try:
            servers = {n: stack.enter_context(s()) for n, s in sink.servers.items()}
        except ServerMissingError as e:
            pytest.skip(str(e))
        addresses = {name: server.address for name, server in servers.items()}
        endpoint_proxies = stack.enter_context(EndpointProxies(addresses, servers))
        runner = SinkRunner(
            environments(sink.spark_config), Target(target), Input(), endpoint_proxies
        )
        with executor_on(runner, servers, together) as executor:
            yield executor


@contextlib.contextmanager
def executor_on(
    runner: SinkRunner, servers: Iterable[str], together: int = 1
) -> Iterator[SinkExecutor]:
    """After two clean runs, which must be alike."""
    executor = SinkExecutor(runner, Input(), False, Why(2, Input().batches, together))
    first, clean = executor.run(), executor.last
    again = executor.run()
    assert first.outcome == again.outcome == "good"
    assert first.fingerprint == again.fingerprint
    other = executor.last
    executor.why.tail = later_batches(clean, other, 2)
    executor.why.head = earlier_batches(clean, other, 2)
    executor.why.read_both(clean, other, servers)
    executor.prepared(first, clean)
    yield executor


def kinds(executor: SinkExecutor, label: str, kind: str, how: How) -> set[str]:
    """Hit the first request of batch 1 with that label; empty for any."""
    fault = next(
        fault
        for point in executor.why.wire
        for fault, _ in point.faults
        if fault.point.request.endswith(f" {label}".rstrip())
        and fault.point.kind == kind
        and fault.how == how
    )
    execution = executor.run(frozenset({fault.id}))
    assert execution.not_fired == ()
    return {a.kind for a in execution.anomalies}


@pytest.mark.parametrize(
    ("name", "label", "kind", "how", "seen"),
    [
        ("redis:Push", "RPUSH", "omit-reply", "lost", {"Duplicate"}),
        ("redis:Push", "RPUSH", "omit", "lost", set()),
        ("redis:Set", "HSET", "omit-reply", "lost", set()),
        ("redis:GuardedPush", "EXEC", "omit-reply", "lost", set()),
        ("redis:GuardedPush", "EXEC", "omit-reply", "crash", set()),
        ("http:Post", "POST /rows", "omit-reply", "lost", {"Duplicate"}),
        ("http:PostWithKey", "POST /rows", "omit-reply", "lost", set()),
        (f"{HERE}:GivesUp", "POST /rows", "omit", "lost", set()),
        (f"{HERE}:GivesUp", "POST /rows", "omit", "always lost", {"Loss"}),
        ("http:PostWithKey", "POST /rows", "omit", "always lost", set()),
        (f"{HERE}:TakesAnyAnswer", "POST /rows", "omit", "unavailable", {"Loss"}),
        ("http:PostWithKey", "POST /rows", "omit", "unavailable", set()),
        (f"{HERE}:AsksFiveTimes", "POST /rows", "omit", "unavailable", set()),
        (f"{HERE}:AsksFiveTimes", "POST /rows", "omit", "always unavailable", {"Loss"}),
        ("http:PostWithKey", "POST /rows", "omit", "always unavailable", set()),
        (f"{HERE}:HalvesWhatFails", "POST /rows", "omit", "always unavailable", set()),
        (f"{HERE}:KeyForEachTry", "POST /rows", "omit", "silent", set()),
        (f"{HERE}:KeyForEachTry", "POST /rows", "omit", "paused", {"Duplicate"}),
        (f"{HERE}:HalvesWhatFails", "POST /rows", "omit-reply", "timed out", {"Duplicate"}),
        ("http:PostWithKey", "POST /rows", "omit-reply", "timed out", set()),
        (f"{HERE}:DropsWhatIsItsOwnFault", "POST /rows", "omit", "unavailable", set()),
        (f"{HERE}:DropsWhatIsItsOwnFault", "POST /rows", "refuse", "refused", {"Loss"}),
        ("http:PostWithKey", "POST /rows", "refuse", "refused", set()),
        (f"{HERE}:LeavesErrorsInPipeline", "HSET", "omit", "lost", set()),
        (f"{HERE}:LeavesErrorsInPipeline", "HSET", "refuse", "refused", {"Loss"}),
        ("redis:GuardedPush", "RPUSH", "refuse", "refused", set()),
        ("redis:GuardedPush", "EXEC", "refuse", "refused", set()),
        (f"{HERE}:SkipsWhatIsRefused", "INSERT", "refuse", "refused", {"Loss"}),
        (f"{HERE}:RetriesLastStatement", "INSERT", "refuse", "refused", {"Loss"}),
        (f"{HERE}:RetriesTransaction", "INSERT", "refuse", "refused", set()),
        (f"{HERE}:RetriesTransaction", "COMMIT", "refuse", "refused", set()),
        ("postgres:OneTransaction", "COMMIT", "refuse", "refused", set()),
        ("postgres:SwallowsErrors", "COMMIT", "omit", "lost", {"Loss"}),
        ("postgres:OneTransaction", "COMMIT", "omit", "crash", set()),
        ("postgres:OneTransaction", "COMMIT", "omit-reply", "answered", set()),
        ("postgres:AsynchronousCommit", "COMMIT", "omit-reply", "restarted", {"Loss"}),
        ("postgres:AsynchronousCommit", "COMMIT", "omit-reply", "answered", {"Loss"}),
        ("postgres:RowByRow", "INSERT", "omit-reply", "lost", {"Duplicate"}),
        ("jdbc:JdbcAppend", "COMMIT", "omit-reply", "lost", {"Duplicate"}),
        ("kafka:Transactional", "EndTxn", "omit", "crash", set()),
        ("kafka:Transactional", "EndTxn", "omit-reply", "crash", set()),
        ("kafka:Transactional", "EndTxn", "omit-reply", "lost", set()),
        ("kafka:Transactional", "EndTxn", "omit-reply", "always lost", set()),
        ("kafka:IdempotentProducer", "Produce", "refuse", "refused", set()),
        ("kafka:Transactional", "Produce", "refuse", "refused", set()),
        (f"{HERE}:FlushesAndGoesOn", "Produce", "refuse", "refused", {"Loss"}),
        ("kafka:PreparedThenMarked", "EndTxn", "omit", "crash", {"Loss"}),
    ],
)
def test_a_request_is_hit(
    environments: SparkEnvironments, name: str, label: str, kind: str, how: How, seen: set[str]
) -> None:
    with executor_of(environments, name) as executor:
        assert kinds(executor, label, kind, how) == seen


@pytest.mark.parametrize(
    ("name", "request_of", "seen", "why"),
    [
        ("AskFirst", "request=3 INSERT", {"Duplicate"}, "the one that took over was done"),
        ("OneTransaction", "request=3 INSERT", set(), "the one that took over was done"),
        ("OneTransaction", "request=5 COMMIT", set(), "the one that took over waited for it"),
    ],
)
def test_a_request_comes_late_from_a_driver_that_was_thought_dead(
    environments: SparkEnvironments, name: str, request_of: str, seen: set[str], why: str
) -> None:
    with executor_of(environments, f"postgres:{name}") as executor:
        fault = next(
            fault
            for point in executor.why.wire
            for fault, _ in point.faults
            if fault.takes_over and fault.point.request.endswith(request_of)
        )
        execution = executor.run(frozenset({fault.id}))
        assert execution.not_fired == ()
        assert why in execution.evidence[fault.id]
        assert {a.kind for a in execution.anomalies} == seen


def test_a_driver_that_was_thought_dead_outlasts_the_lease_of_its_lock(
    environments: SparkEnvironments,
) -> None:
    with executor_of(environments, f"{HERE}:LeasesLock") as executor:
        assert kinds(executor, "EXEC", "omit", "late") == {"Duplicate"}


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("realistic:StagesThenMerges", {"Loss"}),
        ("realistic:StagesForItself", set()),
        ("postgres:OneTransaction", set()),
    ],
)
def test_a_driver_that_was_thought_dead_wakes_amid_the_next_batch(
    environments: SparkEnvironments, name: str, seen: set[str]
) -> None:
    with executor_of(environments, name) as executor:
        fault = next(
            fault
            for point in executor.why.wire
            for fault, _ in point.faults
            if fault.until is not None and fault.until.batch is not None
        )
        execution = executor.run(frozenset({fault.id}))
        assert execution.not_fired == ()
        assert "was amid a batch" in execution.evidence[fault.id]
        assert {a.kind for a in execution.anomalies} == seen


def _is_staged(fault: QueryFault) -> bool:
    """Whether a driver stages when the next batch is staged, and about to be loaded."""
    return "before redis/" in fault.id and "until redis/batch=2/GET" in fault.id


@pytest.mark.parametrize(
    ("name", "seen"),
    [("StagesElsewhere", {"Loss", "Duplicate"}), ("StagesElsewhereByBatch", set())],
)
def test_a_driver_that_was_thought_dead_wakes_between_what_is_staged_and_its_load(
    environments: SparkEnvironments, name: str, seen: set[str]
) -> None:
    with executor_of(environments, f"{HERE}:{name}") as executor:
        fault = next(x for x in executor.why.across if _is_staged(x))
        execution = executor.run(frozenset({fault.id}))
        assert execution.not_fired == ()
        assert {a.kind for a in execution.anomalies} == seen


def test_two_transactions_break_between_them(environments: SparkEnvironments) -> None:
    for name, seen in (("RowsThenMarker", {"Duplicate"}), ("MarkerThenRows", {"Loss"})):
        with executor_of(environments, f"postgres:{name}") as executor:
            assert kinds(executor, "COMMIT", "omit-reply", "crash") == seen


def test_a_marker_among_posts_to_one_place_is_one_of_its_own(
    environments: SparkEnvironments,
) -> None:
    with executor_of(environments, f"{HERE}:MarksAmongPosts") as executor:
        faults = {
            fault.point.request.partition("request=")[2]: fault
            for point in executor.why.wire
            for fault, _ in point.faults
            if fault.how == "crash" and fault.point.kind == "omit-reply"
        }
        execution = executor.run(frozenset({faults["3 POST /rows"].id}))
        assert execution.not_fired == ()
        assert {a.kind for a in execution.anomalies} == {"Loss"}


def test_between_its_first_and_its_last_row_a_driver_dies_too(
    environments: SparkEnvironments,
) -> None:
    with executor_of(environments, f"{HERE}:KnowsItsEnds") as executor:
        deaths = [
            fault.id
            for point in executor.why.wire
            for fault, _ in point.faults
            if fault.how == "crash" and fault.label == "RPUSH"
        ]
        found = {}
        for id in deaths:
            execution = executor.run(frozenset({id}))
            assert execution.not_fired == ()
            found[id.partition("request=")[2]] = {a.kind for a in execution.anomalies}
        assert {id: kinds for id, kinds in found.items() if kinds} == {"3 RPUSH)": {"Duplicate"}}


def test_what_only_a_later_batch_asks_is_hit(environments: SparkEnvironments) -> None:
    with executor_of(environments, f"{HERE}:ArchivesThirds") as executor:
        assert executor.why.tail == {2}
        assert kinds(executor, "DEL", "omit", "crash") == {"Duplicate"}


def test_what_only_the_first_batch_asks_is_late_too(environments: SparkEnvironments) -> None:
    with executor_of(environments, f"{HERE}:TruncatesFirst") as executor:
        assert executor.why.head == {0}
        assert kinds(executor, "TRUNCATE", "omit", "late") == {"Loss"}


def test_who_waits_for_what_a_driver_has_locked_is_not_waited_for(
    environments: SparkEnvironments,
) -> None:
    with executor_of(environments, f"{HERE}:LocksFirst") as executor:
        held = "pause(driver, from batch=1/p=0/a=0/source.middle until after batch=3/commits)"
        execution = executor.run(frozenset({held}))
        assert (execution.outcome, execution.not_fired) == ("good", ())
        assert WAITED in execution.evidence[held]


def test_a_failed_attempt_copies_twice(environments: SparkEnvironments) -> None:
    with executor_of(environments, "postgres:CopyPerPartition") as executor:
        failed = "storage(EIO, after batch=1/stage=0/p=0/a=0/task)"
        execution = executor.run(frozenset({failed}))
        assert {a.kind for a in execution.anomalies} == {"Duplicate"}


def test_a_server_that_is_killed_keeps_what_it_has_answered(
    environments: SparkEnvironments,
) -> None:
    for name, seen in ((f"{HERE}:ForgetfulSet", {"Loss"}), ("redis:Set", set())):
        with executor_of(environments, name) as executor:
            assert kinds(executor, "HSET", "omit-reply", "restarted") == seen


def test_a_server_that_stands_still_carries_out_late_what_was_given_up(
    environments: SparkEnvironments,
) -> None:
    for name, label, seen in (("redis:Push", "RPUSH", {"Duplicate"}), ("redis:Set", "HSET", set())):
        with executor_of(environments, name) as executor:
            assert kinds(executor, label, "omit", "paused") == seen


def test_an_endpoint_that_refuses_connections(environments: SparkEnvironments) -> None:
    for name, seen in ((f"{HERE}:SwallowingSet", {"Loss"}), ("redis:Set", set())):
        with executor_of(environments, name) as executor:
            fault = refused("redis", 1)
            execution = executor.run(frozenset({fault.id}))
            assert "refused new ones" in execution.evidence[fault.id]
            assert execution.not_fired == ()
            assert {a.kind for a in execution.anomalies} == seen


def test_one_connection_is_refused(environments: SparkEnvironments) -> None:
    for name, seen in ((f"{HERE}:SwallowingOnceSet", {"Loss"}), ("redis:Set", set())):
        with executor_of(environments, name) as executor:
            execution = executor.run(frozenset({refused_once("redis", 1).id}))
            assert execution.not_fired == ()
            assert {a.kind for a in execution.anomalies} == seen


def test_the_wire_is_hit_while_a_crash_is_recovered_from(
    environments: SparkEnvironments,
) -> None:
    crash = "crash(driver, before batch=1/commits)"
    for name, label, seen in (
        (f"{HERE}:RepairsOnce", "RPUSH", {"Loss"}),
        ("redis:Set", "HSET", set()),
    ):
        with executor_of(environments, name, together=2) as executor:
            alone = executor.run(frozenset({crash}))
            assert alone.outcome == "good"
            lost = f"omit(redis/restarted/{label}=1)"
            assert lost in alone.lineage.faults
            both = executor.run(frozenset({crash, lost}))
            assert both.not_fired == ()
            assert {a.kind for a in both.anomalies} == seen


def test_half_of_a_frame(environments: SparkEnvironments) -> None:
    for at_once, seen in ((True, {"Duplicate"}), (False, set())):
        with (
            LineServer(at_once) as server,
            EndpointProxies({"lines": server.address}) as endpoint_proxies,
        ):
            target = Target(LINES)
            with executor_on(
                SinkRunner(environments({}), target, Input(), endpoint_proxies), ()
            ) as executor:
                assert kinds(executor, "", "cut", "lost") == seen


@pytest.mark.parametrize(("name", "seen"), [("Items", set()), ("ItemsUnseen", {"Loss"})])
def test_items_are_refused_one_by_one(
    environments: SparkEnvironments, name: str, seen: set[str]
) -> None:
    with (
        ItemServer() as server,
        EndpointProxies({"items": server.address}) as endpoint_proxies,
    ):
        runner = SinkRunner(environments({}), Target(f"{ITEMS}:{name}"), Input(), endpoint_proxies)
        with executor_on(runner, ()) as executor:
            assert kinds(executor, "POST /rows/_bulk", "omit", "unavailable") == set()
            assert kinds(executor, "POST /rows/_bulk", "refuse", "refused") == seen


def test_sparks_kafka_sink_writes_again_when_a_task_failed(environments: SparkEnvironments) -> None:
    assert shown(environments, "kafka:SparkKafka", FAILED_TASK) == {"Duplicate"}


ELSEWHERE = """
from bettong.harness.servers import KafkaServer
from bettong.scenarios.sinks.kafka import IdempotentProducer

def elsewhere():
    server = KafkaServer()
    server.advertised = server.direct
    return server

class Past(IdempotentProducer):
    servers = {"kafka": elsewhere}
"""


def test_a_client_that_was_sent_past_the_link_is_reported(
    environments: SparkEnvironments, tmp_path: Path
) -> None:
    path = tmp_path / "past.py"
    path.write_text(ELSEWHERE)
    with pytest.raises(UsageError, match="went past the link"):
        check_one(Request(f"{path}:Past"), environments, print)


FOR_EVER = """
from bettong.scenarios.sinks.kafka import IdempotentProducer

class ForEver(IdempotentProducer):
    def producer(self, env):
        return self.new_producer(env, batch_size=1)  # a batch for each record

    def send(self, producer, env, values):
        for topic, each in values.items():
            for value in each:
                producer.send(self.topic(env, topic), value)
            producer.flush()
"""


@pytest.mark.slow
def test_a_client_that_never_gives_up_is_stuck_and_its_line_is_told(
    environments: SparkEnvironments, tmp_path: Path
) -> None:
    """kafka-python 3.0.12: behind a batch that has expired the others wait for ever."""
    path = tmp_path / "producer.py"
    path.write_text(FOR_EVER)
    lost = "omit(kafka/batch=1/Produce=1) and each time again"
    result = check_one(Request(f"{path}:ForEver", only=(lost,)), environments, print)
    assert result.verdict == "invalid"
    (found,) = result.counterexamples
    (stuck,) = [a for a in found.anomalies if a.kind == "Stuck"]
    assert "it stands in producer.py, line 12, in send: producer.flush()" in str(stuck.seen)
