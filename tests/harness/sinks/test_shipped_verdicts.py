"""The docs' table against real verdicts: every sink that ships, whole."""

from __future__ import annotations

import pytest

from bettong.harness.sinks.arena import ArenaFor
from bettong.harness.sinks.check import check_one
from bettong.harness.sinks.request import Request
from bettong.lineage.loop import Budget
from bettong.scenarios.sinks import SHIPPED, Shipped

pytestmark = [pytest.mark.spark, pytest.mark.servers, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda sink: sink.name)
def test_the_level_is_the_one_that_is_found(arena_for: ArenaFor, shipped: Shipped) -> None:
    request = Request(shipped.target, expect=shipped.level, faults=1, budget=Budget(seconds=900))
    result = check_one(request, arena_for, print)
    if result.reason.startswith("skipped: "):
        pytest.skip(f"{shipped.name} {result.reason}")
    assert (result.verdict, result.guarantee) == ("valid", shipped.level), result.reason
