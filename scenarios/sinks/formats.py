"""The engine's own sinks for what Spark can write, judged as anybody's: workers stage a batch's
rows, and the driver lets a pattern write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bettong.engine.sinks.base import Noted, Row
from bettong.engine.sinks.formats import FormatSink
from bettong.engine.sinks.patterns import BatchFolders, DeltaTable, Pattern, ReplacedBatches
from bettong.engine.state.manifest import take_epoch
from bettong.engine.state.store import LocalStore
from bettong.harness.queries.sink.contract import Environment, Sink
from bettong.scenarios.sinks.delta import DeltaAppend
from bettong.scenarios.sinks.iceberg import IcebergAppend

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_FIELDS = "key STRING, seq BIGINT, value BIGINT"
COLUMNS = f"id STRING, {_FIELDS}, batch BIGINT"
_NAME = "rows"
_UNTRACED = Noted("")


def start(rows: DataFrame, env: Environment, pattern: Pattern) -> StreamingQuery:
    """The query whose batches go to the sink as a run of the engine hands them over."""
    sink = FormatSink(pattern, env.workdir / "staged", _FIELDS)
    epoch = take_epoch(LocalStore(env.workdir / "epochs"), "driver")
    sink.open(_NAME, epoch, _UNTRACED)

    def apply(frame: DataFrame, batch: int) -> None:
        staged = frame.drop("ts").mapInArrow(_Stages(sink, epoch, batch), "p INT, a INT").collect()
        sink.commit(epoch, batch, {row.p: row.a for row in staged}, _UNTRACED)

    writer = rows.writeStream.foreachBatch(apply)
    return writer.option("checkpointLocation", env.checkpoint).start()


@dataclass(frozen=True)
class _Stages:
    """What a task does with its rows."""

    sink: FormatSink
    epoch: int
    batch: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        place = task.partitionId(), task.attemptNumber()
        rows = [_row(value) for batch in batches for value in batch.to_pylist()]
        if rows:
            self.sink.prepare(self.epoch, self.batch, *place, rows, _UNTRACED)
            columns = [pa.array([number], pa.int32()) for number in place]
            yield pa.RecordBatch.from_arrays(columns, ["p", "a"])


def _row(value: dict[str, Any]) -> Row:
    row_id = value.pop("id")
    return Row(row_id, value["key"], json.dumps(value).encode())


class ParquetFolders(Sink):
    """A folder of Parquet files for each batch, put in place by one rename."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        return start(rows, env, BatchFolders(self._folder(env)))

    def read(self, env: Environment) -> Iterable[Any]:
        folder = self._folder(env)
        folder.mkdir(exist_ok=True)
        return env.spark.read.schema(COLUMNS).parquet(str(folder)).collect()

    @staticmethod
    def _folder(env: Environment) -> Path:
        return env.workdir / "out"


class DeltaOnce(DeltaAppend):
    """A Delta table whose log has the batches' numbers beside their files."""

    def setup(self, env: Environment) -> None:
        env.spark.createDataFrame([], COLUMNS).write.format("delta").save(self.path(env))

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        self.forget(env)
        return start(rows, env, DeltaTable(self.path(env)))


class IcebergReplaced(IcebergAppend):
    """An Iceberg table in which each batch replaces the rows of its own number."""

    def setup(self, env: Environment) -> None:
        table = f"CREATE TABLE {self.table(env)} ({COLUMNS}) USING iceberg PARTITIONED BY (batch)"
        env.spark.sql(table)

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        return start(rows, env, ReplacedBatches(self.table(env)))
