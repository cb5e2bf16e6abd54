"""A job on a machine that is not in UTC."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.harness.queries.job.check import check_job

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOB = """
from bettong.harness import Files, Job, OnePerKey

# In Berlin the clock is set back at 01:00 UTC: the same hour comes twice.
ROWS = [{"id": f"o{n}", "at": f"2024-10-27T0{n}:30:00Z"} for n in range(2)]

class Orders(Job):
    inputs = {"orders": Files("json", ROWS, schema="id STRING, at TIMESTAMP", per_step=1)}
    oracle = OnePerKey("id")

    def transform(self, env):
        return env.input("orders")

    def write(self, df, env):
        writer = df.writeStream.format("parquet").option("path", str(env.workdir / "out"))
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env):
        return env.spark.read.parquet(str(env.workdir / "out")).collect()
"""


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
def test_times_that_spark_gives_python_are_those_that_were_fed(tmp_path: Path) -> None:
    file = tmp_path / "orders.py"
    file.write_text(JOB)
    result = check_job(f"{file}:Orders", clean_only=True)
    assert (result.verdict, result.anomalies) == ("valid", ()), result.reason
    assert any("UTC" in text for text in result.assumptions)
