"""Sinks that keep rows in MariaDB."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pymysql  # type: ignore[import-untyped]

from bettong.harness.queries.sink.contract import Environment, Sink
from bettong.harness.servers import MariaDBServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


_INSERT = "INSERT INTO sink_rows VALUES (%s, %s, %s, %s)"


class Upsert(Sink):
    """INSERT … ON DUPLICATE KEY UPDATE by the row's id."""

    servers = {"db": MariaDBServer}  # noqa: RUF012
    key = ", PRIMARY KEY (id)"
    conflict = " ON DUPLICATE KEY UPDATE value = VALUES(value)"

    def setup(self, env: Environment) -> None:
        columns = "id varchar(20), `key` varchar(20), seq bigint, value bigint"
        with self._connect(env) as db, db.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS sink_rows")
            cursor.execute(f"CREATE TABLE sink_rows ({columns}{self.key}) ENGINE=InnoDB")

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def apply(batch: DataFrame, batch_id: int) -> None:
            found = [(r.id, r.key, r.seq, r.value) for r in batch.collect()]
            statement = f"{_INSERT}{self.conflict}"
            with self._connect(env) as db, db.cursor() as cursor:
                cursor.executemany(statement, found)
                db.commit()

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> Iterable[Any]:
        with self._connect(env) as db, db.cursor() as cursor:
            cursor.execute("SELECT id, `key`, seq, value FROM sink_rows")
            names = ("id", "key", "seq", "value")
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    @staticmethod
    def _connect(env: Environment) -> Any:
        host, port = env.address("db")
        return pymysql.connect(
            host=host,
            port=port,
            user=MariaDBServer.user,
            password=MariaDBServer.password,
            database=MariaDBServer.database,
            connect_timeout=10,
        )


class Insert(Upsert):
    """Plain INSERT, one transaction a batch."""

    key = conflict = ""
