"""Batches with a mistake in what the driver or its tasks do."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bettong.engine.batch.blocks import Block, unpack
from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol, Execute, Report
from bettong.engine.batch.stateful import Changed
from bettong.engine.batch.tasks import LevelTask, Moved, ReadTask
from bettong.engine.endpoints import TcpSink
from bettong.engine.errors import FencedError
from bettong.engine.functions import State
from bettong.engine.keys import HASH_SPACE, bounds
from bettong.engine.net.client import Patience
from bettong.engine.net.errors import ConnectionLostError
from bettong.engine.sources.base import StreamSource
from bettong.engine.state.entities import FileCache, load_column
from bettong.engine.state.files import FileEntry
from bettong.engine.state.housekeeping import Housekeeper
from bettong.engine.state.manifest import (
    Manifest,
    create_epoch,
    current_epoch,
    empty,
    read_version,
    remove_manifest,
    stored,
)
from bettong.lineage.trace import MessageRange
from bettong.scenarios.beside import MergingApart, MergingFiles


class _Unchecked(BatchProtocol):
    """Nobody checks that what is read follows on what the state has."""

    def offsets(self, job: Job, read: Sequence[MessageRange]) -> dict[str, int]:
        return {**job.base.offsets, **{r.stream: r.stop for r in sorted(read)}}

    def newest(self) -> None:
        """Sinks are not asked either whether they are ahead of the state."""

    def newest_state(self, upto: int) -> Manifest:
        """The newest state of any batch that is not after ``upto``."""
        store = self.settings.store
        found = [version for version in stored(store) if version[0] <= upto]
        return read_version(store, *found[-1]) if found else empty(self.settings.app.name)


class _ReadsLate(ReadTask):
    def run(self, planned: MessageRange) -> Moved:
        restarted = self.job.epoch > 1 and self.slice == 0
        return super().run(planned._replace(start=planned.start + restarted))


class ResumesLate(_Unchecked):
    """After a restart takes the number of the next message for that of the last one."""

    read_task = _ReadsLate


class _ReadsOn(ReadTask):
    def run(self, planned: MessageRange) -> Moved:
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

    def before_commit(self, job: Job) -> list[str]:
        return []


class DropsBase(BatchProtocol):
    """Keeps no state but the newest, and so none from which a batch could be done again."""

    def write_manifest(self, job: Job, manifest: Manifest, reports: Sequence[Report]) -> None:
        super().write_manifest(job, manifest, reports)
        for batch, epoch in stored(job.store):
            if batch < job.batch:
                remove_manifest(job.store, batch, epoch)


class _Hasty(Housekeeper):
    def _named_by(self, batch: int, epoch: int) -> tuple[str, ...]:
        return ()


class DropsMergedFiles(MergingFiles):
    """Removes files once they are merged, while the version before is made of them."""

    housekeeper = _Hasty


class _OwnPartition(Housekeeper):
    def is_all(self, old: Sequence[FileEntry], files: Sequence[FileEntry]) -> bool:
        for partition in range(self._partitions):
            low, high = bounds(partition, self._partitions)
            own = [file for file in files if low <= file.low and file.high < high]
            if {*old} <= {*own}:
                return len(old) == len(own)
        return False


class ForgetsTombstones(MergingApart):
    """Takes what is forgotten for known by all when its own partition's files are merged, though a
    file that was written for a larger partition still has it."""

    housekeeper = _OwnPartition


class NotesReplaysEarly(BatchProtocol):
    """Does a batch again once only, and notes that it has done so before it does."""

    def commit(self, job: Job, manifest: Manifest) -> None:
        known = (b == job.batch and e < job.epoch for b, e in stored(job.store))
        if any(known) and not job.store.create(f"replays/{job.batch}", b"done"):
            return
        super().commit(job, manifest)


class GivesUpCommits(BatchProtocol):
    """Asks a sink twice to commit, and takes that for enough."""

    def commit(self, job: Job, manifest: Manifest) -> None:
        once = Patience(give_up_s=0.0)
        sinks = {name: replace(cast(TcpSink, s), patience=once) for name, s in job.sinks.items()}
        for _ in range(2):
            with contextlib.suppress(ConnectionLostError):
                return super().commit(replace(job, sinks=sinks), manifest)


class PassesUnansweredCommits(BatchProtocol):
    """Goes on when its patience ends with a commit that nobody has answered."""

    def commit(self, job: Job, manifest: Manifest) -> None:
        with contextlib.suppress(ConnectionLostError):
            super().commit(job, manifest)


class LeavesLastStateOut(BatchProtocol):
    """Leaves what has changed out of the state when it takes the newest batch for one that it has
    done: its outputs are prepared and committed all the same."""

    def manifest(self, job: Job, reports: Sequence[Report]) -> Manifest:
        manifest = super().manifest(job, reports)
        known = max((batch for batch, _ in stored(job.store)), default=-1) >= job.batch
        return replace(manifest, files=job.base.files) if known else manifest


class CountsFailuresTwice(BatchProtocol):
    """Counts the messages on which a function failed from the newest count there is, in which a
    batch that is done again is counted already."""

    def manifest(self, job: Job, reports: Sequence[Report]) -> Manifest:
        manifest = super().manifest(job, reports)
        before = [version for version in stored(job.store) if version[0] == job.batch]
        if not before:
            return manifest
        newest = Counter(read_version(job.store, *before[-1]).failed)
        return replace(
            manifest, failed=newest + Counter(manifest.failed) - Counter(job.base.failed)
        )


class _TakesNewest(LevelTask):
    def load(self, state: State, keys: list[bytes], hashes: list[int]) -> pa.Array:
        found = {f.name: f for f in self.job.base.files}
        for name in self.job.store.names("newest"):
            entry = FileEntry.from_json(json.loads(bytes(self.job.store.read(f"newest/{name}"))))
            if entry.name not in found:
                found = {entry.name: entry, **found}
        base = replace(self.job.base, files=tuple(found.values()))
        self.job = replace(self.job, base=base)
        return super().load(state, keys, hashes)

    def write(self, change: Changed) -> FileEntry:
        entry = super().write(change)
        place = f"newest/{change.state.name}-{self.partition}"
        self.job.store.publish(place, json.dumps(entry.to_json()).encode())
        return entry


class TakesNewest(BatchProtocol):
    """Tasks note which file of their partition is the newest, and begin from that, whether or
    not its batch came to be done."""

    level_task = _TakesNewest


class LeavesOutRetries(BatchProtocol):
    """Takes the reports of first attempts only, for fear of having one twice."""

    def manifest(self, job: Job, reports: Sequence[Report]) -> Manifest:
        return super().manifest(job, [r for r in reports if not r["attempt"]])


class _ClockRunsAhead(LevelTask):
    def load(self, state: State, keys: list[bytes], hashes: list[int]) -> pa.Array:
        column = super().load(state, keys, hashes)
        names = [field.name for field in state.codec.type]
        if "clock" not in names or not len(keys):
            return column
        store = self.job.store
        versions = [v for v in stored(store) if v[0] <= self.job.batch]
        newest = read_version(store, *versions[-1]).files if versions else ()
        files = [f for f in newest if f.state == state.name]
        ahead = load_column(state, FileCache(store), files, keys, hashes)
        parts = [
            pc.coalesce((ahead if name == "clock" else column).field(i), column.field(i))
            for i, name in enumerate(names)
        ]
        return pa.StructArray.from_arrays(
            parts, fields=list(state.codec.type), mask=column.is_null()
        )


class ClockRunsAhead(BatchProtocol):
    """Keeps the clock of windows beside the state: when a batch is done again, the clock has seen
    it already, and its messages are late."""

    level_task = _ClockRunsAhead


class _MovesTwice(ReadTask):
    def run(self, planned: MessageRange) -> Moved:
        for partition, data in super().run(planned):
            yield partition, data
            block = data if isinstance(data, Block) else unpack(data)
            if self.job.epoch > 1 and block.items is not None:
                yield (partition + 1) % self.job.partitions, data


class MovesTwice(BatchProtocol):
    """After a restart hands what belongs to a state partition to its new owner, and to the one
    that it takes for the old owner too."""

    read_task = _MovesTwice


class _KeepsToTheOldMap(LevelTask):
    def run(self, arrived: Iterable[bytes | Block]) -> Moved:
        return super().run(own for data in arrived if (own := self._own(data)) is not None)

    def _own(self, data: bytes | Block) -> bytes | Block | None:
        """What of a block was of this partition before there was one fewer."""
        block = data if isinstance(data, Block) else unpack(data)
        if block.items is None or block.items.keys is None:
            return data
        keys = block.items.keys
        owners = keys.partitions(self.job.partitions + (self.job.epoch > 1))[keys.codes]
        places = np.flatnonzero(owners == self.partition)
        return replace(block, items=block.items.take(places)) if len(places) else None


class ShrinksAlone(BatchProtocol):
    """After a restart goes on with one state partition fewer, and nobody takes over its keys."""

    level_task = _KeepsToTheOldMap

    def job(self, batch: int, base: Manifest) -> Job:
        job = super().job(batch, base)
        return replace(job, partitions=job.partitions - (self.epoch > 1))


class TakesEpochBlindly(BatchProtocol):
    """Creates the file of its epoch, and does not look whether it was there already."""

    def take_epoch(self) -> int:
        store = self.settings.store
        epoch = current_epoch(store) + 1
        create_epoch(store, epoch, self.settings.instrumentation.node)
        return epoch


class WaitsForGood(BatchProtocol):
    """Waits for the answer to a commit however long it takes."""

    def commit(self, job: Job, manifest: Manifest) -> None:
        patient = Patience(timeout_s=3600.0)
        sinks = {n: replace(cast(TcpSink, s), patience=patient) for n, s in job.sinks.items()}
        super().commit(replace(job, sinks=sinks), manifest)


class PassesOverFence(BatchProtocol):
    """Takes a batch whose commit is refused for one that its successor has committed."""

    def commit(self, job: Job, manifest: Manifest) -> None:
        with contextlib.suppress(FencedError):
            super().commit(job, manifest)


def _own_hashes(keys: Sequence[bytes]) -> list[int]:
    return [hash(key) % HASH_SPACE for key in keys]


class _HashesAsPython(LevelTask):
    def load(self, state: State, keys: list[bytes], hashes: list[int]) -> pa.Array:
        files = self.job.base.files_of(state.name, 0, HASH_SPACE)
        return load_column(state, self._cache(), files, keys, _own_hashes(keys))

    def write(self, change: Changed) -> FileEntry:
        return super().write(replace(change, hashes=_own_hashes(change.keys)))


class HashesAsPython(BatchProtocol):
    """Looks for an entity by what Python's own function gives for its key, which is another number
    in each process."""

    level_task = _HashesAsPython
