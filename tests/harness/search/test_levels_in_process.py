"""A search for the level that was asked for: what that allows is no violation."""

from __future__ import annotations

from pathlib import Path

from bettong.harness.api import run_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.search.bounds import SearchBounds

REPEATED = "crash(driver, after batch=0/source.commit)"
DIED = "crash(receiver, after receiver.commit/batch=0)"


def test_a_search_counts_only_what_the_level_asked_for_does_not_allow(
    backend: LocalBackend, tmp_path: Path
) -> None:
    """The mutant commits a batch twice; a receiver that is started on what that has left dies."""
    result = run_scenario(
        "sink_commits_again",
        SearchBounds(crashes=1, losses=0, batches=1),
        backend=backend,
        out=tmp_path,
        expected="at-least-once",
    )
    kinds = {run.faults: {a.kind for a in run.anomalies} for run in result.runs}
    assert kinds[REPEATED,] == {"Duplicate"}
    assert kinds[DIED,] == {"Duplicate", "Died"}
    assert [example.faults for example in result.counterexamples] == [(DIED,)]
    outcomes = {run.faults: run.outcome for run in result.runs}
    assert (outcomes[REPEATED,], outcomes[DIED,]) == ("good", "violation")
    assert (result.verdict, result.guarantee) == ("invalid", "at-least-once")
