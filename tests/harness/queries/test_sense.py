"""Whether a run without faults goes over the links that are to be hit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.sense import (
    VacuousError,
    dated,
    dated_anew,
    expect_asked,
    expect_over_links,
    expect_sense,
    in_turn,
    unasked,
    undated,
)
from bettong.harness.wire import Recording
from bettong.harness.wire.conversation import Conversation, History, Ledger, Request
from bettong.harness.wire.framing.base import Info
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import Phase, TraceEvent

STARTED = 10


def run(asked_at: dict[str, int], in_sight: bool) -> QueryRun:
    """Of one batch, which asks each endpoint once, at a time of the wire's."""
    talks = []
    for endpoint, order in asked_at.items():
        keys = History(endpoint, Ledger()).add(Info("INSERT", content=b"1"))
        request = Request(endpoint, 1, 1, order, "INSERT", "", 100, 9, keys)
        talks.append(Conversation(endpoint, 1, "test", (request,), (), 1, 1, None))
    return QueryRun(
        recording=Recording(tuple(talks)),
        starts=[STARTED],
        crash_points=[
            CrashPoint(Point("batch=0/offsets", "after"), 1, "x"),
            CrashPoint(Point("batch=0/commits"), 1, "y" if in_sight else "x"),
        ],
    )


def test_a_query_that_goes_past_the_link_that_setup_takes_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no request of write\(\) crossed the link to db") as e:
        expect_asked("It", run({"db": 5, "log": 20}, in_sight=False))
    assert "env.address('db')" in str(e.value)


@pytest.mark.parametrize(
    ("asked_at", "in_sight", "left"), [({"db": 5}, True, ["db"]), ({"db": 20}, False, [])]
)
def test_an_endpoint_for_some_cases_only_is_none_that_is_gone_past(
    asked_at: dict[str, int], in_sight: bool, left: list[str]
) -> None:
    """Such as one for rows that were refused, while the others are seen."""
    found = run(asked_at, in_sight)
    expect_asked("It", found)
    assert unasked(found) == left


def test_a_task_that_connects_past_the_link_is_refused() -> None:
    """What it asks is hit by nothing, though the driver asks over the link."""
    found = run({"db": 20}, in_sight=True)
    expect_over_links("It", found)
    found.past = {"db"}
    with pytest.raises(UsageError, match=r"connects to db past the link, .* env\.address\('db'\)"):
        expect_over_links("It", found)


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("dt=2026-03-01/batch-1.jsonl", "2026-03-01"),
        ("2026/02/28/part-0", "2026/02/28"),
        ("rows-20260301.csv", "20260301"),
        ("2026_03_02.csv", "2026_03_02"),
        ("dt=2026-02-27/batch-1.jsonl", ""),
        ("batch-1.jsonl", ""),
    ],
)
def test_files_that_are_named_by_the_day_make_a_verdict_unsure(path: str, day: str) -> None:
    """That of the run, or the one beside it: it may be past midnight elsewhere."""
    event = TraceEvent("batch=0/sink.file=1.open", "before", "driver", 1)
    today = datetime(2026, 3, 1, 0, 1, tzinfo=UTC)
    by_sink, by_spark = ({"op": "open", "path": path}, {"path": path})
    found = dated([TraceEvent(*_four(event), detail=by_sink)], today)
    assert found == ({f"files are named by the day ({day}"} if day else set())
    assert dated([TraceEvent(*_four(event), detail=by_spark)], today) == set()
    if found:
        assert f"the day ({day}): a replay on the next day" in in_turn(found)


@pytest.mark.parametrize(
    ("first", "replay", "moved"),
    [
        ("out/2026-03-01/a", "out/2026-03-02/a", True),
        ("out/20260301/a", "out/20260303/a", True),
        ("out/2026-03-01/a", "out/2026-03-01/a", False),
        ("out/2026-03-01/a", "out/a", False),
        ("out/a", "out/a", False),
    ],
)
def test_it_is_known_what_becomes_of_the_day_where_a_replay_has_another_one(
    first: str, replay: str, moved: bool
) -> None:
    events = [
        TraceEvent("batch=1/sink.file=1.open", "before", "driver", n, detail={"op": "o", "path": p})
        for n, p in ((1, first), (2, replay))
    ]
    today = datetime(2026, 3, 1, 23, 1, tzinfo=UTC)
    assert dated_anew(events, today) == moved
    assert undated(dated(events, today)) == set()
    assert undated({"a thread"}) == {"a thread"}


def _four(event: TraceEvent) -> tuple[str, Phase, str, int]:
    return event.step, event.phase, event.node, event.incarnation


def test_of_several_queries_nothing_is_said_though_all_batches_were_recorded() -> None:
    """Those that are waited for may be another one's."""
    run = QueryRun(
        events=[TraceEvent("batch=0/offsets", "before", "driver")],
        facts=[{"queries": 2}],
        drained=True,
        checkpoint_used=True,
        rows=[{"id": "m/000000"}],
    )
    with pytest.raises(VacuousError, match=r"^Two: it starts 2 streaming queries, and one"):
        expect_sense("Two", run)


@pytest.mark.parametrize(
    ("used", "error", "told"),
    [(False, UsageError, "env.checkpoint"), (True, VacuousError, "does not end")],
)
def test_a_query_that_does_not_end_may_have_its_checkpoint_elsewhere(
    used: bool, error: type[Exception], told: str
) -> None:
    begun = [TraceEvent("batch=0/offsets", "before", "driver")]
    with pytest.raises(error, match=told):
        expect_sense("Moves", QueryRun(events=begun, checkpoint_used=used))
