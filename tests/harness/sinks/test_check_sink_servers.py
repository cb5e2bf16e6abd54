"""Sinks that talk to real servers: cut at their requests, each way of failing is seen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from bettong.harness.servers import ServerMissingError
from bettong.harness.sinks.arena import ArenaFor, arenas
from bettong.harness.sinks.executor import SinkExecutor
from bettong.harness.sinks.job import Target
from bettong.harness.sinks.rows import Input
from bettong.harness.sinks.run import SinkRunner
from bettong.harness.sinks.target import load_target
from bettong.harness.sinks.why import Why
from bettong.harness.sinks.wire_faults import How, wire_points
from bettong.harness.sinks.wires import Wires

pytestmark = [pytest.mark.spark, pytest.mark.servers, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def arena_for() -> Iterator[ArenaFor]:
    with arenas(print) as arena_for:
        yield arena_for


@contextlib.contextmanager
def executor_of(arena_for: ArenaFor, name: str) -> Iterator[SinkExecutor]:
    """The sink with its own server, after two clean runs."""
    target = f"bettong.scenarios.sinks.{name}"
    sink = load_target(target, {})
    with contextlib.ExitStack() as stack:
        try:
            servers = {n: stack.enter_context(s()) for n, s in sink.servers.items()}
        except ServerMissingError as e:
            pytest.skip(str(e))
        addresses = {name: server.address for name, server in servers.items()}
        wires = stack.enter_context(Wires(addresses, servers))
        runner = SinkRunner(arena_for({}), Target(target), Input(), wires)
        executor = SinkExecutor(runner, Input(), False, Why(2, Input().batches, 1))
        first, clean = executor.run(), executor.last
        again = executor.run()
        assert first.outcome == again.outcome == "good"
        assert first.fingerprint == again.fingerprint
        recordings = clean.recording, executor.last.recording
        found = wire_points(*recordings, clean.events, range(1, 2), clean.id, servers)
        executor.why.read_clean(clean, found)
        yield executor


def kinds(executor: SinkExecutor, label: str, kind: str, how: How) -> set[str]:
    """Strike the first request of batch 1 with that label."""
    fault = next(
        fault
        for point in executor.why.wire
        for fault, _ in point.faults
        if fault.point.request.endswith(f" {label}")
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
        ("postgres:SwallowsErrors", "COMMIT", "omit", "lost", {"Loss"}),
        ("postgres:OneTransaction", "COMMIT", "omit", "crash", set()),
    ],
)
def test_a_request_is_struck(
    arena_for: ArenaFor, name: str, label: str, kind: str, how: How, seen: set[str]
) -> None:
    with executor_of(arena_for, name) as executor:
        assert kinds(executor, label, kind, how) == seen


def test_two_transactions_break_between_them(arena_for: ArenaFor) -> None:
    for name, seen in (("RowsThenMarker", {"Duplicate"}), ("MarkerThenRows", {"Loss"})):
        with executor_of(arena_for, f"postgres:{name}") as executor:
            assert kinds(executor, "COMMIT", "omit-reply", "crash") == seen


def test_a_failed_attempt_copies_twice(arena_for: ArenaFor) -> None:
    with executor_of(arena_for, "postgres:CopyPerPartition") as executor:
        failed = "storage(EIO, after batch=1/stage=0/p=0/a=0/task)"
        execution = executor.run(frozenset({failed}))
        assert {a.kind for a in execution.anomalies} == {"Duplicate"}
