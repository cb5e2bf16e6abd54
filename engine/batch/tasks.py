"""What the tasks of one batch do: read and prepare messages, then level by level apply state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from bettong.engine.batch.blocks import (
    DRIVER,
    Block,
    Header,
    pack_by_partition,
    pack_report,
    split_by_partition,
    unpack,
)
from bettong.engine.batch.flow import Flow
from bettong.engine.batch.garbage import without_collection
from bettong.engine.batch.items import IntArray, Items, Values, concat, order_of
from bettong.engine.batch.job import Job, install
from bettong.engine.batch.plan import Plan
from bettong.engine.batch.planning import source_step
from bettong.engine.batch.stateful import Changed, apply_state
from bettong.engine.functions import State
from bettong.engine.keys import bounds
from bettong.engine.metrics.meter import meter, timed
from bettong.engine.sinks.base import Noted, Row, Rows
from bettong.engine.sources.base import Records
from bettong.engine.state.entities import FileCache, load_column, save
from bettong.engine.state.files import FileEntry
from bettong.engine.state.housekeeping import file_name
from bettong.engine.state.scan import Stored, scan
from bettong.engine.state.store import Store
from bettong.engine.steps import step
from bettong.lineage.errors import BettongError
from bettong.lineage.trace import MessageRange

Moved = Iterator[tuple[int, bytes | Block]]
"""Blocks with the state partitions that they go to."""


class Reader(Protocol):
    """A source as tasks see it."""

    def read(self, planned: MessageRange, step: str, causes: Sequence[str]) -> Values | Records:
        """The messages of a range, all of them, as bytes or as an Arrow array of bytes; the
        reader takes the step of the trace."""
        ...


class ReadTask:
    """Reads a range of one stream and takes it through all steps before the first state.

    Args:
        job: the batch; its base and sinks are not used.
        reader: the stream.
        slice_: the range's place among those of its stream.

    Attributes:
        packs: whether blocks leave this process, and so are bytes.
    """

    packs = True

    def __init__(self, job: Job, reader: Reader, slice_: int, partition: int, attempt: int) -> None:
        self.job = job
        self.reader = reader
        self.slice = slice_
        self.partition = partition
        self.attempt = attempt
        install(job.instrumentation)
        self.plan = Plan(job.app)
        self.meter = meter(job.measure)

    def run(self, planned: MessageRange) -> Moved:
        """Blocks and the state partitions that they go to."""
        causes = [source_step(self.job.batch, "source.plan", planned.stream, self.job.streams)]
        with timed(self.meter, "source.read"):
            messages = self.read(planned, self.origin, causes)
        if isinstance(messages, Records):
            source, part, numbers, values = messages
            yield from self.forward(source, part, numbers, values, planned)
            return
        numbers = np.arange(planned.start, planned.stop, dtype=np.int64)
        data = messages if isinstance(messages, pa.Array) else list(messages)
        yield from self.forward(planned.stream, None, numbers, data, planned)

    def forward(
        self,
        source: str,
        part: int | None,
        numbers: IntArray,
        data: Values,
        planned: MessageRange,
    ) -> Moved:
        """Take the messages of a range through the steps before the first state.

        Args:
            source: its name.
            part: the partition of the source that they are of, when it has some.
            numbers: of the messages.
            data: of the messages.
            planned: the range.
        """
        origin = self.origin
        flow = Flow(self.plan, self.meter)
        with without_collection(), timed(self.meter, "stateless"):
            flow.source(source, self.plan.streams.code(source, part), numbers, data)
        report = {
            "level": 0,
            "partition": self.partition,
            "attempt": self.attempt,
            "read": list(planned),
            "files": [],
            "sinks": {},
            "steps": [origin],
            "failed": flow.failed,
            **self.meter.report(),
        }
        yield 0, pack_report(Header(DRIVER, origin, (planned,)), report)
        yield from _moved(self.job, flow, origin, (planned,), self.slice, self.packs)

    @property
    def origin(self) -> str:
        """The step that reads the range."""
        return self.job.step_id(self.partition, self.attempt, "source.read")

    def read(self, planned: MessageRange, step: str, causes: Sequence[str]) -> Values | Records:
        """The messages of a range."""
        messages = self.reader.read(planned, step, causes)
        if not isinstance(messages, Records) and len(messages) != planned.stop - planned.start:
            raise BettongError(
                f"source {planned.stream} gave {len(messages)} messages for "
                f"[{planned.start}, {planned.stop})"
            )
        return messages


class LevelTask:
    """Applies the state steps of one level to the messages of one state partition.

    Attributes:
        packs: whether blocks leave this process, and so are bytes.
    """

    packs = True

    def __init__(self, job: Job, level: int, partition: int, attempt: int) -> None:
        self.job = job
        self.level = level
        self.partition = partition
        self.attempt = attempt
        install(job.instrumentation)
        self.plan = Plan(job.app)
        self.meter = meter(job.measure)
        self.files: list[FileEntry] = []
        self.prepared: dict[str, int] = {}
        self.steps: list[str] = []
        self.causes: list[str] = []
        self.carries: tuple[tuple[str, int, int], ...] = ()

    def run(self, arrived: Iterable[bytes | Block]) -> Moved:
        """Blocks of the next level with the state partitions that they go to; at the last level
        reports for the driver only."""
        inbox: dict[int, list[Items]] = {}
        later: list[bytes | Block] = []
        for data in arrived:
            block = data if isinstance(data, Block) else unpack(data)
            to = block.header.to
            if block.items is None or self.plan.level(to) > self.level:
                later.append(data)
                continue
            inbox.setdefault(to, []).append(block.items)
            self.causes.append(block.header.origin)
            self.carries += block.header.carries
        self.causes = sorted(set(self.causes))
        yield from ((self.partition, data) for data in later)
        if inbox:
            with without_collection():
                yield from self._work({to: concat(parts) for to, parts in inbox.items()})

    def _work(self, inbox: dict[int, Items]) -> Moved:
        flow = Flow(self.plan, self.meter)
        with timed(self.meter, "state.apply"):
            changed = [
                self.apply_state(flow, {i: inbox[i] for i in members if i in inbox})
                for members in self.plan.groups(self.level).values()
                if any(i in inbox for i in members)
            ]
        if changed:
            with timed(self.meter, "state.write"):
                self._write_state(changed)
        if self.level == self.plan.last_level:
            arrived = {
                i: concat([part for part in (inbox.get(i), flow.arrived.get(i)) if part])
                for i, node in enumerate(self.plan.nodes)
                if node in self.job.app.sinks and (i in inbox or i in flow.arrived)
            }
            with timed(self.meter, "sink.prepare"):
                self._prepare(arrived)
            yield 0, self._report(flow)
        else:
            origin = self._step_id("state.write")
            yield self.partition, self._report(flow)
            yield from _moved(self.job, flow, origin, _joined(self.carries), 0, self.packs)

    def _step_id(self, name: str) -> str:
        return self.job.step_id(self.partition, self.attempt, name, self.level)

    def _report(self, flow: Flow) -> bytes:
        report = {
            "level": self.level,
            "partition": self.partition,
            "attempt": self.attempt,
            "files": [f.to_json() for f in self.files],
            "sinks": self.prepared,
            "steps": self.steps,
            "failed": flow.failed,
            **self.meter.report(),
        }
        return pack_report(Header(DRIVER, self._step_id("state.write")), report)

    def apply_state(self, flow: Flow, inbox: dict[int, Items]) -> Changed:
        """Apply the steps that share one state to their messages, in the messages' order."""
        return apply_state(self.plan, flow, inbox, self.load, self.load_all)

    def load_all(self, state: State) -> Stored:
        """The entities of the partition as they were before the batch."""
        low, high = bounds(self.partition, self.job.partitions)
        with timed(self.meter, "state.load"):
            files = self.job.base.files_of(state.name, low, high)
            return scan(state, self._cache(), files, low, high)

    def load(self, state: State, keys: list[bytes], hashes: list[int]) -> pa.Array:
        """The column of the entities of canonical keys as they were before the batch, null where
        there was none."""
        low, high = bounds(self.partition, self.job.partitions)
        files = self.job.base.files_of(state.name, low, high)
        with timed(self.meter, "state.load"):
            return load_column(state, self._cache(), files, keys, hashes)

    def _cache(self) -> FileCache:
        cache = _cache_of(self.job)
        cache.keep_only(self.job.base.files)
        return cache

    def _write_state(self, changed: Sequence[Changed]) -> None:
        with step(
            self._step_id("state.write"),
            causes=[*self.causes, *self._base_step()],
            carries=_ranges(self.carries),
        ):
            for change in changed:
                if change.keys:
                    self.files.append(self.write(change))
        self.steps.append(self._step_id("state.write"))

    def _base_step(self) -> list[str]:
        batch = self.job.base.batch
        return [f"batch={batch}/state.manifest"] if batch >= 0 else []

    def write(self, change: Changed) -> FileEntry:
        """Write changed entities as one file under a name that no other attempt has."""
        state = change.state
        place = f"{self.partition:04d}-{self.attempt}"
        name = file_name(state.name, self.job.epoch, self.job.batch, place)
        return save(state, self.job.store, name, change.keys, change.hashes, change.entities)

    def _prepare(self, arrived: dict[int, Items]) -> None:
        names = {self.plan.nodes[i].name: items for i, items in arrived.items()}
        for sink, items in names.items():
            order = order_of(items)
            rows = self.rows(items if order is None else items.take(order))
            name = self.job.step_id(
                self.partition, self.attempt, self.job.sink_step("sink.prepare", sink)
            )
            causes = list(self.causes)
            if self.files:
                causes.append(self._step_id("state.write"))
            opened = self.job.sink_step(f"epoch={self.job.epoch}/sink.open", sink)
            noted = Noted(name, [*causes, opened], _ranges(self.carries))
            self.prepare(sink, rows, noted)
            self.prepared[sink] = len(rows)
            self.steps.append(name)

    def prepare(self, sink: str, rows: Sequence[Row], noted: Noted) -> None:
        """Stage the outputs for a sink."""
        self.job.sinks[sink].prepare(
            self.job.epoch, self.job.batch, self.partition, self.attempt, rows, noted
        )

    def rows(self, items: Items) -> Sequence[Row]:
        """Outputs with their ids, in their order."""
        return Rows(items.ids(self.plan.streams), items.keys, items.values)


class TaskClasses(NamedTuple):
    """What a batch's tasks are made of.

    Attributes:
        read_task: what reads a range.
        level_task: what applies state.
    """

    read_task: type[ReadTask] = ReadTask
    level_task: type[LevelTask] = LevelTask


def _moved(
    job: Job,
    flow: Flow,
    origin: str,
    carries: tuple[tuple[str, int, int], ...],
    slice_: int,
    packs: bool,
) -> Moved:
    for number, items in flow.arrived.items():
        without_key = min(slice_, job.partitions - 1)
        head = Header(number, origin, carries)
        if packs:
            yield from pack_by_partition(head, items, job.partitions, without_key)
        else:
            yield from split_by_partition(head, items, job.partitions, without_key)


def _joined(ranges: Iterable[tuple[str, int, int]]) -> tuple[tuple[str, int, int], ...]:
    """The same messages in as few ranges as will do."""
    joined: list[tuple[str, int, int]] = []
    for stream, start, stop in sorted(set(ranges)):
        if joined and joined[-1][0] == stream and start <= joined[-1][2]:
            joined[-1] = (stream, joined[-1][1], max(stop, joined[-1][2]))
        else:
            joined.append((stream, start, stop))
    return tuple(joined)


def _ranges(ranges: Iterable[tuple[str, int, int]]) -> list[MessageRange]:
    return [MessageRange(*r) for r in _joined(ranges)]


_caches: dict[Store, FileCache] = {}


def _cache_of(job: Job) -> FileCache:
    """This process's open files of the state log; those of another run's are let go."""
    if job.store not in _caches:
        _caches.clear()
        _caches[job.store] = FileCache(job.store)
    return _caches[job.store]
