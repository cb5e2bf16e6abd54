"""A sink whose code ends its process, or never returns: an answer within the budget, no pass."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from users_sinks import written_to

from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.lineage.errors import BettongError
from bettong.lineage.results import Result
from bettong.lineage.search.loop import Budget

pytestmark = pytest.mark.spark

MAIN = "from bettong.harness.cli import main; main()"
BUDGET_S, LATE_S = 60, 5  # within which Spark is ready, and what may be added
THEIRS = """
import os, sys, threading
import psutil

def for_ever():
    open(HANGS, "w").close()
    threading.Event().wait()

class Ends(Mine):
    def write(self, rows, env):
        os._exit(0)

class EndsInABatch(Mine):
    def write(self, rows, env):
        def end(batch, batch_id):
            os._exit(0)
        return rows.writeStream.foreachBatch(end).option(
            "checkpointLocation", env.checkpoint).start()

class Exits(Mine):
    def write(self, rows, env):
        sys.exit(0)

class LosesItsSpark(Mine):
    def write(self, rows, env):
        def kill(batch, batch_id):
            for each in psutil.Process().children():
                if "java" in each.name():
                    each.kill()
                    each.wait()
            batch.count()
        return rows.writeStream.foreachBatch(kill).option(
            "checkpointLocation", env.checkpoint).start()

class EndsInSetup(Mine):
    def setup(self, env):
        os._exit(0)

class EndsInRead(Mine):
    def read(self, env):
        os._exit(0)

class Hangs(Mine):
    def write(self, rows, env):
        for_ever()

class HangsInABatch(Mine):
    def write(self, rows, env):
        return rows.writeStream.foreachBatch(lambda batch, batch_id: for_ever()).option(
            "checkpointLocation", env.checkpoint).start()

class HangsInATask(Mine):
    def write(self, rows, env):
        def task(rows):
            for_ever()
        return rows.writeStream.foreachBatch(lambda batch, _: batch.foreachPartition(task)).option(
            "checkpointLocation", env.checkpoint).start()

class HangsInSetup(Mine):
    def setup(self, env):
        for_ever()

class HangsInRead(Mine):
    def read(self, env):
        for_ever()

class HangsAfterACrash(Mine):
    def write(self, rows, env):
        if (env.workdir / "rows.jsonl").exists():
            for_ever()
        return super().write(rows, env)
"""


@pytest.fixture
def theirs(tmp_path: Path) -> str:
    return written_to(tmp_path, f"HANGS = {str(tmp_path / 'hangs')!r}\n{THEIRS}")


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder for what is temporary: names of sockets are no longer than a hundred bytes."""
    with tempfile.TemporaryDirectory(prefix="b-") as folder:
        yield Path(folder)


def asked(environments: SparkEnvironments, target: str) -> Result:
    return check_one(Request(target, faults=1, budget=Budget(seconds=900)), environments, print)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) for n in ("Ends", "EndsInABatch", "Exits")],
)
def test_a_write_that_ends_the_process_is_no_pass(
    environments: SparkEnvironments, theirs: str, name: str
) -> None:
    result = asked(environments, f"{theirs}:{name}")
    assert result.verdict == "unknown"
    assert "its process ended by itself, with status 0" in result.reason
    assert not result.counterexamples


def test_a_driver_whose_jvm_has_ended_is_dead(environments: SparkEnvironments, theirs: str) -> None:
    """Python says no more of it than that a connection was refused."""
    result = asked(environments, f"{theirs}:LosesItsSpark")
    assert result.verdict == "unknown"
    assert "the JVM of its Spark ended by itself" in result.reason
    assert not result.counterexamples


@pytest.mark.slow
@pytest.mark.parametrize(("name", "part"), [("EndsInSetup", "setup"), ("EndsInRead", "read")])
def test_a_part_that_ends_the_process_is_named(
    environments: SparkEnvironments, theirs: str, name: str, part: str
) -> None:
    with pytest.raises(BettongError, match=rf"{part}\(\).* its process ended by itself"):
        asked(environments, f"{theirs}:{name}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["Hangs", "HangsInABatch", "HangsInATask", "HangsInSetup", "HangsInRead", "HangsAfterACrash"],
)
def test_the_budget_is_held_whatever_a_run_does(
    theirs: str, name: str, tmp_path: Path, short: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "check-sink", f"{theirs}:{name}", "--out", "out",
         "--budget", f"{BUDGET_S}s", "--quiet"],
        cwd=tmp_path, capture_output=True, text=True, timeout=1000,
        env={**os.environ, "TMPDIR": str(short)},
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert (tmp_path / "hangs").exists(), "it was not even begun"
    result = Result.read(tmp_path / "out")
    assert result.verdict == "unknown" and "budget" in result.reason
    assert result.duration_s < BUDGET_S + LATE_S
    assert not list(short.glob("bettong-*"))
    assert not [p for p in psutil.process_iter(["environ"]) if _is_of(p, short)]


def _is_of(process: psutil.Process, folder: Path) -> bool:
    return (process.info["environ"] or {}).get("TMPDIR", "").startswith(str(folder))
