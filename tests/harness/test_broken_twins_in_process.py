"""Broken twins on the in-process runner: real processes, links and kills, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.harness.backend import LocalBackend
from bettong.harness.execution import Limits, Observed, run_once
from bettong.harness.scenario import Scenario
from bettong.scenarios.broken_twins import SPARK_ONLY, TWINS
from bettong.scenarios.twins.definition import mended

BROKEN = [twin for twin in TWINS if twin.name not in SPARK_ONLY]

# Sinks that take steps which the right one does not have.
OWN_STEPS = {"sink_commits_by_partition", "sink_records_late"}


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalBackend]:
    with LocalBackend(runner="in-process") as found:
        yield found


def run(backend: LocalBackend, folder: Path, twin: Scenario, scenario: Scenario) -> Observed:
    limits = Limits(idle_s=10)
    return run_once(backend, scenario, twin.shown_by(), folder, replay=False, limits=limits)


@pytest.mark.parametrize("twin", BROKEN, ids=lambda t: t.name)
def test_a_twin_is_shown_by_its_schedule_which_the_right_system_withstands(
    backend: LocalBackend, tmp_path: Path, twin: Scenario
) -> None:
    broken = run(backend, tmp_path / "broken", twin, twin)
    assert (broken.outcome, broken.not_fired) == ("violation", ())
    right = run(backend, tmp_path / "right", twin, mended(twin))
    if twin.name in OWN_STEPS:
        assert right.outcome == "not-injected"
    else:
        assert (right.outcome, right.not_fired) == ("good", ()), right.note


def test_every_twin_has_a_name_a_schedule_and_a_piece_of_advice_of_its_own() -> None:
    assert len(TWINS) >= 25
    for told in ("name", "title"):
        assert len({getattr(twin, told) for twin in TWINS}) == len(TWINS)
    for twin in TWINS:
        assert twin.shown_by().faults
        assert twin.advice
        assert not mended(twin).classes
