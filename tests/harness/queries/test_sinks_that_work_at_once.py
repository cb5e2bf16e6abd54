"""Sinks whose functions start threads and processes: what these do is hit, and is no pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from users_sinks import written_to

from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.lineage.results import Result

pytestmark = [pytest.mark.spark, pytest.mark.slow]

THEIRS = """
import subprocess, threading
from multiprocessing.pool import ThreadPool

class AThread(Mine):
    # Takes a batch for written whose folder is there, and writes it in a thread of a pool whose
    # threads wait for no turn.
    def write(self, rows, env):
        def each(batch, batch_id):
            folder = env.workdir / f"batch-{batch_id}"
            if not folder.exists():
                folder.mkdir()
                rows = batch.select("id", "value").write.mode("overwrite")
                with ThreadPool(1) as pool:
                    pool.apply(rows.parquet, (str(folder / "rows"),))
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()

    def read(self, env):
        return [row for folder in env.workdir.glob("batch-*/rows")
                for row in env.spark.read.schema("id STRING, value BIGINT").parquet(
                    str(folder)).collect()]

class BesideAThread(Mine):
    # A thread that changes nothing runs as long as the function does.
    def write(self, rows, env):
        def each(batch, batch_id):
            over = threading.Event()
            beats = threading.Thread(target=lambda: list(iter(lambda: over.wait(0.001), True)))
            beats.start()
            text = "".join(json.dumps({"id": row.id}) + "\\n" for row in batch.collect())
            (env.workdir / "aside").write_text(text)
            (env.workdir / "aside").rename(env.workdir / f"rows-{batch_id}")
            over.set()
            beats.join()
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()

    def read(self, env):
        return [json.loads(line) for file in env.workdir.glob("rows-*") for line in file.open()]

class AProcess(Mine):
    def write(self, rows, env):
        def each(batch, batch_id):
            text = "".join(json.dumps({"id": row.id}) + "\\n" for row in batch.collect())
            done, rows = env.workdir / f"done-{batch_id}", env.workdir / f"rows-{batch_id}"
            script = f"test -e {done} || {{ touch {done}; cat > {rows}; }}"
            subprocess.run(["sh", "-c", script], input=text.encode(), check=True)
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()

    def read(self, env):
        return [json.loads(line) for file in env.workdir.glob("rows-*") for line in file.open()]
"""
CRASH = "crash(driver, before batch=1/commits)"
PAUSE = "pause(driver, from batch=1/stage=0/p=0/a=0/task until after batch=3/commits)"
FAILED = "storage(EIO, after batch=1/concurrent/stage=0/p=0/a=0/task, each attempt)"


@pytest.fixture
def theirs(tmp_path: Path) -> str:
    return written_to(tmp_path, THEIRS)


def judged(environments: SparkEnvironments, target: str, fault: str) -> Result:
    return check_one(Request(target, only=(fault,)), environments)


def test_the_job_of_a_thread_fails_where_it_is_to(
    environments: SparkEnvironments, theirs: str
) -> None:
    result = judged(environments, f"{theirs}:AThread", FAILED)
    assert (result.verdict, result.guarantee) == ("invalid", "at-most-once"), result.reason
    assert result.counterexamples[0].faults == (FAILED,)


def test_who_works_beside_a_batch_is_told_and_nothing_passes(
    environments: SparkEnvironments, theirs: str
) -> None:
    result = judged(environments, f"{theirs}:AProcess", CRASH)
    assert result.verdict == "unknown"
    assert "its code does several things at once" in result.reason
    who = "the process 'sh' changed files in more than one step"
    assert result.details["concurrent"] == [who]


def test_what_another_driver_changes_no_thread_has_changed(
    environments: SparkEnvironments, theirs: str
) -> None:
    result = judged(environments, f"{theirs}:BesideAThread", PAUSE)
    assert (result.verdict, result.guarantee) == ("valid", "effectively-once"), result.reason
    assert "concurrent" not in result.details
