"""Of what was taken to be the same as something that was run, a sample is run and must be good."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bettong.harness.search.bounds import SearchBounds
from bettong.harness.search.equivalence import FaultEquivalence
from bettong.harness.search.ldfi import check_equivalence
from bettong.lineage.faults import CLEAN, FaultSet
from bettong.lineage.results import Outcome
from bettong.lineage.search.executor import Execution
from bettong.lineage.search.findings import Findings

FOLDED, RUN = frozenset({"crash(a)", "omit(b)"}), frozenset({"crash(a)", "omit(c)"})


class Executor:
    """Gives the outcomes that it is told, one after the other."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.equivalence = FaultEquivalence(folded={FOLDED: RUN})
        self.campaign = SimpleNamespace(limits=SimpleNamespace(over=False))
        self.ran: list[FaultSet] = []
        self._outcomes = iter(outcomes)

    def run(self, schedule: FaultSet) -> Execution:
        self.ran.append(schedule)
        return Execution(schedule, next(self._outcomes))


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        (["good"], "valid"),
        (["violation"], "invalid"),
        (["not-injected", "good"], "valid"),
        (["not-injected", "violation"], "invalid"),
        (["not-injected", "not-injected"], "valid"),  # where nothing is left to be lost
        (["unknown", "good"], "valid"),
        (["unknown", "unknown"], "unknown"),
    ],
)
def test_a_sampled_run_that_cannot_be_judged_proves_nothing(
    outcomes: list[Outcome], verdict: str
) -> None:
    executor: Any = Executor(*outcomes)
    findings = Findings(Execution(CLEAN, "good"), [], verdict="valid", complete=True)
    sampled = check_equivalence(executor, findings, SearchBounds(), seed=0)
    assert executor.ran == [FOLDED] * len(outcomes)
    assert [e.outcome for e in sampled] == outcomes[-1:]
    assert findings.executions == sampled
    assert findings.verdict == verdict
    assert findings.complete is (verdict == "valid")
    if verdict == "unknown":
        assert "crash(a), omit(b)" in findings.reason
