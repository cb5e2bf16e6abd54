"""Streaming queries of real Spark land their micro-batches, and applications read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from folder_sink import FolderSink
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from bettong.engine import interpret
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.sources.landed import LandedFolder, LandedSource
from bettong.engine.sources.landing import Landing
from bettong.engine.spark.runner import run
from bettong.lineage.errors import UsageError
from bettong.scenarios.applications import word_count

pytestmark = pytest.mark.spark

LINES = [f"They know they found it, number {n} {n % 7}." for n in range(60)]


def files(folder: Path, numbers: range) -> None:
    """Each a micro-batch of ten lines."""
    folder.mkdir(exist_ok=True)
    for n in numbers:
        (folder / f"{n}.txt").write_text("\n".join(LINES[10 * n : 10 * n + 10]) + "\n")


def land(
    spark: SparkSession, folder: Path, each: Callable[[DataFrame, int], None], column: str = "value"
) -> None:
    """Land what is there now."""
    frame = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "in"))
    writer = frame.selectExpr(column).repartition(3).writeStream.foreachBatch(each)
    writer = writer.option("checkpointLocation", str(folder / "landing")).trigger(availableNow=True)
    writer.start().awaitTermination()


def reading(landing: Landing, out: FolderSink, folder: Path) -> RunConfig:
    """A run that counts the words of what was landed."""
    sources = {"lines": LandedSource(landing.folder)}
    return RunConfig(
        folder / "checkpoint", sources, {"totals": out}, batch_messages=13, state_partitions=2
    )


def test_each_row_is_a_message_once_whatever_fails(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landed")
    done: list[int] = []

    def fails_when_landed(batch: DataFrame, number: int) -> None:
        landing(batch, number)
        if number not in done:
            done.append(number)
            raise OSError("the driver's machine is gone")

    files(tmp_path / "in", range(4))
    for _ in range(4):
        with pytest.raises(StreamingQueryException, match="machine is gone"):
            land(spark, tmp_path, fails_when_landed)
    land(spark, tmp_path, fails_when_landed)
    assert LandedFolder(landing.folder).extent() == (40, False, 0)

    messages = LandedFolder(landing.folder).read(0, 40).to_pylist()
    assert sorted(messages) == sorted(line.encode() for line in LINES[:40])
    files(tmp_path / "in", range(4, 6))
    land(spark, tmp_path, landing)
    messages += LandedFolder(landing.folder).read(40, 60).to_pylist()
    assert sorted(messages) == sorted(line.encode() for line in LINES)
    landing.end()
    out = FolderSink(tmp_path / "out")
    config = reading(landing, out, tmp_path)
    assert run(word_count.app, spark, config).await_drained() == 5
    outputs = interpret(word_count.app, {"lines": messages}).outputs
    assert sorted(out.rows()) == sorted([(o.id, o.key, o.data.decode()) for o in outputs])
    assert len(list(landing.folder.iterdir())) == 1


def test_a_query_goes_on_where_it_was_and_another_one_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    landing = Landing(tmp_path / "landed")
    files(tmp_path / "in", range(2))
    land(spark, tmp_path, landing)
    (tmp_path / "landing").rename(tmp_path / "elsewhere")
    with pytest.raises(StreamingQueryException, match="a folder of its own"):
        land(spark, tmp_path, landing)
    assert LandedFolder(landing.folder).extent() == (20, False, 0)


def test_what_is_no_message_is_said(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landed")
    files(tmp_path / "in", range(1))
    with pytest.raises(StreamingQueryException, match="this one has n bigint: select one"):
        land(spark, tmp_path, landing, "CAST(length(value) AS BIGINT) AS n")
    with pytest.raises(StreamingQueryException, match="10 rows of micro-batch 0 have no value"):
        land(spark, tmp_path, landing, "nullif(value, value) AS message")
    with pytest.raises(UsageError, match=r"give it to writeStream\.foreachBatch"):
        landing(spark.createDataFrame([("a",)], "message STRING"), 0)
    assert not landing.folder.exists()


def test_bytes_and_any_source_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landed")
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    frame = rows.selectExpr("encode(concat('a\\n', value), 'UTF-8') AS message")
    third = Event()

    def each(batch: DataFrame, number: int) -> None:
        landing(batch, number)
        if number == 2:
            third.set()

    writer = frame.writeStream.foreachBatch(each)
    query = writer.option("checkpointLocation", str(tmp_path / "landing")).start()
    assert third.wait(60)
    query.stop()
    landing.end()
    extent = LandedFolder(landing.folder).extent()
    assert extent.ended
    assert extent.end >= 15
    messages = LandedFolder(landing.folder).read(0, extent.end).to_pylist()
    assert sorted(messages) == sorted(b"a\n%d" % n for n in range(extent.end))
    out = FolderSink(tmp_path / "out")
    run_in_process(word_count.app, reading(landing, out, tmp_path))
    assert {key for _, key, _ in out.rows()} >= {"a"}
