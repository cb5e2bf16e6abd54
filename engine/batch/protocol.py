"""The driver's side of a batch: the order of its steps is what makes it effectively-once.

For batch N, in epoch E::

    base      manifest N-1
    execute   tasks write state files and prepare outputs; their reports name the winners
    manifest  manifest N of epoch E is published
    commit    each sink makes the winners' outputs visible

A crash before ``manifest`` leaves files that nothing names. After it the batch is done again from
manifest N-1 and gives the same state and outputs; a sink that has committed batch N already does
nothing. A driver that was replaced without knowing it cannot commit, because sinks refuse its
epoch, and its manifests stand under names that do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from bettong.engine import steps
from bettong.engine.batch.job import Job
from bettong.engine.batch.planning import Planner
from bettong.engine.batch.tasks import LevelTask, ReadTask, TaskClasses
from bettong.engine.errors import AheadError, FencedError
from bettong.engine.graph import Application
from bettong.engine.health import Health
from bettong.engine.metrics.observer import Observer, Watch
from bettong.engine.sinks.base import Noted, TwoPhaseSink
from bettong.engine.sources.base import StreamSource
from bettong.engine.state.files import FileEntry
from bettong.engine.state.housekeeping import Housekeeper, merged_in
from bettong.engine.state.manifest import (
    Manifest,
    current_epoch,
    read_manifest,
    take_epoch,
    write_manifest,
)
from bettong.engine.state.planned import newest_fixed
from bettong.engine.state.store import Store
from bettong.engine.steps import step
from bettong.lineage.errors import BettongError
from bettong.lineage.trace import MessageRange

Report = Mapping[str, Any]
Execute = Callable[[Job], Sequence[Report]]


class BatchError(BettongError):
    """A batch whose tasks do not add up."""


@dataclass(frozen=True)
class Settings:
    """What all batches of one start of a query share; see :class:`Job` and
    :class:`Housekeeper` for the attributes. Streams are what the application's sources are read as;
    without any given, each is one. The last planned batch is that of Spark's notes, -1 without
    any. Observer and health are told of every batch that is done."""

    app: Application
    store: Store
    partitions: int
    sinks: Mapping[str, TwoPhaseSink]
    instrumentation: steps.Instrumentation = field(default_factory=steps.Instrumentation)
    options: Mapping[str, Any] = field(default_factory=dict)
    keep_versions: int = 10
    fan_in: int = 8
    housekeeping: Executor | None = None
    streams: Mapping[str, StreamSource] = field(default_factory=dict)
    last_planned: int = -1
    observer: Observer | None = None
    health: Health | None = None


class BatchProtocol:
    """One start of an application's query. Subclasses may replace any stage.

    Attributes:
        planner: what decides what a batch takes.
        read_task: what reads a range.
        level_task: what applies state.
        housekeeper: what looks after the state log.
        epoch: 0 until :meth:`open`.
    """

    planner: type[Planner] = Planner
    read_task: type[ReadTask] = ReadTask
    level_task: type[LevelTask] = LevelTask
    housekeeper: type[Housekeeper] = Housekeeper

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.epoch = 0
        self._housekeeper: Housekeeper | None = None
        self._watch = Watch()
        self._newest: Manifest | None = None

    def open(self) -> None:
        """Take the next epoch and begin it at every sink."""
        s = self.settings
        self.epoch = self.take_epoch()
        self._housekeeper = self.housekeeper(
            s.store,
            s.app.states,
            s.partitions,
            self.epoch,
            s.keep_versions,
            s.fan_in,
            s.housekeeping,
        )
        for name, sink in self.settings.sinks.items():
            causes = [f"epoch={self.epoch}/take"]
            noted = Noted(self.sink_step(f"epoch={self.epoch}/sink.open", name), causes)
            self._open(name, sink, noted)
        if self.settings.health is not None:
            self.settings.health.ready()

    def newest(self) -> int | None:
        """The newest batch that a sink may have, as it would be made again just so. None for
        whatever it has."""
        return max(newest_fixed(self.settings.store), self.settings.last_planned)

    def _open(self, name: str, sink: TwoPhaseSink, noted: Noted) -> None:
        newest = self.newest()
        try:
            try:
                sink.open(self.settings.app.name, self.epoch, noted, newest)
            except AheadError:
                known = self.newest()
                if known == newest:
                    raise
                # The driver before this one has come to the end of its batch meanwhile.
                sink.open(self.settings.app.name, self.epoch, noted, known)
        except AheadError as e:
            raise AheadError(f"sink {name}={e}") from e
        except FencedError as e:
            if current_epoch(self.settings.store) != self.epoch:
                raise
            raise FencedError(
                f"sink {name} is written to from another checkpoint, or from another copy of this "
                f"one: {e}. End that run; if there is none any more, start this one again, each "
                "start takes the next epoch"
            ) from e

    @property
    def tasks(self) -> TaskClasses:
        """What a batch's tasks are made of."""
        return TaskClasses(self.read_task, self.level_task)

    def take_epoch(self) -> int:
        """An epoch that no other start of the query has."""
        return take_epoch(self.settings.store, self.settings.instrumentation.node)

    def run(self, batch: int, execute: Execute) -> Manifest:
        """Do a batch, for the first time or again.

        Args:
            batch: Spark's id of the batch.
            execute: runs the tasks of a job and gives their reports.
        """
        self._watch = watch = Watch()
        with watch.part("base"):
            base = self.base(batch)
            job = self.job(batch, base)
        with watch.part("execute"):
            reports = execute(job)
        with watch.part("add up"):
            manifest = self.manifest(job, reports)
        self.finish(job, manifest, reports)
        self._newest = manifest
        if self._housekeeper is not None:
            self._housekeeper.after(manifest)
        if self.settings.observer is not None:
            self.settings.observer.batch(base, manifest, reports, watch.split)
        if self.settings.health is not None:
            self.settings.health.batch(manifest)
        return manifest

    def base(self, batch: int) -> Manifest:
        """The state before a batch. What this driver has published itself is not read again: if
        another one has published the same since, this one is fenced."""
        if self._newest is not None and self._newest.batch == batch - 1:
            return self._newest
        return read_manifest(self.settings.store, self.settings.app.name, batch - 1)

    def close(self) -> None:
        """End the epoch on this driver."""
        if self._housekeeper is not None:
            self._housekeeper.close()
        if self.settings.observer is not None:
            self.settings.observer.close()
        if self.settings.health is not None:
            self.settings.health.close()

    def finish(self, job: Job, manifest: Manifest, reports: Sequence[Report]) -> None:
        """Publish the state and then the outputs."""
        with self._watch.part("manifest"):
            self.write_manifest(job, manifest, reports)
        with self._watch.part("sink.commit"):
            self.commit(job, manifest)

    def job(self, batch: int, base: Manifest) -> Job:
        """What the tasks of a batch are told."""
        s = self.settings
        return Job(
            s.app,
            batch,
            self.epoch,
            s.partitions,
            base,
            s.store,
            s.sinks,
            s.instrumentation,
            s.options,
            s.observer is not None,
            len(s.streams or s.app.sources),
        )

    def manifest(self, job: Job, reports: Sequence[Report]) -> Manifest:
        """The state after the batch, put together from its tasks' reports."""
        done: dict[tuple[int, int], Report] = {}
        for report in reports:
            place = report["level"], report["partition"]
            if done.setdefault(place, report) is not report:
                raise BatchError(
                    f"batch {job.batch}: two reports of partition {place[1]} at level {place[0]}"
                )
        new = [FileEntry.from_json(f) for _, r in sorted(done.items()) for f in r["files"]]
        before = job.base.files
        if self._housekeeper is not None:
            before = self._housekeeper.current(before)
        return Manifest(
            job.app.name,
            job.batch,
            self.epoch,
            self.offsets(job, [MessageRange(*r["read"]) for r in reports if "read" in r]),
            (*new, *before),
            {
                name: {p: r["attempt"] for (_, p), r in sorted(done.items()) if name in r["sinks"]}
                for name in job.sinks
            },
            sum((Counter(r["failed"]) for r in reports), Counter(job.base.failed)),
        )

    def offsets(self, job: Job, read: Sequence[MessageRange]) -> dict[str, int]:
        """How far each stream is in the state after the batch.

        Raises:
            BatchError: the ranges that were read do not follow on the state before the batch.
        """
        ends = dict(job.base.offsets)
        whole = {s.name for s in job.app.sources}  # partitions of sources may have gaps
        for planned in sorted(read):
            expected = ends.get(planned.stream, 0)
            if planned.start < expected or (planned.start > expected and planned.stream in whole):
                raise BatchError(
                    f"batch {job.batch} reads from {planned.stream}/{planned.start}, the state "
                    f"before it ends at {planned.stream}/{expected}: the checkpoint's offsets and "
                    "the state log do not belong together"
                )
            ends[planned.stream] = planned.stop
        return ends

    def write_manifest(self, job: Job, manifest: Manifest, reports: Sequence[Report]) -> None:
        """Publish the manifest.

        Raises:
            FencedError: a newer epoch has been taken.
        """
        with step(
            f"batch={job.batch}/state.manifest",
            causes=[*(s for r in reports for s in r["steps"]), *_merged_since(job.base, manifest)],
            carries=self._carried(job, manifest),
        ):
            newest = current_epoch(job.store)
            if newest != self.epoch:
                raise FencedError(
                    f"epoch {self.epoch} of {job.app.name} has been replaced by epoch {newest}"
                )
            write_manifest(job.store, manifest)

    def commit(self, job: Job, manifest: Manifest) -> None:
        """Make the outputs visible at every sink."""
        for name, sink in job.sinks.items():
            prepared = self.sink_step("sink.prepare", name)
            winners = manifest.winners[name]
            noted = Noted(
                self.sink_step(f"batch={job.batch}/sink.commit", name),
                [
                    *self.before_commit(job),
                    *(job.step_id(p, a, prepared) for p, a in winners.items()),
                ],
                self._carried(job, manifest),
            )
            sink.commit(self.epoch, job.batch, winners, noted)

    def before_commit(self, job: Job) -> list[str]:
        """The steps of the driver that a batch's outputs wait for."""
        return [f"batch={job.batch}/state.manifest"]

    def _carried(self, job: Job, manifest: Manifest) -> list[MessageRange]:
        before = job.base.offsets
        return [
            MessageRange(stream, before.get(stream, 0), stop)
            for stream, stop in sorted(manifest.offsets.items())
            if before.get(stream, 0) < stop
        ]

    def sink_step(self, name: str, sink: str) -> str:
        """Step id of what is done at a sink, which is named when there are several."""
        return name if len(self.settings.sinks) == 1 else f"{name}/{sink}"


def _merged_since(base: Manifest, manifest: Manifest) -> list[str]:
    """The steps in which files have been merged that a manifest is the first to name."""
    known = {entry.name for entry in base.files}
    merges = (merged_in(entry) for entry in manifest.files if entry.name not in known)
    return list(dict.fromkeys(merge for merge in merges if merge is not None))
