"""The running sum as others do it, on the messages that the engine gets; outputs are checked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bettong.scenarios.benchmarks.errors import WrongResultError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Action = Callable[[], list[float]]
"""Does it and says when each batch was done."""


def applied_in_pandas(
    spark: SparkSession, messages: pa.Array, expected: pa.Array, batch: int, folder: Path
) -> Action:
    """``applyInPandasWithState``, a call for each key: every running sum comes out."""
    from pyspark.sql.streaming.state import GroupState

    def add(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        total = state.get[0] if state.exists else 0
        for frame in frames:
            running = frame["number"].cumsum() + total
            total = int(running.iloc[-1])
            yield pd.DataFrame({"key": key[0], "total": running})
        state.update((total,))

    def summed(frame: DataFrame) -> DataFrame:
        return frame.groupBy("key").applyInPandasWithState(
            add, "key string, total long", "total long", "append", "NoTimeout"
        )

    def check(seen: pa.Table) -> None:
        texts = pc.binary_join_element_wise(seen["key"], seen["total"].cast(pa.string()), " ")
        if sorted(texts.to_pylist()) != sorted(expected.to_pylist()):
            raise WrongResultError("the outputs of applyInPandasWithState are not the running sums")

    return lambda: _stream(spark, messages, batch, folder, summed, "append", check)


def aggregated(
    spark: SparkSession, messages: pa.Array, expected: pa.Array, batch: int, folder: Path
) -> Action:
    """Spark's own aggregation: for each batch the totals of its keys come out, no more."""
    from pyspark.sql import functions as f

    def summed(frame: DataFrame) -> DataFrame:
        return frame.groupBy("key").agg(f.sum("number").alias("total"))

    def check(seen: pa.Table) -> None:
        totals = seen.group_by("key").aggregate([("total", "max")])
        wanted = _last_totals(expected)
        if dict(zip(totals["key"].to_pylist(), totals["total_max"].to_pylist(), strict=True)) != (
            wanted
        ):
            raise WrongResultError("the totals of Spark's aggregation are wrong")

    return lambda: _stream(spark, messages, batch, folder, summed, "update", check)


def _last_totals(expected: pa.Array) -> dict[str, int]:
    pairs = (text.rpartition(" ") for text in expected.to_pylist())
    return {key: int(total) for key, _, total in pairs}


def _stream(
    spark: SparkSession,
    messages: pa.Array,
    batch: int,
    folder: Path,
    summed: Callable[[DataFrame], DataFrame],
    mode: str,
    check: Callable[[pa.Table], None],
) -> list[float]:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        at = Path(name)
        _write(messages, batch, at / "in")
        spark.conf.set("spark.sql.shuffle.partitions", "4")
        rows = (
            spark.readStream.schema("key string, number long")
            .option("maxFilesPerTrigger", 1)
            .option("latestFirst", False)
            .parquet(str(at / "in"))
        )

        def keep(frame: DataFrame, number: int) -> None:
            frame.write.parquet(str(at / "out" / f"{number}"))

        query = (
            summed(rows)
            .writeStream.outputMode(mode)
            .option("checkpointLocation", str(at / "checkpoint"))
            .trigger(availableNow=True)
            .foreachBatch(keep)
            .start()
        )
        query.awaitTermination()
        written = sorted((at / "out").iterdir())
        check(pa.concat_tables([pq.read_table(p) for p in written]))
        return [(p / "_SUCCESS").stat().st_mtime for p in written]


def _write(messages: pa.Array, batch: int, folder: Path) -> None:
    """The messages as columns, a file for each batch, in the order of their times."""
    folder.mkdir()
    parts = pc.split_pattern(messages.cast(pa.string()), ",")
    keys = pc.list_element(parts, 0)
    numbers = pc.list_element(parts, 1).cast(pa.int64())
    for place, start in enumerate(range(0, len(messages), batch)):
        table = pa.table({"key": keys[start : start + batch], "number": numbers[start:][:batch]})
        path = folder / f"{place:06d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (place, place))
