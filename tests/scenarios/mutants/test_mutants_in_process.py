"""mutants on the in-process runner: real processes, links and kills, without Spark."""

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
from bettong.scenarios.mutants.shipped import MUTANTS, SPARK_ONLY

BROKEN = [mutant for mutant in MUTANTS if mutant.name not in SPARK_ONLY]

# Those that take steps, or make calls to the disk, which the right one does not.
OWN_STEPS = {"gateway_copies_when_started", "sink_commits_by_partition", "sink_records_late"}


def run(backend: LocalBackend, folder: Path, schedule: Schedule, scenario: Scenario) -> RunRecord:
    limits = Limits(idle_s=10)
    return run_once(backend, scenario, schedule, folder, Asked(replay=False, limits=limits))


@pytest.mark.parametrize("mutant", BROKEN, ids=lambda t: t.name)
def test_a_mutant_is_shown_by_its_schedule_which_the_right_system_withstands(
    backend: LocalBackend, tmp_path: Path, mutant: Scenario
) -> None:
    broken = run(backend, tmp_path / "broken", mutant.shown_by(), mutant)
    assert (broken.outcome, broken.not_fired) == ("violation", ())
    right = run(backend, tmp_path / "right", mutant.shown_by(), mended(mutant))
    if mutant.name in OWN_STEPS:
        assert right.outcome == "not-injected"
    else:
        assert (right.outcome, right.not_fired) == ("good", ()), right.note


@pytest.mark.parametrize("mutant", BROKEN, ids=lambda t: t.name)
def test_without_a_fault_nothing_is_seen_of_a_mutant(
    backend: LocalBackend, tmp_path: Path, mutant: Scenario
) -> None:
    clean = run(backend, tmp_path, Schedule(()), mutant)
    assert clean.outcome == "good", clean.note


def test_every_mutant_has_a_name_a_schedule_and_a_piece_of_advice_of_its_own() -> None:
    assert len(MUTANTS) >= 25
    for reported in ("name", "title"):
        assert len({getattr(mutant, reported) for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        assert mutant.shown_by().faults
        assert mutant.advice
        assert mended(mutant).expect == "valid"
        assert mended(mutant).classes != mutant.classes
