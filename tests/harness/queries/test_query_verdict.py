"""What is concluded of a violation that nobody had the time to show again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bettong.harness.queries.request import Request
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.executor import SinkExecutor
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.sink.rows import Input
from bettong.harness.queries.verdict import QueryVerdict, Subject
from bettong.lineage.faults import CLEAN
from bettong.lineage.results import Result
from bettong.lineage.search.events import Executed
from bettong.lineage.search.executor import BudgetSpentError, Execution
from bettong.lineage.search.findings import Findings

CRASH = "crash(driver, before batch=1/commits)"
SOURCE = Input()
LOST = QueryRun(rows=[dict(row) for row in SOURCE.all()][1:], drained=True)


class EndsInTime:
    """Gives the first run; for all others the time is up."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, faults: Sequence[object], **how: object) -> QueryRun:
        self.runs += 1
        if self.runs > 1:
            raise BudgetSpentError("the time is up")
        return LOST


def concluded(parallel: int) -> Result:
    why = Why(2, SOURCE.batches, 1)
    executor = SinkExecutor(EndsInTime(), SOURCE, False, why)  # type: ignore[arg-type]
    found = executor.run(frozenset({CRASH}))
    executor.parallel = parallel
    executor.on_event(Executed(found, 1, from_log=False))
    clean = Execution(CLEAN, "good")
    findings = Findings(clean, [clean, found], minimal=[found.schedule])
    return QueryVerdict(Request("s.py:S"), Subject("S", "sink")).conclude(executor, findings)


@pytest.mark.parametrize("parallel", [1, 2])
def test_it_is_told_and_proves_nothing(parallel: int) -> None:
    result = concluded(parallel)
    assert (result.verdict, result.guarantee) == ("unknown", "at-most-once")
    assert result.counterexamples == ()
    assert result.details["unconfirmed"] == [[CRASH]]
    assert "a counterexample was seen and not confirmed" in result.reason
    assert f"{CRASH} (Loss)" in result.reason
    assert [run.faults for run in result.runs if run.outcome == "violation"] == [(CRASH,)]
