"""A search whose bounds let nothing fire has tried nothing."""

from __future__ import annotations

from bettong.harness.search.bounds import SearchBounds
from bettong.harness.search.ldfi import check_tried
from bettong.lineage.faults import CLEAN
from bettong.lineage.results import Outcome
from bettong.lineage.search.executor import Execution
from bettong.lineage.search.findings import Findings

NOTHING = SearchBounds(crashes=0, losses=0)


def found(*faulted: Outcome) -> Findings:
    """What a search says that has had these runs with a fault."""
    runs = [Execution(frozenset({f"crash({n})"}), outcome) for n, outcome in enumerate(faulted)]
    clean = Execution(CLEAN, "good")
    findings = Findings(clean, [clean, clean, *runs], verdict="valid", complete=True)
    check_tried(findings, NOTHING)
    return findings


def test_clean_runs_alone_guarantee_nothing_under_faults() -> None:
    findings = found()
    assert (findings.verdict, findings.complete) == ("unknown", False)
    assert "no fault was tried" in findings.reason and "--bounds quick" in findings.reason


def test_a_search_that_has_tried_a_fault_keeps_its_answer() -> None:
    assert found("good").verdict == "valid"
