"""A driver that notes which Spark it runs on, and is killed where it is told."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pyspark

from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol, Report
from bettong.engine.batching import BY_NUMBER
from bettong.engine.sinks.files import FileSink
from bettong.engine.sources.base import FileSource
from bettong.engine.spark.runner import RunConfig, run
from bettong.engine.state.manifest import Manifest
from bettong.harness.spark.user_session import session
from bettong.scenarios.applications.word_count import app


class Killed(BatchProtocol):
    def _at(self, batch: int, moment: str) -> None:
        if self.settings.options["killed"] == f"{moment} of batch {batch}":
            os.kill(os.getpid(), signal.SIGKILL)

    def write_manifest(self, job: Job, manifest: Manifest, reports: Sequence[Report]) -> None:
        Path(self.settings.options["notes"], f"{job.batch}-{pyspark.__version__}").touch()
        self._at(job.batch, "before the manifest")
        super().write_manifest(job, manifest, reports)

    def commit(self, job: Job, manifest: Manifest) -> None:
        self._at(job.batch, "before the commit")
        super().commit(job, manifest)
        self._at(job.batch, "after the commit")


def main(folder: str, killed: str) -> None:
    at = Path(folder)
    config = RunConfig(
        at / "checkpoint",
        {"lines": FileSource(at / "lines")},
        {"totals": FileSink(at / "totals")},
        batch_messages=20,
        batch_wait_s=BY_NUMBER,
        batch_class=Killed,
        options={"killed": killed, "notes": str(at / "notes")},
    )
    with session(app.name, "local[2]", at / "spark.log") as spark:
        run(app, spark, config).await_drained()


if __name__ == "__main__":
    main(*sys.argv[1:])
