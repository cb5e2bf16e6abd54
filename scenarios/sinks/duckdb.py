"""Sinks that keep rows in a DuckDB file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import duckdb

from bettong.harness.queries.sink.contract import Environment, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_NAMES = ("id", "key", "seq", "value")


class Append(Sink):
    """INSERT of the whole batch, one transaction."""

    def setup(self, env: Environment) -> None:
        with self._connect(env) as db:
            db.execute("CREATE TABLE rows (id TEXT, key TEXT, seq BIGINT, value BIGINT)")
            db.execute("CREATE TABLE applied (batch BIGINT PRIMARY KEY)")

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def apply(batch: DataFrame, batch_id: int) -> None:
            found = [tuple(row) for row in batch.select(*_NAMES).collect()]
            with self._connect(env) as db:
                db.begin()
                self.apply(db, batch_id, found)
                db.commit()

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)

    def read(self, env: Environment) -> Iterable[Any]:
        with self._connect(env) as db:
            found = db.execute("SELECT id, key, seq, value FROM rows").fetchall()
        return [dict(zip(_NAMES, row, strict=True)) for row in found]

    @staticmethod
    def _connect(env: Environment) -> Any:
        return duckdb.connect(env.workdir / "sink.duckdb")


class OneTransaction(Append):
    """Rows and batch id in one transaction; a batch that is there already is skipped."""

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if not db.execute("SELECT 1 FROM applied WHERE batch = ?", [batch_id]).fetchall():
            db.execute("INSERT INTO applied VALUES (?)", [batch_id])
            super().apply(db, batch_id, rows)
