"""Sinks written against Spark's own writer interfaces: ``foreach`` and Python data sources."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from errno import EEXIST, ENOTEMPTY
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

from bettong.harness.queries.sink.contract import Environment, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def _rows_in(folder: Path) -> list[Any]:
    files = sorted(folder.glob("[!.]*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


class _RowWriter:
    """A file for each partition, appended to in every epoch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, partition: int, epoch: int) -> bool:
        self._folder.mkdir(exist_ok=True)
        self._out = (self._folder / f"{partition}.jsonl").open("a")
        return True

    def process(self, row: Any) -> None:
        self._out.write(json.dumps(row.asDict(), default=str) + "\n")

    def close(self, error: Exception | None) -> None:
        self._out.close()


class ForeachAppend(Sink):
    """``foreach`` appends row by row."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        writer = rows.writeStream.foreach(_RowWriter(env.workdir / "out"))
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> Iterable[Any]:
        return _rows_in(env.workdir / "out")


@dataclass
class _Staged(WriterCommitMessage):
    path: str
    name: str


class _RenamingWriter(DataSourceStreamWriter):
    """Attempts write aside; the commit puts what won into a folder, which one rename makes visible
    under the name of the batch, unless the batch is there."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def write(self, rows: Iterator[Any]) -> WriterCommitMessage:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        self._folder.mkdir(exist_ok=True)
        staged = self._folder / f".{task.partitionId()}-{uuid4().hex}"
        with staged.open("w") as out:
            for row in rows:
                out.write(json.dumps(row.asDict(), default=str) + "\n")
        return _Staged(str(staged), str(task.partitionId()))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """A replay may deal its rows out in another way, and a driver that was thought dead may
        come to this line late: a batch is there as a whole or not, and only once."""
        whole = self._folder / f".{batchId}-{uuid4().hex}"
        whole.mkdir(parents=True)
        for message in messages:
            assert isinstance(message, _Staged)
            Path(message.path).rename(whole / f"{message.name}.jsonl")
        try:
            whole.rename(self._folder / f"{batchId}")
        except OSError as e:
            if e.errno not in (EEXIST, ENOTEMPTY):
                raise

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        for message in messages:
            if isinstance(message, _Staged):
                Path(message.path).unlink(missing_ok=True)


class _DirectWriter(_RenamingWriter):
    """Writes where it will be read, in ``write()`` itself."""

    def write(self, rows: Iterator[Any]) -> WriterCommitMessage:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        self._folder.mkdir(exist_ok=True)
        with (self._folder / f"{task.partitionId()}.jsonl").open("a") as out:
            for row in rows:
                out.write(json.dumps(row.asDict(), default=str) + "\n")
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        pass


class _Renaming(DataSource):
    @classmethod
    def name(cls) -> str:
        return "bettong_renaming"

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return _RenamingWriter(self.options["folder"])


class _Direct(DataSource):
    @classmethod
    def name(cls) -> str:
        return "bettong_direct"

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return _DirectWriter(self.options["folder"])


class DataSourceRename(Sink):
    """A Python data source whose batches are renamed at commit."""

    source: type[DataSource] = _Renaming

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        env.spark.dataSource.register(self.source)
        writer = rows.writeStream.format(self.source.name())
        writer = writer.option("folder", str(env.workdir / "out"))
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> Iterable[Any]:
        return [row for batch in (env.workdir / "out").glob("[!.]*") for row in _rows_in(batch)]


class DataSourceDirect(DataSourceRename):
    """A Python data source that writes in ``write()``."""

    source = _Direct

    def read(self, env: Environment) -> Iterable[Any]:
        return _rows_in(env.workdir / "out")
