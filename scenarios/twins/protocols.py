"""Batches with a mistake in what the driver or its tasks do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol, Execute, Report
from bettong.engine.batch.tasks import ReadTask
from bettong.engine.sources import StreamSource
from bettong.engine.state.manifest import Manifest, empty, read_version, stored
from bettong.lineage.trace import MessageRange


class _Unchecked(BatchProtocol):
    """Nobody checks that what is read follows on what the state has."""

    def offsets(self, job: Job, read: Sequence[MessageRange]) -> dict[str, int]:
        return {**job.base.offsets, **{r.stream: r.stop for r in sorted(read)}}

    def newest_state(self, upto: int) -> Manifest:
        """The newest state of any batch that is not after ``upto``."""
        store = self.settings.store
        found = [version for version in stored(store) if version[0] <= upto]
        return read_version(store, *found[-1]) if found else empty(self.settings.app.name)


class _ReadsLate(ReadTask):
    def run(self, planned: MessageRange) -> Iterator[tuple[int, bytes]]:
        restarted = self.job.epoch > 1 and self.slice == 0
        return super().run(planned._replace(start=planned.start + restarted))


class ResumesLate(_Unchecked):
    """After a restart takes the number of the next message for that of the last one."""

    read_task = _ReadsLate


class _ReadsOn(ReadTask):
    def run(self, planned: MessageRange) -> Iterator[tuple[int, bytes]]:
        if self.job.epoch > 1 and self.slice > 0:
            end = cast(StreamSource, self.reader).extent(0, 0.0).end
            planned = planned._replace(stop=max(planned.stop, end))
        return super().run(planned)


class ReplayReadsOn(_Unchecked):
    """A batch that is done again takes all that has come since, not what it had the first time."""

    read_task = _ReadsOn


class AppliesTwice(_Unchecked):
    """Applies a batch to the newest state there is, which on a replay has it already."""

    def job(self, batch: int, base: Manifest) -> Job:
        return super().job(batch, self.newest_state(batch))


class PublishesLate(_Unchecked):
    """Publishes the state of a batch in passing, with the next one."""

    _held: tuple[Job, Manifest, Sequence[Report]] | None = None

    def run(self, batch: int, execute: Execute) -> Manifest:
        if self._held is not None:
            super().write_manifest(*self._held)
        job = self.job(batch, self.newest_state(batch - 1))
        reports = execute(job)
        manifest = self.manifest(job, reports)
        self.finish(job, manifest, reports)
        return manifest

    def write_manifest(self, job: Job, manifest: Manifest, reports: Sequence[Report]) -> None:
        self._held = job, manifest, reports
