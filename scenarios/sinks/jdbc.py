"""foreachBatch and Spark's JDBC writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bettong.harness.queries.sink.contract import Environment
from bettong.scenarios.sinks.postgres import PlainInsert
from bettong.scenarios.sinks.spark_jars import spark_jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_DRIVER = "org.postgresql:postgresql:42.7.4"
_SECONDS = 10


class JdbcAppend(PlainInsert):
    """``write.jdbc`` in mode append: each task inserts its rows in a transaction of its own."""

    @property
    def spark_config(self) -> Mapping[str, str]:  # type: ignore[override]
        return spark_jars(_DRIVER)

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        host, port = env.address("db")
        url = f"jdbc:postgresql://{host}:{port}/bettong"
        properties = {
            "driver": "org.postgresql.Driver",
            "user": "bettong",
            "connectTimeout": str(_SECONDS),
            "socketTimeout": str(_SECONDS),
        }

        def append(batch: DataFrame, batch_id: int) -> None:
            batch.drop("ts").write.jdbc(url, "sink_rows", "append", properties)

        writer = rows.writeStream.foreachBatch(append)
        return writer.option("checkpointLocation", env.checkpoint).start()
