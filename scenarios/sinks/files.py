"""Sinks that keep files and need no server."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bettong.harness.queries.sink.contract import SCHEMA, Environment, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class Parquet(Sink):
    """Spark's own file sink, read by a reader that honours its metadata log."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        writer = rows.writeStream.format("parquet").option("path", str(env.workdir / "out"))
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> Iterable[Any]:
        return env.spark.read.schema(SCHEMA).parquet(str(env.workdir / "out")).collect()


class ParquetFiles(Parquet):
    """The same files, read by a tool that knows nothing of Spark's metadata log."""

    def read(self, env: Environment) -> Iterable[Any]:
        import pyarrow.parquet as pq

        files = sorted((env.workdir / "out").glob("*.parquet"))
        return [row for file in files for row in pq.read_table(file).to_pylist()]


class JsonAppend(Sink):
    """foreachBatch appends each row to a file: what one writes first."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        path = env.workdir / "out.jsonl"

        def append(batch: DataFrame, batch_id: int) -> None:
            with path.open("a") as out:
                for row in batch.collect():
                    print(json.dumps(row.asDict(), default=str), file=out)

        writer = rows.writeStream.foreachBatch(append)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> Iterable[Any]:
        path = env.workdir / "out.jsonl"
        return map(json.loads, path.read_text().splitlines()) if path.exists() else []


class JsonBatchFiles(JsonAppend):
    """foreachBatch writes each batch to a file of its own, renamed into place: a replay replaces
    the file."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        folder = env.workdir / "out"

        def replace(batch: DataFrame, batch_id: int) -> None:
            folder.mkdir(exist_ok=True)
            temporary = folder / f".{batch_id}"
            with temporary.open("w") as out:
                for row in batch.collect():
                    print(json.dumps(row.asDict(), default=str), file=out)
            temporary.rename(folder / self.name_of(batch_id))

        writer = rows.writeStream.foreachBatch(replace)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def name_of(self, batch_id: int) -> str:
        """Of a batch's file."""
        return f"{batch_id}.jsonl"

    def read(self, env: Environment) -> Iterable[Any]:
        files = sorted((env.workdir / "out").glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


class _Sqlite(Sink):
    """Rows and the ids of batches that were applied, in an SQLite file."""

    def setup(self, env: Environment) -> None:
        with self._connect(env) as db:
            db.execute("CREATE TABLE rows (id TEXT, key TEXT, seq INTEGER, value INTEGER)")
            db.execute("CREATE TABLE applied (batch INTEGER PRIMARY KEY)")
        db.close()

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def apply(batch: DataFrame, batch_id: int) -> None:
            found = [(r.id, r.key, r.seq, r.value) for r in batch.collect()]
            db = self._connect(env)
            try:
                self.apply(db, batch_id, found)
            finally:
                db.close()

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        raise NotImplementedError

    def read(self, env: Environment) -> Iterable[Any]:
        db = self._connect(env)
        found = db.execute("SELECT id, key, seq, value FROM rows ORDER BY rowid").fetchall()
        db.close()
        return [dict(zip(("id", "key", "seq", "value"), row, strict=True)) for row in found]

    @staticmethod
    def _connect(env: Environment) -> sqlite3.Connection:
        return sqlite3.connect(env.workdir / "sink.db")


_INSERT = "INSERT INTO rows VALUES (?, ?, ?, ?)"


def _is_applied(db: sqlite3.Connection, batch_id: int) -> bool:
    return bool(db.execute("SELECT 1 FROM applied WHERE batch = ?", (batch_id,)).fetchall())


class SqliteInsert(_Sqlite):
    """Plain INSERT, one transaction a batch, nothing to know a replay by."""

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        with db:
            db.executemany(_INSERT, rows)


class SqliteOneTransaction(_Sqlite):
    """Rows and batch id in one transaction; a batch that is there already is skipped."""

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        with db:
            if not _is_applied(db, batch_id):
                db.executemany(_INSERT, rows)
                db.execute("INSERT INTO applied VALUES (?)", (batch_id,))


class SqliteRowsThenMarker(_Sqlite):
    """Rows in one transaction, then the batch id in another."""

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if not _is_applied(db, batch_id):
            with db:
                db.executemany(_INSERT, rows)
            with db:
                db.execute("INSERT INTO applied VALUES (?)", (batch_id,))


class SqliteMarkerThenRows(_Sqlite):
    """The batch id in one transaction, then the rows in another."""

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if not _is_applied(db, batch_id):
            with db:
                db.execute("INSERT INTO applied VALUES (?)", (batch_id,))
            with db:
                db.executemany(_INSERT, rows)
