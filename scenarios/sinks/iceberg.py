"""Sinks that append to an Iceberg table. Its newest runtime is for Spark 4.1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bettong.harness.queries.sink.contract import SCHEMA, Environment, Sink
from bettong.scenarios.sinks.spark_jars import need_spark, spark_jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_JAR = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"


class IcebergStream(Sink):
    """Iceberg's own streaming sink, which records the query's id and the batch's in the table."""

    @property
    def spark_config(self) -> Mapping[str, str]:  # type: ignore[override]
        need_spark("4.1", "Iceberg 1.11")
        return spark_jars(_JAR)

    def setup(self, env: Environment) -> None:
        env.spark.sql(f"CREATE TABLE {self.table(env)} ({SCHEMA}) USING iceberg")

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        writer = rows.writeStream.format("iceberg").outputMode("append")
        return writer.option("checkpointLocation", env.checkpoint).toTable(self.table(env))

    def read(self, env: Environment) -> Iterable[Any]:
        return env.spark.table(self.table(env)).drop("ts").collect()

    @staticmethod
    def table(env: Environment) -> str:
        """The table, in a catalog of this run. Nothing is cached: a new driver knows no table."""
        catalog = f"spark.sql.catalog.{env.run_id}"
        env.spark.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
        env.spark.conf.set(f"{catalog}.type", "hadoop")
        env.spark.conf.set(f"{catalog}.warehouse", str(env.workdir))
        env.spark.conf.set(f"{catalog}.cache-enabled", "false")
        return f"{env.run_id}.db.rows"


class IcebergAppend(IcebergStream):
    """foreachBatch appends."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        table = self.table(env)
        writer = rows.writeStream.foreachBatch(lambda batch, n: batch.writeTo(table).append())
        return writer.option("checkpointLocation", env.checkpoint).start()
