"""Traps around the checkpoint and Spark's restarts, in the Spark that is installed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bettong.harness import Bag, Files, OnePerKey
from bettong.scenarios.jobs.deduplication import Distinct
from bettong.scenarios.jobs.outputs import ToParquet
from bettong.scenarios.jobs.windows import Counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_CHECKSUMS = {"spark.sql.streaming.checkpoint.fileChecksum.enabled": "true"}


class ChecksumsOfFormatOne(Counts):
    """Checksums beside the files of a checkpoint whose format writes a batch's files again."""

    spark_config = _CHECKSUMS


class MetadataLost(Distinct):
    """Whoever starts the query again has not brought its ``metadata`` along: the query has another
    id."""

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        if (Path(env.checkpoint) / "commits" / "0").exists():
            (Path(env.checkpoint) / "metadata").unlink()
        return super().write(df, env)


class StateFolderEmpty(Distinct):
    """Whoever starts the query again has not brought its state along."""

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        if (Path(env.checkpoint) / "commits" / "0").exists():
            shutil.rmtree(Path(env.checkpoint) / "state" / "0")
        return super().write(df, env)


class MetadataOfTheFile(ToParquet):
    """Rows without their doubles, and after that the file that each one came from: the file has
    become a part of what makes two rows doubles."""

    inputs = {  # noqa: RUF012
        "orders": Files("json", [{"id": f"o{n % 6}"} for n in range(12)], schema="id STRING")
    }
    oracle, compare = OnePerKey("id"), Bag("id")

    def transform(self, env: Any) -> DataFrame:
        rows: DataFrame = env.input("orders").dropDuplicates()
        return rows.select("id", "_metadata.file_name")


def _visits(user: str, number: int) -> Files:
    """So many rows of a user, a minute apart, each in a step of its own."""
    return Files(
        "json",
        [{"user": user, "at": f"2024-01-01T00:0{n}:00Z"} for n in range(number)],
        schema="user STRING, at TIMESTAMP",
        per_step=1,
        closing={"user": "closing", "at": "2030-01-01T00:00:00Z"},
    )


class SourcesInTurn(ToParquet):
    """Two sources, of which one after the other has rows, and a query that is started for what is
    there now: of what each source has come to only the least is kept."""

    inputs = {  # noqa: RUF012
        "slow": _visits("a", 2),
        "long": _visits("b", 4),
    }
    oracle, compare = "batch", Bag("user", "n")

    def transform(self, env: Any) -> DataFrame:
        from pyspark.sql.functions import count, window

        slow = env.input("slow").withWatermark("at", "1 second")
        both = slow.unionByName(env.input("long").withWatermark("at", "1 second"))
        groups = both.groupBy("user", window("at", "30 seconds")).agg(count("*").alias("n"))
        rows: DataFrame = groups.select("user", "n")
        return rows

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        writer = df.writeStream.format("parquet").option("path", str(env.workdir / "out"))
        writer = writer.trigger(availableNow=True)
        return writer.option("checkpointLocation", env.checkpoint).start()
