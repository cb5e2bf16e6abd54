"""The tasks of a batch as a Spark job.

Blocks are bytes that are moved and not looked into, so they are moved as RDDs, with a shuffle
before each level: a data frame is planned anew for each batch, and for a small one that takes
longer than all that its tasks do. So does handing a few messages from one task to another, which is
why a small batch is one task, from reading to handing over what it has made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from pyspark import TaskContext

from bettong.engine.batch import local
from bettong.engine.batch.blocks import unpack
from bettong.engine.batch.garbage import freeze_what_is_loaded
from bettong.engine.batch.job import Job
from bettong.engine.batch.plan import Plan
from bettong.engine.batch.planning import parts
from bettong.engine.batch.protocol import Report
from bettong.engine.batch.tasks import LevelTask, TaskClasses
from bettong.engine.sources.base import StreamSource
from bettong.engine.spark.source import Offset, since_the_beginning
from bettong.lineage.trace import MessageRange

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

Moving = tuple[int, bytes]
"""A block with the state partition that it goes to."""


@dataclass(frozen=True)
class Share:
    """What a batch takes, and how it is read.

    Attributes:
        ranges: of its messages.
        sources: by stream.
        slices: in how many parts each range is read.
    """

    ranges: Sequence[MessageRange]
    sources: Mapping[str, StreamSource]
    slices: int

    def __len__(self) -> int:
        return sum(stop - start for _, start, stop in self.ranges)


def share_of(sources: Mapping[str, StreamSource], slices: int, start: Offset, end: Offset) -> Share:
    """What a batch takes that goes from one offset to another."""
    begins = since_the_beginning(sources, start)
    ends = end["streams"].items()
    ranges = [MessageRange(s, begins[s], stop) for s, stop in ends if begins[s] < stop]
    return Share(ranges, sources, slices)


def execute_in_one_task(
    context: SparkContext, job: Job, classes: TaskClasses, share: Share
) -> list[Report]:
    """Run a batch as one task, and collect reports."""

    def run(_: int, nothing: Iterable[None]) -> Iterable[Report]:
        _begin(nothing)
        ranges, sources = share.ranges, share.sources
        return local.execute(classes, job, ranges, sources, share.slices, attempt=_attempt())

    return _tasks(context, 1).mapPartitionsWithIndex(run).collect()


def read(context: SparkContext, job: Job, classes: TaskClasses, share: Share) -> RDD[Moving]:
    """The blocks that the readers of a batch give."""
    planned = [
        part
        for whole in share.ranges
        for part in parts(whole, share.sources[whole.stream], share.slices)
    ]

    def run(partition: int, nothing: Iterable[None]) -> Iterator[Moving]:
        _begin(nothing)
        place, part = planned[partition]
        source = share.sources[part.stream]
        work = classes.read_task(job, source, place, partition, _attempt())
        return cast(Iterator[Moving], work.run(part))

    return _tasks(context, len(planned)).mapPartitionsWithIndex(run)


def execute(job: Job, level_task: type[LevelTask], blocks: RDD[Moving]) -> list[Report]:
    """Run the levels of a batch over the blocks that its readers give, and collect reports."""
    for level in range(1, Plan(job.app).last_level + 1):
        moved = blocks.partitionBy(job.partitions, int)
        blocks = moved.mapPartitionsWithIndex(_apply(job, level_task, level))
    return [unpack(block).report for _, block in blocks.collect()]


def _apply(
    job: Job, level_task: type[LevelTask], level: int
) -> Callable[[int, Iterable[Moving]], Iterator[Moving]]:
    def apply(partition: int, moved: Iterable[Moving]) -> Iterator[Moving]:
        freeze_what_is_loaded()
        blocks = [block for _, block in moved]
        work = level_task(job, level, partition, _attempt())
        return cast(Iterator[Moving], work.run(blocks))

    return apply


@lru_cache(maxsize=8)
def _tasks(context: SparkContext, count: int) -> RDD[None]:
    """So many tasks that are given nothing; they are kept, since Spark takes a while to make
    them."""
    return context.parallelize((), count)


def _begin(nothing: Iterable[None]) -> None:
    """Begin a task. Its input is read to the end: Spark ends a worker that left some of it."""
    freeze_what_is_loaded()
    for _ in nothing:
        raise AssertionError("a task was given something")


def _attempt() -> int:
    task = TaskContext.get()
    assert task is not None
    return task.attemptNumber()
