"""The tasks of a batch as Spark jobs: a shuffle of blocks before each level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from bettong.engine.batch.blocks import unpack
from bettong.engine.batch.garbage import freeze_what_is_loaded
from bettong.engine.batch.job import Job
from bettong.engine.batch.plan import Plan
from bettong.engine.batch.protocol import Report
from bettong.engine.batch.tasks import LevelTask
from bettong.engine.spark.source import SCHEMA, to_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def execute(job: Job, level_task: type[LevelTask], frame: DataFrame) -> list[Report]:
    """Run the levels of a batch over the blocks that its readers give, and collect reports."""
    for level in range(1, Plan(job.app).last_level + 1):
        moved = frame.repartitionById(job.partitions, "p")
        frame = moved.mapInArrow(_apply(job, level_task, level), SCHEMA)
    return [unpack(bytes(row.block)).report for row in frame.select("block").collect()]


def _apply(
    job: Job, level_task: type[LevelTask], level: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def apply(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_what_is_loaded()
        blocks = [block.as_buffer() for batch in batches for block in batch.column("block")]
        task = TaskContext.get()
        assert task is not None
        work = level_task(job, level, task.partitionId(), task.attemptNumber())
        yield to_batch(work.run(blocks))

    return apply
