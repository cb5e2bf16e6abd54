"""What a job keeps in the memory of its process dies with it, under one fault set too."""

from __future__ import annotations

from pathlib import Path

import pytest
from users_sinks import LIBRARY

from bettong.harness.queries.job.check import check_one_job
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments

pytestmark = pytest.mark.spark

CRASH = "crash(driver, before batch=1/commits)"
JOB = """
import json
import sys

from bettong.harness import Files, Job

sys.path.append({folder!r})
import job_library_elsewhere

class Remembers(Job):
    inputs = {{"orders": Files("json", "id STRING, amount INT", steps=3)}}

    def transform(self, env):
        return env.input("orders")

    def write(self, df, env):
        def write(batch, batch_id):
            lines = "".join(f"{{line}}\\n" for line in batch.toJSON().collect())
            job_library_elsewhere.append_once(env.workdir / "rows", batch_id, lines)

        writer = df.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env):
        return [json.loads(line) for line in (env.workdir / "rows").open()]
"""


def test_what_a_library_remembers_is_gone_under_the_one_crash_that_is_asked_for(
    environments: SparkEnvironments, tmp_path: Path
) -> None:
    library = (
        tmp_path / "site-packages"
    )  # an installed one: the user's own is loaded again at each start
    library.mkdir()
    (library / "job_library_elsewhere.py").write_text(LIBRARY)
    job = tmp_path / "jobs" / "theirs.py"
    job.parent.mkdir()
    job.write_text(JOB.format(folder=str(library)))
    asked = Request(f"{job}:Remembers", contract="job", only=(CRASH,))
    result = check_one_job(asked, environments)
    assert (result.verdict, result.guarantee) == ("invalid", "at-least-once")
    assert result.counterexamples[0].faults == (CRASH,)
    assert result.runs[0].note == "by SIGKILL; while its process lives on all is right"
