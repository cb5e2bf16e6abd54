"""Sinks that write with Spark's JDBC writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bettong.engine.sinks.jdbc import JdbcTable
from bettong.harness.queries.sink.contract import Environment
from bettong.scenarios.sinks.formats import start
from bettong.scenarios.sinks.postgres import PlainInsert
from bettong.scenarios.sinks.spark_jars import spark_jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_DRIVER = "org.postgresql:postgresql:42.7.4"
_SECONDS = 10
_PROPERTIES = {
    "driver": "org.postgresql.Driver",
    "user": "bettong",
    "connectTimeout": str(_SECONDS),
    "socketTimeout": str(_SECONDS),
}


class JdbcAppend(PlainInsert):
    """``write.jdbc`` in mode append: each task inserts its rows in a transaction of its own."""

    @property
    def spark_config(self) -> Mapping[str, str]:  # type: ignore[override]
        return spark_jars(_DRIVER)

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        url = _url(env)

        def append(batch: DataFrame, batch_id: int) -> None:
            batch.drop("ts").write.jdbc(url, "sink_rows", "append", _PROPERTIES)

        writer = rows.writeStream.foreachBatch(append)
        return writer.option("checkpointLocation", env.checkpoint).start()


class JdbcBatches(JdbcAppend):
    """The engine's sink: rows of a batch and its number in one transaction."""

    columns = f"{PlainInsert.columns}, batch bigint"

    def setup(self, env: Environment) -> None:
        super().setup(env)
        with self._connect(env) as db:
            db.execute("DROP TABLE IF EXISTS sink_rows_batches")

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        return start(rows, env, JdbcTable(_url(env), "sink_rows", _PROPERTIES))


def _url(env: Environment) -> str:
    host, port = env.address("db")
    return f"jdbc:postgresql://{host}:{port}/bettong"
