"""A driver that has looked what is in the target, and has Spark write the rest when another one has
done that, is hit where rows come from files too."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.harness.queries.job.check import check_one_job
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HELD = "pause(driver, from batch=1/stage=1/p=0/a=0/task until after batch=2/commits)"
JOB = """
from bettong.harness import Files, Job

class Rest(Job):
    inputs = {"orders": Files("json", "id STRING, amount INT", steps=3)}
    oracle = "batch"

    def transform(self, env):
        return env.input("orders")

    def write(self, df, env):
        def each(batch, batch_id):
            if batch_id > 0:
                batch = batch.join(self.read_all(env).select("id"), "id", "left_anti")
            batch.write.mode("append").parquet(str(env.workdir / "out"))

        return df.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()

    def read_all(self, env):
        return env.spark.read.schema("id STRING, amount INT").parquet(str(env.workdir / "out"))

    def read(self, env):
        return self.read_all(env).collect()
"""


def test_what_a_driver_has_seen_may_not_hold_when_spark_writes_for_it(
    environments: SparkEnvironments, tmp_path: Path
) -> None:
    job = tmp_path / "theirs.py"
    job.write_text(JOB)
    asked = Request(f"{job}:Rest", contract="job", only=(HELD,))
    result = check_one_job(asked, environments)
    assert result.verdict == "invalid", result.reason
    assert {a.kind for a in result.counterexamples[0].anomalies} == {"Duplicate"}
