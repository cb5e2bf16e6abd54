"""A run from Kafka and a file to Kafka on either runner, as a process that can die."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from bettong.engine import application, sink, source
from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.in_process import run_in_process
from bettong.engine.sinks.kafka import KafkaSink
from bettong.engine.sources.base import FileSource
from bettong.engine.sources.kafka import KafkaSource
from bettong.engine.spark.runner import RunConfig, run
from bettong.engine.state.manifest import Manifest
from bettong.scenarios.applications.running_sum import add, amount, line, name

app = application(
    "kafka_and_file",
    source("amounts", amount)
    .merge(source("others", amount))
    .key_by(name)
    .to(add)
    .to_sink(sink("sums", line)),
)


class Dies(BatchProtocol):
    """The driver dies before or after a commit, without a word."""

    def commit(self, job: Job, manifest: Manifest) -> None:
        if [job.batch, "before"] == self.settings.options["at"]:
            os._exit(9)
        super().commit(job, manifest)
        if [job.batch, "after"] == self.settings.options["at"]:
            os._exit(9)


def session() -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.python.authenticate.socketTimeout", "2m")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .getOrCreate()
    )


def main(runner: str, servers: str, topic: str, folder: str, at: str) -> None:
    config = RunConfig(
        Path(folder) / "checkpoint",
        {
            "amounts": KafkaSource(servers, topic, end="now"),
            "others": FileSource(Path(folder) / "others"),
        },
        {"sums": KafkaSink(servers, f"{topic}.sums", Path(folder) / "staged")},
        batch_messages=15,
        batch_class=Dies,
        options={"at": json.loads(at)},
    )
    if runner == "spark":
        print(run(app, session(), config).await_drained())
    else:
        print(run_in_process(app, config))


if __name__ == "__main__":
    main(*sys.argv[1:])
