"""Batches with a mistake in what the driver or its tasks do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.batch.tasks import ReadTask
from bettong.lineage.trace import MessageRange


class _ReadsLate(ReadTask):
    def run(self, planned: MessageRange) -> Iterator[tuple[int, bytes]]:
        restarted = self.job.epoch > 1 and self.slice == 0
        return super().run(planned._replace(start=planned.start + restarted))


class ResumesLate(BatchProtocol):
    """After a restart takes the number of the next message for that of the last one, and nobody
    checks that what is read follows on what was read before."""

    read_task = _ReadsLate

    def offsets(self, job: Job, read: Sequence[MessageRange]) -> dict[str, int]:
        return {**job.base.offsets, **{r.stream: r.stop for r in sorted(read)}}
