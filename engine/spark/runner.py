"""Running an application on Spark."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import uuid
from typing import TYPE_CHECKING

from bettong.engine import steps
from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol, Report
from bettong.engine.config import RunConfig as RunConfig
from bettong.engine.graph import Application
from bettong.engine.sources.base import Extent, beginnings
from bettong.engine.spark.classes import remember_classes
from bettong.engine.spark.execution import Share, execute, execute_in_one_task, read, share_of
from bettong.engine.spark.notes import SparkNotes
from bettong.engine.spark.shipping import ship_modules, use_this_python
from bettong.engine.spark.source import (
    SourceSpec,
    data_source,
    initial,
    release,
    since_the_beginning,
)
from bettong.engine.state.manifest import empty, stored
from bettong.lineage.errors import BettongError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("bettong")
_POLL_S = 0.02
_ASK_S = 0.05
_STARTS = 5
_NO_WORKER = "Python worker failed to connect back"
"""Spark gives a Python process ten seconds to come up, and no setting changes that: on a machine
with other work the one that plans batches may take longer."""
_FOREVER = 1 << 62
_DETAILS = re.compile(r"\n=== Streaming Query ===|\n\nJVM stacktrace:")


class _EndingError(BettongError):
    """A batch that is left to the next start."""


class QueryError(BettongError):
    """The query failed; the message says why."""


def run(app: Application, spark: SparkSession, config: RunConfig) -> RunningPipeline:
    """Start the application's query, or go on with it where its checkpoint ends.

    Raises:
        UsageError: sources or sinks do not match the application, a number is out of range, or
            the checkpoint cannot be gone on with.
    """
    _check_checkpoint(config)
    protocol = config.begin(app)
    cls = type(protocol)
    endpoints = (*config.sources.values(), *config.sinks.values())
    ship_modules(app, cls, cls.level_task, cls.read_task, *endpoints)
    use_this_python(spark)
    remember_classes(spark.sparkContext)
    steps.install(config.instrumentation)
    try:
        protocol.open()
        notes = SparkNotes(config.spark_checkpoint)
        notes.remove_unwritten()
        notes.check()
        return RunningPipeline(app, spark, config, protocol)
    except BaseException:
        protocol.close()
        raise


class RunningPipeline:
    """A query that is running."""

    def __init__(
        self, app: Application, spark: SparkSession, config: RunConfig, protocol: BatchProtocol
    ) -> None:
        self._config = config
        self._notes = SparkNotes(config.spark_checkpoint)
        self._protocol = protocol
        self._failure: BaseException | None = None
        self._at_work = threading.Lock()
        self._is_ending = False
        self._has_begun = False
        self._last_run = -1
        self._starts = 1
        self._spec = _source_spec(app, config, protocol)
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        writer = (
            self._messages(app, spark)
            .writeStream.foreachBatch(self._run_batch)
            .option("checkpointLocation", str(config.spark_checkpoint))
        )
        self._writer = writer
        self.query: StreamingQuery = writer.start()

    def _messages(self, app: Application, spark: SparkSession) -> DataFrame:
        """The blocks of all sources."""
        name = f"bettong_{app.name}_{uuid.uuid4().hex[:8]}"
        spark.dataSource.register(data_source(name, self._spec))
        return spark.readStream.format(name).load()

    def _run_batch(self, frame: DataFrame, batch: int) -> None:
        with self._at_work:
            self._has_begun = True
            if self._is_ending:
                raise _EndingError("the run ends before this batch")
            steps.install(self._config.instrumentation)
            self._report_progress()
            try:
                self._protocol.run(batch, lambda job: self._execute(job, frame))
            except BaseException as e:
                self._failure = e
                raise
            self._last_run = batch

    def _execute(self, job: Job, frame: DataFrame) -> list[Report]:
        """Run the tasks of a batch. Where it begins and ends Spark has noted."""
        classes = self._protocol.tasks
        context = frame.sparkSession.sparkContext
        share = self._share(job.batch)
        if len(share) <= self._config.one_task_messages:
            return execute_in_one_task(context, job, classes, share) if share else []
        return execute(job, classes.level_task, read(context, job, classes, share))

    def _share(self, batch: int) -> Share:
        """What a batch takes."""
        streams = self._protocol.settings.streams
        start = self._notes.end_of(batch - 1) if batch else initial(streams)
        return share_of(streams, self._config.read_slices, start, self._notes.end_of(batch))

    def await_drained(self, stop: threading.Event | None = None) -> int:
        """Wait until every stream has ended and all its messages are counted and visible, stop
        the query and release the messages at their sources.

        Args:
            stop: once it is set, the run ends after the batch at hand; the next start goes on
                there.

        Returns:
            How many batches the application has done since its beginning.

        Raises:
            QueryError: the query failed.
        """
        until = stop or threading.Event()
        try:
            self._until_drained(until)
            if until.is_set():
                self._finish_batch()
        except BaseException as e:
            if self._protocol.settings.health is not None:
                self._protocol.settings.health.failed(e)
            raise
        finally:
            self.stop()
        done = self._notes.done()
        if done is None:
            return 0
        release(self._spec, done["batch"] - 1, done["streams"])
        return int(done["batch"])

    def _until_drained(self, until: threading.Event) -> None:
        ends: dict[str, int] = {}
        streams = self._protocol.settings.streams
        for name, source in streams.items():
            extent = Extent(0, False)
            while not extent.ended:
                # Not asked to wait for it: batches ask by the same connection.
                extent = source.extent(_FOREVER, 0.0)
                self._wait(0 if extent.ended else _ASK_S)
                if until.is_set():
                    return
            ends[name] = extent.end
        while ends != beginnings(streams) and not until.is_set():
            done = self._notes.done()
            if done is not None and since_the_beginning(streams, done) == ends:
                return
            self._wait(_POLL_S)

    def _finish_batch(self) -> None:
        """Let no further batch begin, and wait until Spark has noted the one at hand as done."""
        with self._at_work:
            self._is_ending = True
        if self._protocol.settings.health is not None:
            self._protocol.settings.health.ending()
        while self.query.isActive and self._last_run >= 0:
            if self._notes.is_done(self._last_run):
                return
            time.sleep(_POLL_S)

    def _wait(self, seconds: float) -> None:
        if self._is_over(max(seconds, 0.001)):
            raise QueryError("the query was stopped before its streams were drained")

    def _is_over(self, seconds: float) -> bool:
        from pyspark.errors import StreamingQueryException

        try:
            return bool(self.query.awaitTermination(seconds))  # type: ignore[arg-type]
        except StreamingQueryException as e:
            if self._has_begun or self._starts == _STARTS or _NO_WORKER not in str(e):
                raise self._error(e) from (self._failure or e)
        log.warning("Spark's planner did not come up in time: the query is started again")
        self._starts += 1
        self.query = self._writer.start()
        return False

    def _error(self, e: Exception) -> QueryError:
        cause = self._failure
        if isinstance(cause, BettongError):
            return QueryError(str(cause))
        said = str(cause or e)
        if line := _bettong_line(said):
            return QueryError(line)
        return QueryError(said if cause else f"{self._notes.checkpoint}: {_in_one_line(said)}")

    def stop(self) -> None:
        """Stop the query; a batch in the middle is done again at the next start."""
        self.query.stop()
        self._report_progress()
        self._protocol.close()

    def _report_progress(self) -> None:
        """Tell who measures what Spark says of the batch before; at the first there is nothing."""
        observer, query = self._protocol.settings.observer, getattr(self, "query", None)
        if observer is not None and query is not None:
            progress = query.lastProgress
            if progress is not None:
                observer.progress(json.loads(progress.json))


def _check_checkpoint(config: RunConfig) -> None:
    """Raises UsageError when Spark would begin again what the state log no longer has the beginning
    of, and so would read other batches than those that sinks know."""
    versions = stored(config.store)
    if versions and versions[0][0] > 0 and SparkNotes(config.spark_checkpoint).last_planned < 0:
        raise UsageError(
            f"{config.checkpoint} has state up to batch {versions[-1][0]} and no notes of Spark's: "
            "it was written by the in-process runner, go on with it there, or spark/ in it was "
            "lost, restore that from a copy"
        )


def _source_spec(app: Application, config: RunConfig, protocol: BatchProtocol) -> SourceSpec:
    notes = SparkNotes(config.spark_checkpoint)
    last = notes.last_planned
    return SourceSpec(
        Job(
            app,
            -1,
            protocol.epoch,
            config.state_partitions,
            empty(app.name),
            config.store,
            {},
            config.instrumentation,
            config.options,
            config.metrics is not None,
            len(protocol.settings.streams),
        ),
        protocol.settings.streams,
        config.batching(app),
        config.poll_s,
        notes.end_of(last) if last >= 0 else None,
        protocol.planner,
    )


def _bettong_line(text: str) -> str:
    """The line of a worker's traceback that names the user's mistake; empty when there is none."""
    lines = [line for line in text.splitlines() if "Error: " in line and "bettong." in line]
    return lines[-1].split("Error: ", 1)[1] if lines else ""


def _in_one_line(text: str) -> str:
    """What Spark says of a failure, without the plan of the query and the calls behind it."""
    return " ".join(_DETAILS.split(text)[0].split())
