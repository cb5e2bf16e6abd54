"""The sources of an application as one Python data source of Spark.

One data source serves all streams, so that a batch's offsets are decided in one place: an offset
is ``{"batch": N, "streams": {stream: n}}``, where N counts the batches and messages from n on are
not in it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from bettong.engine.batch.job import Job, install
from bettong.engine.batch.planning import Planner, source_step
from bettong.engine.batching import Batching
from bettong.engine.sources.base import StreamSource, beginnings

SCHEMA = StructType([StructField("p", IntegerType()), StructField("block", BinaryType())])

Offset = dict[str, Any]
FIRST_BATCH_S = 10.0
"""For how long the first batch is waited for."""


@dataclass(frozen=True)
class SourceSpec:
    """What the planner of one start of a query is told.

    Attributes:
        job: the application, epoch and store; of no batch.
        sources: by stream.
        batching: when a batch closes.
        wait: seconds for which planning waits for messages before Spark is told of none.
        resume: the offset at which a restarted query goes on, or None.
        planner: what decides what a batch takes.
    """

    job: Job
    sources: Mapping[str, StreamSource]
    batching: Batching
    wait: float
    resume: Offset | None
    planner: type[Planner] = field(default=Planner)

    def source_step(self, batch: int, name: str, stream: str) -> str:
        """Step id of what is done for a stream, which is named when there are several."""
        return source_step(batch, name, stream, len(self.sources))


class StreamReader(DataSourceStreamReader):
    """Plans batches, in the planner's process."""

    def __init__(self, spec: SourceSpec) -> None:
        self.spec = spec
        self._planner = spec.planner(spec.sources, spec.job.store, spec.batching, spec.wait)

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return initial(self.spec.sources)

    def latestOffset(self, start: Offset, limit: Any) -> Offset:  # noqa: N802
        install(self.spec.job.instrumentation)
        return self.plan(start)

    def plan(self, start: Offset) -> Offset:
        """Where the batch after ``start`` ends; ``start`` itself while there is none.

        Whatever Spark is told at first is its first batch. So that the batches of an input are the
        same at each run, that one is waited for, and when nothing has come by then it is noted as
        an empty one: otherwise Spark's numbers and ours would differ from then on.
        """
        begins = since_the_beginning(self.spec.sources, start)
        give_up = time.monotonic() + FIRST_BATCH_S
        while (ends := self._planner.plan(start["batch"], begins)) is None:
            if start["batch"] or self._has_ended():
                return start
            if time.monotonic() > give_up:
                ends = self._planner.plan_nothing(0, begins)
                break
        return {"batch": start["batch"] + 1, "streams": ends}

    def _has_ended(self) -> bool:
        return all(source.extent(0, 0.0).ended for source in self.spec.sources.values())

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """None: the tasks of a batch read what is theirs themselves, see
        :mod:`bettong.engine.spark.execution`."""
        return []

    def read(self, partition: InputPartition) -> Iterator[tuple[()]]:
        return iter(())

    def commit(self, end: Offset) -> None:
        install(self.spec.job.instrumentation)
        release(self.spec, end["batch"] - 1, end["streams"])


class UnlimitedStreamReader(StreamReader):
    """For Spark before 4.2, which does not tell where the last batch ended."""

    def __init__(self, spec: SourceSpec) -> None:
        super().__init__(spec)
        self._last = spec.resume or self.initialOffset()

    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802
        install(self.spec.job.instrumentation)
        self._last = self.plan(self._last)
        return self._last


def initial(sources: Mapping[str, StreamSource]) -> Offset:
    """Where the first batch begins."""
    return {"batch": 0, "streams": beginnings(sources)}


def since_the_beginning(sources: Mapping[str, StreamSource], offset: Offset) -> dict[str, int]:
    """Where an offset is in each stream, also in those that came to the application after it."""
    return {**beginnings(sources), **offset["streams"]}


def release(spec: SourceSpec, batch: int, ends: Mapping[str, int]) -> None:
    """Tell the sources that a batch is done for good."""
    for stream, stop in ends.items():
        if stop:
            step = spec.source_step(batch, "source.commit", stream)
            spec.sources[stream].release(stop, step, [f"batch={batch}/commits"])


def data_source(name: str, spec: SourceSpec) -> type[DataSource]:
    """The class to be registered with a Spark session."""
    with_limits = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)
    reader = StreamReader if with_limits else UnlimitedStreamReader

    class BettongSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> StructType:
            return SCHEMA

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
            return reader(spec)

    return BettongSource
