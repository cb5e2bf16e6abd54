"""A run of the running sum from Kafka to Kafka, as a process that can die."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.sinks.kafka import KafkaSink
from bettong.engine.sources.kafka import KafkaSource
from bettong.engine.spark.runner import RunConfig, run
from bettong.engine.state.manifest import Manifest
from bettong.scenarios.applications.running_sum import app


class Dies(BatchProtocol):
    """The driver dies before or after a commit, without a word."""

    def commit(self, job: Job, manifest: Manifest) -> None:
        if [job.batch, "before"] == self.settings.options["at"]:
            os._exit(9)
        super().commit(job, manifest)
        if [job.batch, "after"] == self.settings.options["at"]:
            os._exit(9)


def main(servers: str, folder: str, jars: str, at: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.python.authenticate.socketTimeout", "2m")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .getOrCreate()
    )
    config = RunConfig(
        Path(folder) / "checkpoint",
        {"amounts": KafkaSource(servers, "amounts", end="now")},
        {"sums": KafkaSink(servers, "sums", Path(folder) / "staged")},
        batch_messages=40,
        batch_class=Dies,
        options={"at": json.loads(at)},
    )
    print(run(app, spark, config).await_drained())


if __name__ == "__main__":
    main(*sys.argv[1:])
