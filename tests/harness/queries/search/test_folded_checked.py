"""Some of the fault sets that were folded are run all the same: what they show beyond those that
stand for them counts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bettong.harness.queries.request import Request
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.executor import SinkExecutor
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.search.search import check_equivalence
from bettong.harness.queries.sink.rows import Input
from bettong.harness.queries.verdict import QueryVerdict, Subject
from bettong.lineage.faults import CLEAN
from bettong.lineage.results import Guarantee, Result
from bettong.lineage.search.executor import Execution
from bettong.lineage.search.findings import Findings

SOURCE = Input()
ROWS = SOURCE.all()
WHOLE, LOST, TWICE = (QueryRun(rows=rows, drained=True) for rows in (ROWS, ROWS[1:], ROWS * 2))
STANDS = frozenset({"crash(driver, before batch=1/commits)"})
FOLDED = frozenset({"crash(driver, before batch=1/stage=0/p=0/a=0/task)"})


class Shows:
    """Shows for each set of faults what it was told; clean runs are whole."""

    def __init__(self, **shown: QueryRun) -> None:
        self.shown = shown

    def run(self, faults: Sequence[object], **how: object) -> QueryRun:
        ids = {fault.id for fault in faults}  # type: ignore[attr-defined]
        name = "stands" if ids == STANDS else "folded" if ids == FOLDED else "whole"
        return self.shown.get(name, WHOLE)


def concluded(
    stands: QueryRun | None, folded: QueryRun, expect: Guarantee
) -> tuple[Result, Findings]:
    """``stands``: None where the set that stands for the other one never came to be run."""
    runner = Shows(stands=stands or WHOLE, folded=folded)
    executor = SinkExecutor(runner, SOURCE, False, Why(2, SOURCE.batches, 1))  # type: ignore[arg-type]
    clean = Execution(CLEAN, "good")
    findings = Findings(clean, [clean], complete=True)
    if stands is not None:
        findings.executions.append(executor.run(STANDS))
    findings.minimal = [e.schedule for e in findings.executions if e.outcome == "violation"]
    executor.why.equivalence.folded[FOLDED] = STANDS
    sampled: list[Execution] = []
    check_equivalence(executor, findings, sampled.append)
    verdict = QueryVerdict(Request("s.py:S", expect=expect), Subject("S", "sink"))
    return verdict.conclude(executor, findings, sampled), findings


def test_one_that_shows_the_same_proves_the_rest() -> None:
    assert concluded(WHOLE, WHOLE, "effectively-once")[0].verdict == "valid"
    assert concluded(TWICE, TWICE, "at-least-once")[0].verdict == "valid"


@pytest.mark.parametrize("stands", [WHOLE, TWICE])
def test_what_it_shows_besides_lowers_the_level(stands: QueryRun) -> None:
    result, findings = concluded(stands, LOST, "at-least-once")
    assert result.verdict == "invalid"
    assert result.guarantee == ("at-most-once" if stands is WHOLE else "none")
    assert FOLDED in findings.minimal


def test_one_that_is_unlike_what_stands_for_it_leaves_the_others_in_doubt() -> None:
    result, _ = concluded(WHOLE, TWICE, "at-least-once")
    assert (result.verdict, result.guarantee) == ("unknown", "at-least-once")
    assert "was taken to leave the same behind" in result.reason


def test_one_for_which_none_was_run_is_run_itself() -> None:
    result, findings = concluded(None, LOST, "effectively-once")
    assert result.verdict == "invalid"
    assert FOLDED in findings.minimal
