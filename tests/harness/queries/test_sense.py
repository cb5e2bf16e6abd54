"""Whether a run without faults goes over the links that are to be hit."""

from __future__ import annotations

import pytest

from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.sense import expect_asked, expect_over_links, unasked
from bettong.harness.wire import Recording
from bettong.harness.wire.conversation import Conversation, History, Ledger, Request
from bettong.harness.wire.framing.base import Info
from bettong.lineage.errors import UsageError

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
