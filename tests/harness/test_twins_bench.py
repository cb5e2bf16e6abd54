"""How many runs it takes to find a twin: the measurement."""

from __future__ import annotations

import pytest

from bettong.harness.bench.twins import HEAD, Found, line, measure
from bettong.scenarios.broken_twins import TWINS

TWIN = next(twin for twin in TWINS if twin.name == "gateway_acks_early")


def test_a_row_of_the_table_has_a_cell_for_each_head() -> None:
    found = Found(TWIN, ("a", "b"), ("Loss",), 3, (2, 4, None), None)
    row = line(found)
    assert row.count("|") == HEAD.splitlines()[0].count("|")
    assert "`a` and `b` | Loss | 3 | not | not |" in row


def test_random_runs_are_a_mean_only_when_every_seed_has_found_it() -> None:
    assert Found(TWIN, (), (), None, (2, 5), None).random_mean == 3.5
    assert Found(TWIN, (), (), None, (2, None), None).random_mean is None


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_twin_is_found_by_its_lineage_and_step_by_step() -> None:
    twin = next(twin for twin in TWINS if twin.name == "sink_commits_again")
    (found,) = measure([twin], most=40)
    (fault,) = found.fault
    assert fault.startswith("crash(driver, ")
    assert found.lineage is not None
    assert found.each_step is not None
    assert found.anomalies == ("Duplicate",)
