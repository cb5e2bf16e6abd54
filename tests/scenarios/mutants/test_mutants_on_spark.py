"""Every mutant on real Spark: right without a fault, shown by its schedule, which the right
system withstands."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.course import Limits
from bettong.harness.runs.record import RunRecord
from bettong.harness.runs.run import run_once
from bettong.harness.scenario import Scenario
from bettong.scenarios.mutants.definition import mended
from bettong.scenarios.mutants.shipped import IN_PROCESS_ONLY, MUTANTS

pytestmark = pytest.mark.spark

# One of each part that is another one on Spark; every mutant runs at every change on the in-process
# runner.
AT_EVERY_CHANGE = {
    "sink_commits_losers",
    "state_published_late",
}

# Those that take steps, or make calls to the disk, which the right one does not.
OWN_STEPS = {"gateway_copies_when_started", "sink_commits_by_partition", "sink_records_late"}

Withstood = dict[object, RunRecord]


@pytest.fixture(scope="module")
def withstood() -> Withstood:
    """Runs of right systems, each of which is wanted for several mutants."""
    return {}


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(t, id=t.name, marks=[] if t.name in AT_EVERY_CHANGE else [pytest.mark.slow])
        for t in MUTANTS
        if t.name not in IN_PROCESS_ONLY
    ],
)
def test_a_broken_mutant_is_good_without_a_fault_and_shown_by_its_schedule(
    spark_backend: LocalBackend, withstood: Withstood, tmp_path: Path, mutant: Scenario
) -> None:
    schedule, limits = mutant.shown_by(), Limits(idle_s=10)
    clean = run_once(spark_backend, mutant, Schedule(), tmp_path / "clean", Asked(replay=False))
    assert clean.outcome == "good", clean.note
    shown = run_once(
        spark_backend, mutant, schedule, tmp_path / "shown", Asked(replay=False, limits=limits)
    )
    assert (shown.outcome, shown.not_fired) == ("violation", ())
    assert shown.anomalies
    if mutant.name in OWN_STEPS:
        return
    key = (mutant.application, mutant.outputs, schedule)
    if key not in withstood:
        withstood[key] = run_once(spark_backend, mended(mutant), schedule, tmp_path / "right")
    right = withstood[key]
    assert (right.outcome, right.not_fired) == ("good", ()), right.note
    assert set(right.evidence) == set(schedule.ids)
