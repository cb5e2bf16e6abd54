"""Word count on the in-process runner: real processes, links and kills, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.harness.backend import LocalBackend
from bettong.harness.execution import Observed, run_once
from bettong.harness.scenario import Scenario
from bettong.harness.schedule import Schedule
from bettong.lineage.errors import UsageError
from bettong.scenarios.word_count import WORD_COUNT
from bettong.scenarios.broken_twins import TWINS

# What only Spark has: retried task attempts, and a log of commits of its own.
SPARK_ONLY = {"sink_commits_losers", "state_published_late"}
BROKEN = [twin for twin in TWINS if twin.name not in SPARK_ONLY]


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalBackend]:
    with LocalBackend(runner="in-process") as found:
        yield found


def run(
    backend: LocalBackend, folder: Path, schedule: Schedule, scenario: Scenario = WORD_COUNT
) -> Observed:
    return run_once(backend, scenario, schedule, folder, replay=scenario is WORD_COUNT)


def test_a_clean_run_is_good_and_takes_the_same_steps_each_time(
    backend: LocalBackend, tmp_path: Path
) -> None:
    first, second = (run(backend, tmp_path / name, Schedule()) for name in "ab")
    assert (first.outcome, first.replay_changed, first.note) == ("good", False, "")
    assert first.step_ids == second.step_ids
    assert first.outputs == second.outputs


@pytest.mark.parametrize("twin", BROKEN, ids=lambda t: t.name)
def test_a_twin_is_shown_by_its_schedule_which_the_right_system_withstands(
    backend: LocalBackend, tmp_path: Path, twin: Scenario
) -> None:
    schedule = twin.shown_by()
    broken = run(backend, tmp_path / "broken", schedule, twin)
    assert (broken.outcome, broken.not_fired) == ("violation", ())
    right = run(backend, tmp_path / "right", schedule)
    assert (right.outcome, right.not_fired) == ("good", ()), right.note


def test_there_are_no_workers_without_spark() -> None:
    with pytest.raises(UsageError, match="no workers"):
        LocalBackend(workers=1, runner="in-process")
