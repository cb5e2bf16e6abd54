"""Word count on the in-process runner: real processes, links and kills, without Spark."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.run import run_once
from bettong.lineage.errors import UsageError
from bettong.scenarios.word_count import WORD_COUNT


def test_a_clean_run_is_good_and_takes_the_same_steps_each_time(
    backend: LocalBackend, tmp_path: Path
) -> None:
    first, second = (run_once(backend, WORD_COUNT, Schedule(), tmp_path / name) for name in "ab")
    assert (first.outcome, first.replay_changed, first.note) == ("good", False, "")
    assert first.step_ids == second.step_ids
    assert first.outputs == second.outputs


def test_runs_leave_no_files_open(backend: LocalBackend, tmp_path: Path) -> None:
    def open_after(run: str) -> int:
        run_once(backend, WORD_COUNT, Schedule(), tmp_path / run)
        return sum(f.path.startswith(str(tmp_path)) for f in psutil.Process().open_files())

    assert [open_after(run) for run in "cde"] == [0, 0, 0]


def test_there_are_no_workers_without_spark() -> None:
    with pytest.raises(UsageError, match="no workers"):
        LocalBackend(workers=1, runner="in-process")
