"""Sinks that keep rows in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import psycopg

from bettong.harness.queries.sink.contract import Environment, Sink
from bettong.harness.servers import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_INSERT = "INSERT INTO sink_rows VALUES (%s, %s, %s, %s)"


class _Postgres(Sink):
    """Rows in one table, ids of applied batches in another."""

    servers = {"db": PostgresServer}  # noqa: RUF012
    columns = "id text, key text, seq bigint, value bigint"
    applied = "batch bigint PRIMARY KEY"

    def setup(self, env: Environment) -> None:
        with self._connect(env) as db:
            db.execute("DROP TABLE IF EXISTS sink_rows, sink_applied")
            db.execute(f"CREATE TABLE sink_rows ({self.columns})")
            db.execute(f"CREATE TABLE sink_applied ({self.applied})")

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def apply(batch: DataFrame, batch_id: int) -> None:
            found = [(r.id, r.key, r.seq, r.value) for r in batch.collect()]
            with self._connect(env) as db:
                self.apply(db, batch_id, found)

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        raise NotImplementedError

    def read(self, env: Environment) -> Iterable[Any]:
        with self._connect(env) as db:
            found = db.execute("SELECT id, key, seq, value FROM sink_rows").fetchall()
        return [dict(zip(("id", "key", "seq", "value"), row, strict=True)) for row in found]

    @staticmethod
    def _connect(env: Environment) -> Any:
        host, port = env.address("db")
        return psycopg.connect(
            host=host, port=port, user="bettong", dbname="bettong", connect_timeout=10
        )


def _insert(db: Any, rows: list[tuple[Any, ...]], statement: str = _INSERT) -> None:
    with db.cursor() as cursor:
        cursor.executemany(statement, rows)


def _is_applied(db: Any, batch_id: int) -> bool:
    asked = db.execute("SELECT 1 FROM sink_applied WHERE batch = %s", (batch_id,))
    return bool(asked.fetchall())


def _mark(db: Any, batch_id: int) -> None:
    db.execute("INSERT INTO sink_applied VALUES (%s)", (batch_id,))


class PlainInsert(_Postgres):
    """INSERT, one transaction a batch, nothing to know a replay by."""

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        _insert(db, rows)


class OnConflict(_Postgres):
    """INSERT … ON CONFLICT DO NOTHING on the row's id."""

    columns = "id text PRIMARY KEY, key text, seq bigint, value bigint"

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        _insert(db, rows, f"{_INSERT} ON CONFLICT DO NOTHING")


class OneTransaction(_Postgres):
    """Rows and batch id in one transaction; a batch that is there already is skipped."""

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if not _is_applied(db, batch_id):
            _mark(db, batch_id)
            _insert(db, rows)


class AskFirst(OneTransaction):
    """The same, but only the question keeps a batch from being there twice."""

    applied = "batch bigint"


class AsynchronousCommit(OneTransaction):
    """The same as OneTransaction, but its COMMIT is answered before it is written down."""

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        db.execute("SET LOCAL synchronous_commit TO off")
        super().apply(db, batch_id, rows)


class RowsThenMarker(_Postgres):
    """Rows in one transaction, then the batch id in another."""

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if not _is_applied(db, batch_id):
            _insert(db, rows)
            db.commit()
            _mark(db, batch_id)


class MarkerThenRows(_Postgres):
    """The batch id in one transaction, then the rows in another."""

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if not _is_applied(db, batch_id):
            _mark(db, batch_id)
            db.commit()
            _insert(db, rows)


class CopyPerPartition(_Postgres):
    """Each partition copies its rows in a transaction of its own, from its own task."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        connect = self._connect

        def copy(part: Iterable[Any]) -> None:
            with connect(env) as db, db.cursor().copy("COPY sink_rows FROM STDIN") as out:
                for row in part:
                    out.write_row((row.id, row.key, row.seq, row.value))

        def apply(batch: DataFrame, batch_id: int) -> None:
            batch.foreachPartition(copy)

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()


class RowByRow(_Postgres):
    """Each task inserts row by row, each row in a transaction of its own."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        connect = self._connect

        def insert(part: Iterable[Any]) -> None:
            with connect(env) as db:
                db.autocommit = True
                for row in part:
                    db.execute(_INSERT, (row.id, row.key, row.seq, row.value))

        def apply(batch: DataFrame, batch_id: int) -> None:
            batch.foreachPartition(insert)

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()


class SwallowsErrors(OnConflict):
    """Idempotent, but an error is logged and forgotten."""

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        try:
            super().apply(db, batch_id, rows)
            db.commit()
        except psycopg.Error as e:
            print(f"batch {batch_id} could not be written: {e}")
