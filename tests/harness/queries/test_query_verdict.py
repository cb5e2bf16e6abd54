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
    """Gives the first runs; for all others the time is up."""

    def __init__(self, most: int = 1) -> None:
        self.runs = 0
        self.most = most

    def run(self, faults: Sequence[object], **how: object) -> QueryRun:
        self.runs += 1
        if self.runs > self.most:
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


def test_another_one_that_was_shown_again_in_time_stands_for_it() -> None:
    """The earliest one of a way of failing is reported, and another one was seen first."""
    why = Why(2, SOURCE.batches, 1)
    executor = SinkExecutor(EndsInTime(3), SOURCE, False, why)  # type: ignore[arg-type]
    later = executor.run(frozenset({"crash(driver, before batch=2/commits)"}))
    executor.on_event(Executed(later, 1, from_log=False))
    earlier = executor.run(frozenset({CRASH}))
    executor.on_event(Executed(earlier, 2, from_log=False))
    clean = Execution(CLEAN, "good")
    findings = Findings(clean, [clean, later, earlier])
    findings.minimal = [later.schedule, earlier.schedule]
    result = QueryVerdict(Request("s.py:S"), Subject("S", "sink")).conclude(executor, findings)
    assert (result.verdict, result.guarantee) == ("invalid", "at-most-once")
    assert [c.faults for c in result.counterexamples] == [tuple(later.schedule)]
