"""A batch in this process: the same tasks in the same order, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bettong.engine.batch.blocks import unpack
from bettong.engine.batch.job import Job
from bettong.engine.batch.plan import Plan
from bettong.engine.batch.planning import slices
from bettong.engine.batch.protocol import BatchProtocol, Report
from bettong.engine.batch.tasks import Reader
from bettong.lineage.trace import MessageRange


def execute(
    protocol: BatchProtocol,
    job: Job,
    planned: Iterable[MessageRange],
    readers: Mapping[str, Reader],
    read_slices: int = 1,
) -> list[Report]:
    """Run the tasks of a batch and give their reports."""
    moved: list[tuple[int, bytes]] = []
    partition = 0
    for whole in planned:
        for place, part in enumerate(slices(whole, read_slices)):
            reader = readers[part.stream]
            task = protocol.read_task(job, reader, place, partition, 0)
            moved += task.run(part)
            partition += 1
    for level in range(1, Plan(job.app).last_level + 1):
        moved = [
            block
            for p in range(job.partitions)
            for block in protocol.level_task(job, level, p, 0).run(_to(moved, p))
        ]
    return [unpack(data).report for _, data in moved]


def _to(moved: Sequence[tuple[int, bytes]], partition: int) -> list[bytes]:
    return [data for p, data in moved if p == partition]
