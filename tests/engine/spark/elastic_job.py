"""A driver on a standalone cluster; its tasks leave a note of the worker that they ran on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.batch.tasks import LevelTask, Moved
from bettong.engine.sinks.files import FileSink
from bettong.engine.sources.base import FileSource
from bettong.engine.spark.runner import RunConfig, run
from bettong.scenarios.applications.word_count import app


class NotingTask(LevelTask):
    def run(self, arrived) -> Moved:  # type: ignore[no-untyped-def]
        folder = Path(self.job.options["notes"])
        folder.joinpath(f"{self.job.batch}-{os.environ['BETTONG_NODE']}").touch()
        return super().run(arrived)


class Noting(BatchProtocol):
    level_task = NotingTask


def main(master: str, folder: str) -> None:
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.cores", "2")
        .config("spark.python.authenticate.socketTimeout", "2m")
        .config("spark.locality.wait", "0")
        .config("spark.network.timeout", "60s")
        .config("spark.executor.heartbeatInterval", "5s")
        .config("spark.python.daemon.killWorkerOnFlushFailure", "true")
        .getOrCreate()
    )
    at = Path(folder)
    config = RunConfig(
        at / "checkpoint",
        {"lines": FileSource(at / "lines", follow=True, end=b"end")},
        {"totals": FileSink(at / "totals")},
        batch_messages=20,
        batch_class=Noting,
        options={"notes": str(at / "notes")},
    )
    print(run(app, spark, config).await_drained())


if __name__ == "__main__":
    main(*sys.argv[1:])
