"""Kafka's records as blocks of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.errors import AnalysisException

from bettong.engine.batch.garbage import freeze_what_is_loaded
from bettong.engine.batch.job import Job
from bettong.engine.batch.tasks import Moved, ReadTask
from bettong.engine.batching import Batching
from bettong.engine.sources.kafka import KafkaSource
from bettong.engine.spark.source import SCHEMA, to_batch
from bettong.engine.steps import step
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import MessageRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOREVER_DAYS = 36_500

_PARTITIONS = 10_000
"""More than a topic has: reports of tasks are distinguished by source and partition."""


def frame(
    spark: SparkSession, job: Job, sources: Mapping[str, KafkaSource], batching: Batching
) -> DataFrame:
    """The blocks of all sources, as those of :mod:`bettong.engine.spark.source`.

    Raises:
        UsageError: the session has no connector for Kafka.
    """
    try:
        return reduce(
            lambda a, b: a.union(b),
            [
                _records(spark, source, batching).mapInArrow(_read(job, stream), SCHEMA)
                for stream, source in sources.items()
            ],
        )
    except AnalysisException as e:
        if "kafka" not in str(e):
            raise
        raise UsageError(
            "this Spark session has no connector for Kafka: start it with the jars of "
            "org.apache.spark:spark-sql-kafka-0-10_2.13 in spark.jars"
        ) from e


def _records(spark: SparkSession, source: KafkaSource, batching: Batching) -> DataFrame:
    reader = spark.readStream.format("kafka").options(**options_of(source, batching))
    return reader.load().select("partition", "offset", "value")


def options_of(source: KafkaSource, batching: Batching) -> dict[str, str]:
    """What Spark's connector is told of a topic and of when a batch closes.

    Its own wait begins with the batch before. It would take a wait on a topic that is read to its
    end for that end, so there a batch closes with what there is.
    """
    closes = {"maxOffsetsPerTrigger": str(batching.messages)}
    if source.end is None and batching.wait_s > 0:
        wait = f"{_FOREVER_DAYS}d" if batching.by_number else f"{batching.wait_s * 1000:.0f}ms"
        closes |= {"minOffsetsPerTrigger": str(batching.messages), "maxTriggerDelay": wait}
    return {
        "kafka.bootstrap.servers": source.servers,
        "subscribe": source.topic,
        "startingOffsets": "earliest",
        **closes,
        **source.options,
    }


def _read(job: Job, stream: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    place = [s.name for s in job.app.sources].index(stream)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_what_is_loaded()
        records = pa.Table.from_batches(list(batches), _RECORDS)
        task = TaskContext.get()
        assert task is not None
        batch = int(task.getLocalProperty("streaming.sql.batchId"))  # type: ignore[arg-type]
        for partition in pc.unique(records["partition"]).to_pylist():
            own = records.filter(pc.equal(records["partition"], partition))
            work = KafkaTask(
                replace(job, batch=batch),
                None,
                partition,
                place * _PARTITIONS + partition,
                task.attemptNumber(),
            )
            yield to_batch(work.records(stream, own["offset"].to_numpy(), own["value"]))

    return read


_RECORDS = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])


class KafkaTask(ReadTask):
    """Takes records that have been read through all steps before the first state."""

    def records(
        self, source: str, offsets: np.ndarray[tuple[int], np.dtype[np.int64]], values: pa.Array
    ) -> Moved:
        """Blocks and the state partitions that they go to."""
        planned = MessageRange(f"{source}-{self.slice}", int(offsets[0]), int(offsets[-1]) + 1)
        with step(self.origin, causes=[f"batch={self.job.batch}/offsets"], carries=[planned]):
            data = pc.fill_null(values, b"").to_pylist()
        return self.forward(source, self.slice, offsets, data, planned)
