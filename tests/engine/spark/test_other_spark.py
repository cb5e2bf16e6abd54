"""A checkpoint that another version of Spark has written is gone on with by this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from bettong.engine import interpret
from bettong.engine.sinks.files import read_rows
from bettong.scenarios.applications.word_count import app

OLDER = os.environ.get("BETTONG_OLDER_PYSPARK", "")
"""A folder in which ``pip install --target`` has put another pyspark."""

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not OLDER, reason="BETTONG_OLDER_PYSPARK names no other pyspark"),
]

LINES = [f"they know number {n % 7}" for n in range(80)]
KILLED = -9


def start(folder: Path, killed: str, path: str = "") -> int:
    """Runs a driver until it ends or is killed; gives its exit code."""
    job = Path(__file__).with_name("other_spark_job.py")
    env = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, str(job), str(folder), killed], env=env, timeout=1000)
    return done.returncode


@pytest.mark.parametrize(
    ("left", "killed"),
    [
        ("before the commit of batch 1", "before the manifest of batch 1"),
        ("before the commit of batch 1", "before the commit of batch 1"),
        ("after the commit of batch 1", "after the commit of batch 1"),
        ("after the commit of batch 1", "before the manifest of batch 2"),
    ],
)
def test_the_newer_one_goes_on_also_if_it_is_killed_meanwhile(
    tmp_path: Path, left: str, killed: str
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in LINES))
    assert start(tmp_path, left, OLDER) == KILLED
    older = {path.name.partition("-")[2] for path in (tmp_path / "notes").iterdir()}
    assert start(tmp_path, killed) == KILLED
    assert start(tmp_path, "nowhere") == 0
    assert len(older) == 1 and pyspark.__version__ not in older
    ran_on_both = {f"1-{version}" for version in (*older, pyspark.__version__)}
    assert ran_on_both <= {path.name for path in (tmp_path / "notes").iterdir()}
    outputs = interpret(app, {"lines": [line.encode() for line in LINES]}).outputs
    rows = [(row["id"], row["key"], row["data"].encode()) for row in read_rows(tmp_path / "totals")]
    assert sorted(rows) == sorted((o.id, o.key, o.data) for o in outputs)
