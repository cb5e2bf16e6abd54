"""Sinks that write to a Delta table. Delta 4.2 runs on Spark 4.1.1 only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bettong.harness.queries.sink.contract import SCHEMA, Environment, Sink
from bettong.scenarios.sinks.spark_jars import need_spark, spark_jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter
    from pyspark.sql.streaming.query import StreamingQuery

_JARS = (
    "io.delta:delta-spark_4.1_2.13:4.2.0",
    "io.delta:delta-storage:4.2.0",
    "io.delta:delta-kernel-api:4.2.0",
    "io.delta:delta-kernel-defaults:4.2.0",
    "io.delta:delta-kernel-unitycatalog:4.2.0",
    "io.unitycatalog:unitycatalog-client:0.4.1",
)


class _Delta(Sink):
    @property
    def spark_config(self) -> Mapping[str, str]:  # type: ignore[override]
        need_spark("4.1.1", "Delta 4.2")
        return {
            **spark_jars(*_JARS),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.databricks.delta.stats.collect": "false",
            "spark.databricks.delta.stats.skipping": "false",
        }

    def setup(self, env: Environment) -> None:
        empty = env.spark.createDataFrame([], SCHEMA)
        empty.write.format("delta").save(self.path(env))

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        self.forget(env)
        path = self.path(env)
        writer = rows.writeStream.foreachBatch(lambda batch, n: self.apply(batch, n, path))
        return writer.option("checkpointLocation", env.checkpoint).start()

    def apply(self, batch: DataFrame, batch_id: int, path: str) -> None:
        raise NotImplementedError

    def read(self, env: Environment) -> Iterable[Any]:
        self.forget(env)
        return env.spark.read.format("delta").load(self.path(env)).drop("ts").collect()

    @staticmethod
    def path(env: Environment) -> str:
        return str(env.workdir / "table")

    @staticmethod
    def forget(env: Environment) -> None:
        """A new driver knows no table; in a JVM that is used again Delta would remember it."""
        env.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]


class DeltaStream(_Delta):
    """Delta's own streaming sink, which records the query's id and the batch's in the table."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        self.forget(env)
        writer = rows.writeStream.format("delta").option("checkpointLocation", env.checkpoint)
        return writer.start(self.path(env))


class DeltaAppend(_Delta):
    """foreachBatch appends."""

    def apply(self, batch: DataFrame, batch_id: int, path: str) -> None:
        self.writer(batch, batch_id).save(path)

    def writer(self, batch: DataFrame, batch_id: int) -> DataFrameWriter:
        return batch.write.format("delta").mode("append")


class DeltaAppendOnce(DeltaAppend):
    """foreachBatch appends with ``txnAppId`` and ``txnVersion``: Delta skips what it has."""

    def writer(self, batch: DataFrame, batch_id: int) -> DataFrameWriter:
        writer = super().writer(batch, batch_id)
        return writer.option("txnAppId", "rows").option("txnVersion", batch_id)


class DeltaMerge(_Delta):
    """foreachBatch merges by the row's id."""

    def apply(self, batch: DataFrame, batch_id: int, path: str) -> None:
        batch.createOrReplaceTempView("batch")
        batch.sparkSession.sql(
            f"MERGE INTO delta.`{path}` t USING batch b ON t.id = b.id "
            "WHEN NOT MATCHED THEN INSERT *"
        )
