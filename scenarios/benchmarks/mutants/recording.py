"""A process that records which statements one scenario runs.

``python -m bettong.scenarios.benchmarks.mutants.recording SCENARIO RUNS FOLDER`` prints it as JSON.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bettong.harness.api import load_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.conductor.order import FiringOrder
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.campaign import Campaign
from bettong.harness.runs.record import RunRecord
from bettong.harness.search.bounds import bounds_of
from bettong.harness.search.ldfi import search_scenario
from bettong.harness.search.turns import sort_of
from bettong.lineage.faults import FaultSet
from bettong.lineage.search.loop import Budget
from bettong.scenarios.benchmarks.mutants.executed import (
    Executed,
    Moment,
    Recorder,
    UnderFault,
)


class _Recorded(Campaign):
    """A campaign that takes the marks of each run."""

    recorder: Recorder

    def __post_init__(self) -> None:
        super().__post_init__()
        self.clean: dict[str, dict[int, frozenset[Moment]]] = {}
        self.under_faults: dict[str, UnderFault] = {}
        self.faults: frozenset[str] = frozenset()

    def run(
        self, schedule: Schedule, name: str | None = None, order: FiringOrder | None = None
    ) -> RunRecord:
        seen = super().run(schedule, name, order)
        taken = self.recorder.take()
        if not schedule.faults:
            for path, lines in taken.items():
                into = self.clean.setdefault(path, {})
                for line, moments in lines.items():
                    into[line] = into.get(line, frozenset()) | moments
        elif len(schedule.faults) == 1:
            fresh = {path: lines.keys() - self.clean.get(path, {}) for path, lines in taken.items()}
            (fault,) = schedule.faults
            self.under_faults[fault.id] = UnderFault(
                sort_of(fault), {path: frozenset(lines) for path, lines in fresh.items() if lines}
            )
        return seen

    def one_of_each_sort(self, faults: Sequence[Fault]) -> Sequence[FaultSet]:
        """The latest fault of each sort, in an order of the scenario's own: where not all of them
        are run, it is other ones in each scenario."""
        self.faults = frozenset(fault.id for fault in faults)
        chosen = sorted({sort_of(fault): fault.id for fault in faults}.values())
        random.Random(self.scenario.name).shuffle(chosen)
        return [frozenset({id}) for id in chosen]


def main() -> None:
    """The command line."""
    name, runs, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    recorder = Recorder(folder / "package", "engine")
    os.environ.update(recorder.environment)
    scenario = load_scenario(name)
    with LocalBackend(runner="in-process", kafka="kafka" in scenario.servers) as backend:
        options: dict[str, Any] = {"recorded": True}
        campaign = _Recorded(
            backend, scenario, folder / "out", scenario.messages(), options=options
        )
        campaign.recorder = recorder
        first = campaign.one_of_each_sort
        search_scenario(campaign, bounds_of(), budget=Budget(runs=runs), likely=first)
    if campaign.runs[0].outcome != "good":
        sys.exit(f"its clean run is {campaign.runs[0].outcome}: {campaign.runs[0].note}")
    found = Executed(campaign.clean, campaign.faults, campaign.under_faults)
    print(msgspec.json.encode(found).decode())


if __name__ == "__main__":
    main()
