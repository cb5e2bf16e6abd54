"""A savepoint carried to another checkpoint, by the command, on both runners."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from live_feed import bettong

APPLICATION = "bettong.scenarios.applications.running_sum:app"
MESSAGES = 20
BATCH = 5
KEPT = 1


def run(*words: str) -> None:
    """A command, which ends with 0."""
    done = subprocess.run([bettong(), *words], capture_output=True, text=True, timeout=1000)
    assert done.returncode == 0, done.stderr


def started(folder: Path, runner: str, checkpoint: str, out: str) -> None:
    """The application, until its file has ended."""
    run(
        *("start", APPLICATION, "--runner", runner, "--batch", str(BATCH), "--wait", "never"),
        *("--source", f"amounts={folder / 'numbers'}", "--sink", f"sums={folder / out}"),
        *("--checkpoint", str(folder / checkpoint)),
    )


def rows(folder: Path) -> list[list[str]]:
    """What each file of a sink says, in their order."""
    files = sorted(folder.glob("batch-*.jsonl"))
    return [[json.loads(row)["data"] for row in file.read_text().splitlines()] for file in files]


def check_savepoint(folder: Path, runner: str) -> None:
    """What was made from a savepoint of batch 1 does batch 1 again, and all that follow."""
    numbers = [f"{'ab'[n % 2]},{n}\n" for n in range(MESSAGES)]
    (folder / "numbers").write_text("".join(numbers))
    started(folder, runner, "first", "out")
    point = str(folder / "savepoint.tar")
    run("state", str(folder / "first"), "--at-batch", str(KEPT), "--export", point)
    run("state", str(folder / "second"), "--import", point)
    started(folder, runner, "second", "again")
    whole = rows(folder / "out")
    assert len(whole) == MESSAGES // BATCH
    assert rows(folder / "again") == whole[KEPT:]


def test_a_run_goes_on_from_a_savepoint(tmp_path: Path) -> None:
    check_savepoint(tmp_path, "in-process")


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_on_spark_goes_on_from_a_savepoint(tmp_path: Path) -> None:
    check_savepoint(tmp_path, "spark")
