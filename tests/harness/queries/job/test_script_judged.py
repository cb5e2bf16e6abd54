"""check-job on real Spark with an untouched script: its own process is started, killed, and started
again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bettong.harness.queries.job.check import check_one_job
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.harness.queries.script import Script
from bettong.lineage.search.loop import Budget

pytestmark = pytest.mark.spark

REPLAY = "crash(driver, before batch=1/commits)"
MAIN = """
import os
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, amount INT").json(os.environ["IN"])

def append(batch, batch_id):
    with open(os.environ["OUT"], "a") as out:
        out.writelines(line + "\\n" for line in batch.toJSON().collect())

query = orders.writeStream.foreachBatch(append)
query.option("checkpointLocation", os.environ["CKPT"]).start().awaitTermination()
"""
READER = """
import json

def reader(env):
    return [json.loads(line) for line in (env.workdir / "out.jsonl").open()]
"""


def of(tmp_path: Path, main: str) -> Script:
    """A script that is fed six orders in three steps."""
    (tmp_path / "main.py").write_text(main)
    (tmp_path / "reader.py").write_text(READER)
    orders = [json.dumps({"id": f"o{n}", "amount": n}) for n in range(6)]
    (tmp_path / "orders.jsonl").write_text("".join(f"{order}\n" for order in orders))
    named = {"IN": "{work}/in", "OUT": "{work}/out.jsonl", "CKPT": "{work}/ckpt"}
    return Script(
        str(tmp_path / "main.py"),
        named,
        (f"{tmp_path}/orders.jsonl@dir:in",),
        f"{tmp_path}/reader.py:reader",
        steps=3,
    )


def test_a_script_that_appends_is_killed_and_writes_its_batch_again(
    environments: SparkEnvironments, tmp_path: Path
) -> None:
    script = of(tmp_path, MAIN)
    request = Request(script.target, contract="job", script=script, only=(REPLAY,))
    result = check_one_job(request, environments, print)
    assert (result.verdict, result.guarantee) == ("invalid", "at-least-once"), result.reason
    (found,) = result.counterexamples
    assert {a.kind for a in found.anomalies} == {"Duplicate"}
    assert result.coverage.injected == 1


@pytest.mark.slow
def test_what_a_scripts_function_never_did_is_named(
    environments: SparkEnvironments, tmp_path: Path
) -> None:
    """No run reaches it, so that no verdict may rest on it."""
    large = "    if batch_id > 9:\n        os.remove(os.environ['OUT'])\n    with open"
    script = of(tmp_path, MAIN.replace("    with open", large))
    request = Request(script.target, contract="job", script=script, budget=Budget(runs=1))
    result = check_one_job(request, environments, print)
    assert result.verdict == "unknown"
    assert "main.py line 10 " in str(result.details["never_ran"]), result.details
