"""A batch in this process: the same tasks in the same order, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bettong.engine.batch.blocks import Block, unpack
from bettong.engine.batch.job import Job
from bettong.engine.batch.plan import Plan
from bettong.engine.batch.planning import parts
from bettong.engine.batch.protocol import Report
from bettong.engine.batch.tasks import Reader, TaskClasses
from bettong.lineage.trace import MessageRange


def execute(
    classes: TaskClasses,
    job: Job,
    planned: Iterable[MessageRange],
    readers: Mapping[str, Reader],
    read_slices: int = 1,
    packs: bool = False,
    attempt: int = 0,
) -> list[Report]:
    """Run the tasks of a batch and give their reports.

    Args:
        classes: of the tasks.
        job: the batch.
        planned: what it reads.
        readers: by stream.
        read_slices: in how many parts a stream's share is read.
        packs: whether blocks are packed, as if tasks did not share a process.
        attempt: the number of the attempt at all of them.
    """
    moved: list[tuple[int, bytes | Block]] = []
    partition = 0
    for whole in planned:
        reader = readers[whole.stream]
        for place, part in parts(whole, reader, read_slices):
            task = classes.read_task(job, reader, place, partition, attempt)
            task.packs = packs
            moved += task.run(part)
            partition += 1
    for level in range(1, Plan(job.app).last_level + 1):
        given: list[tuple[int, bytes | Block]] = []
        for p in range(job.partitions):
            work = classes.level_task(job, level, p, attempt)
            work.packs = packs
            given += work.run(_to(moved, p))
        moved = given
    return [unpack(data).report for _, data in moved if isinstance(data, bytes)]


def _to(moved: Sequence[tuple[int, bytes | Block]], partition: int) -> list[bytes | Block]:
    return [data for p, data in moved if p == partition]
