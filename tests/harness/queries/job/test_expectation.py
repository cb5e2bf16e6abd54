"""What a job's output is held against, by its oracle and by what its clean runs have shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from bettong.harness import Bag, Clean, Job, OnePerKey, Rows
from bettong.harness.queries.job.envelope import envelope
from bettong.harness.queries.job.expectation import Expectation, expectation
from bettong.harness.queries.job.facts import Facts
from bettong.harness.queries.job.workload import JobWorkload
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.sense import VacuousError

ORDERS = [{"id": "x", "amount": 1}, {"id": "x", "amount": 2}, {"id": "y", "amount": 3}]
KEPT = [{"id": "x", "amount": 1, "double": 2}, {"id": "y", "amount": 3, "double": 6}]


class Doubled(Job):
    name = "Doubled"
    inputs = {"orders": Rows(ORDERS, schema="id STRING, amount INT")}  # noqa: RUF012
    oracle: Any = OnePerKey("id")

    def transform(self, env: Any) -> Any:
        raise NotImplementedError


def expected(job: Job, answers: Any = (), *by_the_clock: str) -> Expectation:
    asked = iter(answers)

    def ask(call: str, arguments: Mapping[str, Any]) -> Any:
        return next(asked)

    clean = envelope(Bag(), {"plain": KEPT})
    facts = Facts({}, (), 0, by_the_clock)
    return expectation(job, JobWorkload(Target("doubled"), job, {}), facts, clean, ask, [KEPT])


def test_a_transform_is_asked_of_rows_with_one_of_each_key_at_a_time() -> None:
    """The other row of x, which no clean run kept, is known by it."""
    second = [{"id": "x", "amount": 2, "double": 4}]
    judged = expected(Doubled(), [KEPT, second]).judged
    assert judged.difference([second[0], KEPT[1]]).anomalies == []
    wrong = judged.difference([{**second[0], "double": 2}, KEPT[1]])
    assert [a.kind for a in wrong.anomalies] == ["Corrupt"]


@pytest.mark.parametrize("oracle", [OnePerKey("id"), Clean(), "batch"])
def test_of_what_goes_by_the_clock_only_the_users_own_function_knows(oracle: Any) -> None:
    job = Doubled()
    job.oracle = oracle
    with pytest.raises(VacuousError, match=r"goes by the clock \(filter\)"):
        expected(job, (), "filter")
    job.oracle = lambda inputs: KEPT
    assert expected(job, (), "filter").oracle == "the job's own oracle"
