"""How many runs it takes to find a mutant: the measurement."""

from __future__ import annotations

import pytest

from bettong.scenarios.benchmarks.shipped_mutants import HEAD, Found, line, measure
from bettong.scenarios.mutants.shipped import MUTANTS

MUTANT = next(mutant for mutant in MUTANTS if mutant.name == "gateway_acks_early")


def test_a_row_of_the_table_has_a_cell_for_each_head() -> None:
    found = Found(MUTANT, ("a", "b"), ("Loss",), 3, (2, 4, None), None)
    row = line(found)
    assert row.count("|") == HEAD.splitlines()[0].count("|")
    assert "`a` and `b` | Loss | 3 | not | not |" in row


def test_random_runs_are_a_mean_only_when_every_seed_has_found_it() -> None:
    assert Found(MUTANT, (), (), None, (2, 5), None).random_mean == 3.5
    assert Found(MUTANT, (), (), None, (2, None), None).random_mean is None


@pytest.mark.slow
def test_a_mutant_is_found_by_its_lineage_and_step_by_step() -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == "sink_commits_again")
    (found,) = measure([mutant], most=40)
    (fault,) = found.fault
    assert fault.startswith("crash(driver, ")
    assert found.lineage is not None
    assert found.each_step is not None
    assert found.anomalies == ("Duplicate",)
