"""The docs' table against real verdicts: every sink that ships, whole."""

from __future__ import annotations

import pytest

from bettong.harness.catalog import CatalogEntry
from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.lineage.results import Result
from bettong.lineage.search.loop import Budget
from bettong.scenarios.sinks import SHIPPED

pytestmark = [pytest.mark.spark, pytest.mark.servers, pytest.mark.timeout(3600)]


AT_WORK = {"bettong.scenarios.sinks.http:PostInBackground"}
"""A thread goes on when the batch is over: the level is found, and nobody promises that it is no
lower."""


def check(environments: SparkEnvironments, shipped: CatalogEntry, real: bool = False) -> Result:
    budget = Budget(seconds=3000 if real else 900)
    request = Request(shipped.name, expect=shipped.level, faults=1, budget=budget, real=real)
    result = check_one(request, environments, print)
    if "skipped" in result.details:
        pytest.skip(f"{shipped.name} {result.reason}")
    return result


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda sink: sink.name)
def test_the_level_is_the_one_that_is_found(
    environments: SparkEnvironments, shipped: CatalogEntry
) -> None:
    result = check(environments, shipped)
    verdict = "unknown" if shipped.name in AT_WORK else "valid"
    assert (result.verdict, result.guarantee) == (verdict, shipped.level), result.reason


@pytest.mark.slow
@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda sink: sink.name)
def test_kept_crashes_show_what_kills_show(
    environments: SparkEnvironments, shipped: CatalogEntry
) -> None:
    kept, killed = (
        {run.faults: (run.outcome, {a.kind for a in run.anomalies}) for run in result.runs}
        for result in (check(environments, shipped, real) for real in (False, True))
    )
    assert kept == killed
