"""A process that records which statements one scenario runs.

``python -m bettong.scenarios.benchmarks.mutants.recording SCENARIO RUNS FOLDER`` prints it as JSON.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from bettong.harness.api import load_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.conductor.order import FiringOrder
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.campaign import Campaign
from bettong.harness.runs.run import RunRecord
from bettong.harness.search.bounds import bounds_of
from bettong.harness.search.ldfi import search_scenario
from bettong.lineage.search.loop import Budget
from bettong.scenarios.benchmarks.mutants.executed import Executed, Recorder


class _Recorded(Campaign):
    """A campaign that takes the marks of each run."""

    recorder: Recorder

    def __post_init__(self) -> None:
        super().__post_init__()
        self.clean: dict[str, set[int]] = defaultdict(set)
        self.under_faults: dict[str, set[int]] = defaultdict(set)

    def run(
        self, schedule: Schedule, name: str | None = None, order: FiringOrder | None = None
    ) -> RunRecord:
        seen = super().run(schedule, name, order)
        into = self.under_faults if schedule.faults else self.clean
        for path, lines in self.recorder.take().items():
            into[path] |= lines
        return seen


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
        search_scenario(campaign, bounds_of(), budget=Budget(runs=runs))
    if campaign.runs[0].outcome != "good":
        sys.exit(f"its clean run is {campaign.runs[0].outcome}: {campaign.runs[0].note}")
    found = Executed(
        {path: frozenset(lines) for path, lines in campaign.clean.items()},
        {path: frozenset(lines) for path, lines in campaign.under_faults.items()},
    )
    print(msgspec.json.encode(found).decode())


if __name__ == "__main__":
    main()
