"""Sinks that change files past Python, in their function or in tasks: a driver that has looked what
is there, and stands still before it writes, is hit too."""

from __future__ import annotations

from pathlib import Path

import pytest
from users_sinks import written_to

from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments

pytestmark = [pytest.mark.spark, pytest.mark.slow]

THEIRS = """
from uuid import uuid4
import pyarrow
from pyarrow import parquet

class AsksBeforeArrow(Mine):
    def write(self, rows, env):
        def each(batch, batch_id):
            table = pyarrow.Table.from_pylist([{"id": row.id} for row in batch.collect()])
            if any(env.workdir.glob(f"{batch_id}-*")):
                return
            parquet.write_table(table, env.workdir / f"{batch_id}-{uuid4()}")  # here
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()

    def read(self, env):
        files = env.workdir.glob("*-*")
        return [row for file in files for row in parquet.read_table(file).to_pylist()]

class AsksInTask(AsksBeforeArrow):
    def write(self, rows, env):
        folder = env.workdir

        def each(batch, batch_id):
            def task(rows):
                table = pyarrow.Table.from_pylist([{"id": row.id} for row in rows])
                if not any(folder.glob(f"{batch_id}-*")):
                    parquet.write_table(table, folder / f"{batch_id}-{uuid4()}")  # in a task
            batch.coalesce(1).foreachPartition(task)
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()
"""


@pytest.mark.parametrize(
    ("name", "step", "marked"),
    [
        ("AsksBeforeArrow", "batch=1/sink.file", "# here"),
        ("AsksInTask", "batch=1/p=0/a=0/sink.file", "# in a task"),
    ],
)
def test_what_a_driver_has_seen_may_not_hold_when_it_writes_past_python(
    environments: SparkEnvironments, tmp_path: Path, name: str, step: str, marked: str
) -> None:
    path = Path(written_to(tmp_path, THEIRS))
    lines = path.read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if text.endswith(marked))
    held = f"pause(driver, from {step}={line}.line until after batch=3/commits)"
    result = check_one(Request(f"{path}:{name}", only=(held,)), environments)
    assert result.verdict == "invalid", result.reason
    (found,) = result.counterexamples
    assert {a.kind for a in found.anomalies} == {"Duplicate"}
