"""Requests that a query has on their way at once, on several connections."""

from __future__ import annotations

from bettong.harness.queries.faults.wire import CLOCK
from bettong.harness.queries.run.overlaps import at_once
from bettong.harness.wire import Recording
from bettong.harness.wire.conversation import Conversation, History, Ledger, Request
from bettong.harness.wire.framing.base import Info
from bettong.lineage.trace import TraceEvent

Sent = tuple[int, int, int, str]
"""Connection, when, when replied to, label. Batch n is from 100 n to 100 n + 99."""


def event(step: str, phase: str, at: int) -> TraceEvent:
    return TraceEvent(step, phase, "driver", detail={CLOCK: at})  # type: ignore[arg-type]


EVENTS = [event(f"batch={n}/offsets", "after", 100 * n) for n in range(4)]


def found(*sent: Sent, events: list[TraceEvent] = EVENTS) -> set[str]:
    keys = History("db", Ledger()).add(Info("x"))
    talks = []
    for connection in sorted({each[0] for each in sent}):
        requests = tuple(
            Request("db", connection, n, at, label, "", 9, 9, keys, "", replied)
            for n, (_, at, replied, label) in enumerate(
                (each for each in sent if each[0] == connection), 1
            )
        )
        talks.append(Conversation("db", connection, "test", requests, (), 1, 1, None))
    return at_once(Recording(tuple(talks)), events)


def in_batches(*batches: int) -> list[Sent]:
    """Two connections, each asks before the other one has its reply."""
    return [
        sent
        for n in batches
        for sent in ((1, 100 * n + 10, 100 * n + 30, "SET"), (2, 100 * n + 20, 100 * n + 40, "SET"))
    ]


def test_what_is_asked_before_the_other_reply_has_come_is_on_its_way_at_once() -> None:
    assert found(*in_batches(1, 2)) == {"the requests SET and SET were on their way at once"}


def test_one_after_the_other_is_nothing_on_however_many_connections() -> None:
    assert not found(
        *((n % 2, 100 * n + at, 100 * n + at + 5, "SET") for n in (1, 2) for at in (10, 20))
    )


def test_nor_is_what_is_sent_ahead_on_one_connection() -> None:
    assert not found(*((1, at, replied, label) for _, at, replied, label in in_batches(1, 2)))


def test_what_overlaps_in_one_batch_may_be_chance() -> None:
    assert not found(*in_batches(1))


def test_what_changes_nothing_may_overlap() -> None:
    assert not found(*((c, at, replied, "GET") for c, at, replied, _ in in_batches(1, 2)))


def test_spark_has_several_tasks() -> None:
    tasks = [
        event(f"batch={n}/stage=0/p=0/a=0/task", phase, 100 * n + at)
        for n in range(4)
        for phase, at in (("before", 5), ("after", 50))
    ]
    events = sorted([*EVENTS, *tasks], key=lambda each: each.detail[CLOCK])
    assert not found(*in_batches(1, 2), events=events)
