"""Runs applications batch by batch in this process, for tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from bettong.engine.batch import tasks
from bettong.engine.batch.job import Job
from bettong.engine.batch.local import execute
from bettong.engine.batch.protocol import BatchProtocol, Report, Settings
from bettong.engine.errors import FencedError
from bettong.engine.graph import Application
from bettong.engine.ids import parse_id
from bettong.engine.keys import HASH_SPACE, Key, bounds, canonical, hash_bytes, parse, partition_of
from bettong.engine.node import Node, reached_by_state
from bettong.engine.sinks.base import Noted, Row
from bettong.engine.state.entities import FileCache, load
from bettong.engine.state.inline import InlineExecutor
from bettong.engine.state.manifest import Manifest
from bettong.engine.state.scan import scan
from bettong.engine.state.store import Store
from bettong.lineage.trace import MessageRange


@dataclass(eq=False)
class MemorySink:
    """A two-phase sink that keeps everything in memory and checks how it is used."""

    epoch: int = 0
    staged: dict[tuple[int, int, int], list[Row]] = field(default_factory=dict)
    committed: dict[int, list[Row]] = field(default_factory=dict)
    commits: int = 0

    def open(self, application: str, epoch: int, noted: Noted, newest: int | None = None) -> None:
        self._check(epoch)
        self.epoch = epoch
        self.staged.clear()

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row],
        noted: Noted,
    ) -> None:
        self._check(epoch)
        self.staged[batch, partition, attempt] = list(rows)

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        self._check(epoch)
        self.commits += 1
        if batch not in self.committed:
            chosen = [self.staged[batch, p, a] for p, a in sorted(winners.items())]
            self.committed[batch] = [row for rows in chosen for row in rows]

    def _check(self, epoch: int) -> None:
        if epoch < self.epoch:
            raise FencedError(f"epoch {epoch} is older than {self.epoch}")

    @property
    def rows(self) -> list[Row]:
        return [row for batch in sorted(self.committed) for row in self.committed[batch]]


@dataclass(frozen=True)
class MemoryReader:
    """A stream that is a list."""

    messages: Sequence[bytes]

    def read(self, planned: MessageRange, step: str, causes: Sequence[str]) -> Sequence[bytes]:
        return self.messages[planned.start : planned.stop]


class CrashError(Exception):
    """The driver stops."""


class CrashingProtocol(BatchProtocol):
    """Stops at a stage of a batch in its first epoch."""

    def _crash(self, job: Job, stage: str) -> None:
        if self.epoch == 1 and self.settings.options.get("crash") == (job.batch, stage):
            raise CrashError(f"CrashError {stage} of batch {job.batch}")

    def manifest(self, job: Job, reports: Sequence[Report]) -> Manifest:
        self._crash(job, "before manifest")
        return super().manifest(job, reports)

    def commit(self, job: Job, manifest: Manifest) -> None:
        self._crash(job, "before commit")
        super().commit(job, manifest)
        self._crash(job, "after commit")


def crashes(batches: int) -> st.SearchStrategy[tuple[int, str]]:
    """Where a :class:`CrashingProtocol` stops, if at all."""
    stages = ["before manifest", "before commit", "after commit", "never"]
    return st.tuples(st.integers(0, batches - 1), st.sampled_from(stages))


def in_order(node: Node, rows: Sequence[tuple[str, Any, bytes]]) -> Mapping[Any, list[Any]]:
    """What has an order, by what has it: rows of one key, else of one stream."""
    found = defaultdict(list)
    for ident, key, data in rows:
        place = (type(key), key) if node.keyed else parse_id(ident).stream
        found[place].append((ident, data))
    if node.operation == "dead_letters" or (not node.keyed and reached_by_state(node)):
        return {place: sorted(rows_) for place, rows_ in found.items()}
    return found


@dataclass
class Simulation:
    """An application on this process' batch functions.

    Attributes:
        protocol_class: what drives the batches.
        packs: whether blocks are packed between tasks.
    """

    app: Application
    store: Store
    streams: Mapping[str, Sequence[bytes]]
    partitions: int = 3
    read_slices: int = 2
    protocol_class: type[BatchProtocol] = BatchProtocol
    sinks: dict[str, MemorySink] = field(default_factory=dict)
    fan_in: int = 2
    packs: bool = True
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tasks._caches.clear()  # stores of different tests are equal
        for node in self.app.sinks:
            self.sinks.setdefault(node.name, MemorySink())

    def start(self) -> BatchProtocol:
        protocol = self.protocol_class(
            Settings(
                self.app,
                self.store,
                self.partitions,
                dict(self.sinks),
                options=self.options,
                keep_versions=2,
                fan_in=self.fan_in,
                housekeeping=InlineExecutor(),
            )
        )
        protocol.open()
        return protocol

    def batch(
        self,
        protocol: BatchProtocol,
        number: int,
        before: Mapping[str, int],
        end: Mapping[str, int],
    ) -> Manifest:
        planned = [MessageRange(s, before.get(s, 0), end[s]) for s in sorted(end)]
        readers = {s: MemoryReader(m) for s, m in self.streams.items()}
        return protocol.run(
            number,
            lambda job: execute(
                protocol.tasks,
                job,
                [p for p in planned if p.start < p.stop],
                readers,
                self.read_slices,
                self.packs,
            ),
        )

    def run(self, boundaries: Sequence[Mapping[str, int]]) -> Manifest:
        """All batches, one after the other; gives the last manifest."""
        protocol = self.start()
        before: Mapping[str, int] = {}
        manifest = None
        for number, end in enumerate(boundaries):
            manifest = self.batch(protocol, number, before, end)
            before = end
        assert manifest is not None
        return manifest

    def run_with_crash(
        self, boundaries: Sequence[Mapping[str, int]], crash: tuple[int, str], partitions: int
    ) -> Manifest:
        """All batches on a :class:`CrashingProtocol`; after its crash with so many partitions."""
        self.options["crash"] = crash
        try:
            return self.run(boundaries)
        except CrashError:
            self.partitions = partitions
        protocol = self.start()
        for number in range(crash[0], len(boundaries)):
            before = boundaries[number - 1] if number else {}
            manifest = self.batch(protocol, number, before, boundaries[number])
        return manifest

    def stored(self, manifest: Manifest, state: str) -> set[Key]:
        """The keys that have an entity in the state log."""
        declared = next(s for s in self.app.states if s.name == state)
        files = manifest.files_of(state, 0, HASH_SPACE)
        return set(map(parse, scan(declared, FileCache(self.store), files, 0, HASH_SPACE).keys))

    def entities(self, manifest: Manifest, state: str, keys: Sequence[Key]) -> dict[Key, Any]:
        """What the state log has for keys."""
        declared = next(s for s in self.app.states if s.name == state)
        found = {}
        for key in keys:
            data = canonical(key)
            hashed = hash_bytes(data)
            low, high = bounds(partition_of(hashed, self.partitions), self.partitions)
            files = manifest.files_of(state, low, high)
            found[key] = load(declared, FileCache(self.store), files, [data], [hashed])[0]
        return found


def aligned(streams: Mapping[str, Sequence[bytes]], size: int) -> list[dict[str, int]]:
    """Boundaries of batches of ``size`` messages of each stream."""
    longest = max(len(m) for m in streams.values())
    return [
        {s: min(end, len(m)) for s, m in streams.items()}
        for end in range(size, longest + size, size)
    ]
