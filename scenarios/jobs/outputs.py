"""Where jobs that ship put their rows: files, SQLite, and how they are read back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bettong.harness import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

Apply = Callable[["DataFrame", int], None]


class ToParquet(Job):
    """Into Spark's file sink, read by a reader that honours its metadata log."""

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        writer = df.writeStream.format("parquet").option("path", str(env.workdir / "out"))
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Any) -> list[Any]:
        rows: list[Any] = env.spark.read.parquet(str(env.workdir / "out")).collect()
        return rows


class ToAppendedFile(Job):
    """Appended to a file of JSON lines in foreachBatch."""

    mode = "append"

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        path = env.workdir / "out.jsonl"

        def append(batch: DataFrame, batch_id: int) -> None:
            with path.open("a") as out:
                out.writelines(f"{text}\n" for text in batch.toJSON().collect())

        return started(df, env, append, self.mode)

    def read(self, env: Any) -> list[Any]:
        path = env.workdir / "out.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


class ToSqlite(Job):
    """Into an SQLite file, a transaction a batch.

    Attributes:
        tables: statements that make the tables.
        select: the query that reads back.
        mode: Spark's output mode.
        trigger: its trigger, by Spark's own words; empty for the default one.
    """

    tables: tuple[str, ...] = ()
    select = ""
    mode = "append"
    trigger: Mapping[str, Any] = {}

    def setup(self, env: Any) -> None:
        with connected(env) as db:
            for statement in self.tables:
                db.execute(statement)

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        def each(batch: DataFrame, batch_id: int) -> None:
            rows = [tuple(row) for row in batch.collect()]
            with connected(env) as db:
                self.apply(db, batch_id, rows)

        return started(df, env, each, self.mode, **self.trigger)

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        """Write a batch."""
        raise NotImplementedError

    def read(self, env: Any) -> list[dict[str, Any]]:
        with connected(env) as db:
            cursor = db.execute(self.select)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def started(
    df: DataFrame, env: Any, each: Apply, mode: str = "append", **trigger: Any
) -> StreamingQuery:
    """The query whose batches a function takes."""
    writer = df.writeStream.outputMode(mode).foreachBatch(each)
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.option("checkpointLocation", env.checkpoint).start()


@contextmanager
def connected(env: Any) -> Iterator[sqlite3.Connection]:
    """A connection that is closed afterwards; what was not committed is gone."""
    db = sqlite3.connect(env.workdir / "out.db")
    try:
        with db:
            yield db
    finally:
        db.close()
