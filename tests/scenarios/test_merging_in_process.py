"""State files that are merged while the number of state partitions changes: real processes, without
Spark."""

from __future__ import annotations

from pathlib import Path

from bettong.engine.keys import bounds
from bettong.engine.state.query import version
from bettong.engine.state.store import LocalStore
from bettong.harness.backends.local import LocalBackend
from bettong.harness.cluster.layout import Layout
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.run import run_once
from bettong.scenarios.merging import MERGING_APART


def test_files_about_a_shared_one_are_not_merged_over_it(
    backend: LocalBackend, tmp_path: Path
) -> None:
    crash = "faults: [{crash: {node: driver, before: batch=2/sink.commit}}]"
    seen = run_once(
        backend, MERGING_APART, Schedule.parse(crash), tmp_path / "run", Asked(replay=False)
    )
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note
    files = version(LocalStore(Layout(tmp_path / "run").checkpoint / "state")).files
    low, high = bounds(1, 3)
    of_one = [file for file in files if file.low < high and low <= file.high]
    assert [low <= file.low and file.high < high for file in of_one] == [True, False, True], (
        "a file of two partitions lies between two of one"
    )
