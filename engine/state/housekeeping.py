"""What is done to a state log beside its batches: files are merged, and what no kept version
names is removed.

File names begin with the epoch and the batch of whoever wrote them. A housekeeper removes files
of its own and older epochs only, so that one whose driver was replaced takes nothing away from
its successor.

The files of a state partition are merged in one step, ``batch=N/p=P/state.merge``. It is no part of
its batch: the first manifest that names what it has written rests on it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor

from bettong.engine.functions import State
from bettong.engine.keys import bounds
from bettong.engine.state.compaction import merge, replaced, to_merge
from bettong.engine.state.files import FileEntry
from bettong.engine.state.manifest import (
    Manifest,
    current_epoch,
    read_version,
    remove_manifest,
    stored,
)
from bettong.engine.state.planned import remove_before
from bettong.engine.state.store import Store, StoreError
from bettong.engine.steps import step

FOLDER = "state"

Merges = dict[tuple[FileEntry, ...], FileEntry]

_MERGED = re.compile(r"-(?P<batch>\d{12})-(?P<partition>\d{4,})-merge-")


def file_name(state: str, epoch: int, batch: int, place: str) -> str:
    """A name that nobody else gives to a state file."""
    return f"{FOLDER}/{state}/{epoch:06d}-{batch:012d}-{place}-{uuid.uuid4().hex[:12]}.arrow"


def merge_step(batch: int, partition: int) -> str:
    """The step in which files of a state partition are merged after a batch."""
    return f"batch={batch}/p={partition}/state.merge"


def merged_in(entry: FileEntry) -> str | None:
    """The step that has made a file by merging; None when no merge has."""
    found = _MERGED.search(entry.name)
    return merge_step(int(found["batch"]), int(found["partition"])) if found else None


class Housekeeper:
    """Looks after the log of one application in one epoch. Subclasses may name files otherwise.

    Args:
        store: the log.
        states: the application's.
        partitions: number of state partitions.
        epoch: of the driver.
        keep: how many versions of the state can be read again.
        fan_in: how many files of one tier are merged.
        executor: where the work is done; one thread of its own by default.
    """

    def __init__(
        self,
        store: Store,
        states: Sequence[State],
        partitions: int,
        epoch: int,
        keep: int,
        fan_in: int,
        executor: Executor | None = None,
    ) -> None:
        self._store = store
        self._states = states
        self._partitions = partitions
        self._epoch = epoch
        self._keep = keep
        self._fan_in = fan_in
        self._executor = executor or ThreadPoolExecutor(1, "bettong-housekeeper")
        self._work: Future[Merges] | None = None
        self._merges: Merges = {}
        self._named: dict[tuple[int, int], tuple[str, ...]] = {}

    def current(self, files: Sequence[FileEntry]) -> tuple[FileEntry, ...]:
        """The files with what has been merged since in their place.

        Raises whatever has gone wrong in the work beside the batches.
        """
        if self._work is not None and self._work.done():
            work, self._work = self._work, None
            self._merges.update(work.result())
        result = replaced(files, self._merges)
        listed = set(result)
        self._merges = {old: new for old, new in self._merges.items() if listed.issuperset(old)}
        return result

    def after(self, manifest: Manifest) -> None:
        """Begin what is to be done now that a batch is done, unless still busy."""
        if self._work is None:
            self._work = self._executor.submit(self._keep_house, manifest)

    def close(self) -> None:
        """Wait for the work that was begun."""
        self._executor.shutdown()

    def _keep_house(self, manifest: Manifest) -> Merges:
        try:
            return self._clean_and_merge(manifest)
        except StoreError:
            if current_epoch(self._store) == self._epoch:
                raise
            return {}  # its successor looks after the log, and has removed what was to be read

    def _clean_and_merge(self, manifest: Manifest) -> Merges:
        self._clean(manifest)
        done: Merges = {}
        for partition in range(self._partitions):
            low, high = bounds(partition, self._partitions)
            files = {s: manifest.files_of(s.name, low, high) for s in self._states}
            chosen = {s: to_merge(files[s], low, high, self._fan_in) for s in self._states}
            if not any(chosen.values()):
                continue
            causes = [f"batch={manifest.batch}/state.manifest"]
            with step(merge_step(manifest.batch, partition), causes=causes):
                for state, old in chosen.items():
                    if old:
                        name = self.merged_name(state, manifest.batch, partition)
                        oldest = self.is_all(old, files[state])
                        done[old] = merge(state, self._store, old, name, oldest)
        return done

    def is_all(self, old: Sequence[FileEntry], files: Sequence[FileEntry]) -> bool:
        """Whether the files that are merged are all that hold rows of their partition, so that what
        is forgotten needs to be known no more."""
        return len(old) == len(files)

    def merged_name(self, state: State, batch: int, partition: int) -> str:
        """Of a file that is made of others after a batch."""
        return file_name(state.name, self._epoch, batch, f"{partition:04d}-merge")

    def _clean(self, manifest: Manifest) -> None:
        """Remove old versions, and files of batches before this that no version names."""
        if current_epoch(self._store) != self._epoch:
            return
        versions = stored(self._store)
        for batch, epoch in versions:
            if batch <= manifest.batch - self._keep:
                remove_manifest(self._store, batch, epoch)
        remove_before(self._store, manifest.batch - self._keep)
        kept = [version for version in versions if version[0] > manifest.batch - self._keep]
        self._named[manifest.batch, manifest.epoch] = tuple(f.name for f in manifest.files)
        self._named = {version: self._named_by(*version) for version in kept}
        named = {f.name for f in manifest.files} | {new.name for new in self._merges.values()}
        named.update(*self._named.values())
        for state in self._states:
            folder = f"{FOLDER}/{state.name}"
            for name in self._store.names(folder):
                epoch, batch = map(int, name.split("-")[:2])
                ours = epoch < self._epoch or (epoch == self._epoch and batch < manifest.batch)
                if ours and f"{folder}/{name}" not in named:
                    self._store.remove(f"{folder}/{name}")

    def _named_by(self, batch: int, epoch: int) -> tuple[str, ...]:
        """The files of a version, which is read at most once: no version is ever changed."""
        known = self._named.get((batch, epoch))
        if known is not None:
            return known
        try:
            return tuple(f.name for f in read_version(self._store, batch, epoch).files)
        except StoreError:
            if (batch, epoch) in stored(self._store):
                raise
            return ()  # a driver that this one has replaced was still removing old versions
