"""What a warm driver host does in a run: one start of an application's query."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bettong.engine.config import RunConfig
from bettong.engine.sinks.base import Noted, Row
from bettong.engine.sources.base import FileSource
from bettong.engine.spark.runner import run
from bettong.harness.cluster.driver_config import configurations
from bettong.harness.cluster.warm_application import app
from bettong.harness.spark.planner_python import PLANNER, PLANNER_FORKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_query(spark: SparkSession, **job: Any) -> None:
    """Run the query from where its checkpoint is until its stream has ended and everything of it
    is committed; raises QueryError when it fails."""
    for wanted, config in configurations(**job):
        run(wanted, spark, config).await_drained()


class _NoSink:
    """Takes outputs and forgets them."""

    def open(self, application: str, epoch: int, noted: Noted, newest: int | None = None) -> None:
        pass

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row],
        noted: Noted,
    ) -> None:
        pass

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        pass


def warm_up(spark: SparkSession) -> None:
    """Do once, while the host waits for its first run, what every run does: load classes, start
    Python's daemons, and have a fork server for planners."""
    folder = Path(os.environ["TMPDIR"])
    if not (folder / PLANNER_FORKS).exists():
        _start_fork_server(folder / PLANNER_FORKS)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        text = Path(name) / "text"
        text.write_text("one\ntwo\n")
        (sink,) = app.sinks
        checkpoint = Path(name) / "checkpoint"
        sources = {source.name: FileSource(text) for source in app.sources}
        config = RunConfig(checkpoint, sources, {sink.name: _NoSink()}, 1, 2)
        run(app, spark, config).await_drained()


def _start_fork_server(path: Path) -> None:
    fork_server = subprocess.Popen(
        [
            *(sys.executable, "-m", "bettong.harness.processes.fork_server", str(path)),
            *(PLANNER, "bettong.engine.endpoints", "bettong.engine.spark.source"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert fork_server.stdin is not None
    os.set_inheritable(os.dup(fork_server.stdin.fileno()), False)  # ends with this process
