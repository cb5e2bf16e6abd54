"""A counterexample is run again before it is told: real runs, of which one is made to look good."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bettong.harness.api import load_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.cli.output import exit_code
from bettong.harness.conductor.order import FiringOrder
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.campaign import Campaign
from bettong.harness.runs.record import RunRecord
from bettong.harness.search.bounds import SearchBounds
from bettong.harness.search.ldfi import search_scenario
from bettong.lineage.results import Anomaly


class _Campaign(Campaign):
    """One whose violations look good the so many-th time that their faults are run."""

    good: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.times: Counter[tuple[str, ...]] = Counter()

    def run(
        self, schedule: Schedule, name: str | None = None, order: FiringOrder | None = None
    ) -> RunRecord:
        seen = super().run(schedule, name, order)
        self.times[schedule.ids] += 1
        if seen.outcome == "violation" and self.times[schedule.ids] in self.good:
            seen = self.observed[-1] = replace(seen, outcome="good")
        return seen


@pytest.mark.parametrize(
    ("good", "times", "steady"), [((), 2, True), ((2,), 3, True), ((2, 3), 3, False)]
)
def test_a_counterexample_that_does_not_show_again_says_so(
    backend: LocalBackend, tmp_path: Path, good: tuple[int, ...], times: int, steady: bool
) -> None:
    scenario = load_scenario("sink_commits_again")
    campaign = _Campaign(backend, scenario, tmp_path, scenario.messages())
    campaign.good = frozenset(good)
    result = search_scenario(campaign, SearchBounds(crashes=1, losses=0, batches=2))
    assert result.verdict == "invalid"
    (example,) = result.counterexamples
    assert campaign.times[example.faults] == times
    assert ("more runs with the same faults nothing was wrong" in example.words) != steady


class _BreaksOnce(_Campaign):
    """One whose second run without a fault is broken."""

    def run(
        self, schedule: Schedule, name: str | None = None, order: FiringOrder | None = None
    ) -> RunRecord:
        seen = super().run(schedule, name, order)
        if not schedule.ids and self.times[()] == 2:
            lost = Anomaly("Loss", messages=("lines/2",))
            judged = replace(seen.judgement, anomalies=(lost,))
            seen = self.observed[-1] = replace(seen, outcome="violation", judgement=judged)
        return seen


def test_what_breaks_the_second_run_without_a_fault_is_the_answer(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("counting_two")
    campaign = _BreaksOnce(backend, scenario, tmp_path, scenario.messages())
    result = search_scenario(campaign, SearchBounds(crashes=1, losses=0, batches=1))
    assert (result.verdict, exit_code([result])) == ("invalid", 1)
    (example,) = result.counterexamples
    assert (example.faults, result.guarantee) == ((), "at-most-once")
    assert [a.messages for a in (*example.anomalies, *result.anomalies)] == [("lines/2",)] * 2
    assert example.words == "No fault fired. Afterwards lines/2 is missing."
    assert example.trace is not None and (tmp_path / example.trace).exists()
