"""What Spark can write as a sink: each pattern lets a batch be there once."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bettong.engine.errors import FencedError
from bettong.engine.sinks.base import Noted, Row
from bettong.engine.sinks.database import Database
from bettong.engine.sinks.formats import FormatSink
from bettong.engine.sinks.jdbc import JdbcTable
from bettong.engine.sinks.patterns import BatchFolders, Pattern
from bettong.engine.spark.shipping import use_this_python
from bettong.lineage.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
QUIET = Noted("")
FIELDS = "word STRING, count BIGINT"


def derby(folder: Path) -> str:
    return f"jdbc:derby:{folder / 'db'};create=true"


def folders(spark: SparkSession, folder: Path) -> Pattern:
    return BatchFolders(folder / "out", "json")


def table(spark: SparkSession, folder: Path) -> Pattern:
    made = JdbcTable(derby(folder), "counts")
    with Database(spark, {"url": made.url, "dbtable": made.table}) as database:
        database.run(
            'CREATE TABLE counts (id VARCHAR(40), WORD VARCHAR(9), "count" BIGINT, batch BIGINT)'
        )
    return made


def read(spark: SparkSession, pattern: Pattern) -> list[tuple[Any, ...]]:
    """Batch, id and word of each row that is visible."""
    if isinstance(pattern, BatchFolders):
        schema = f"id STRING, {FIELDS}, batch BIGINT"
        found = spark.read.schema(schema).format(pattern.format).load(str(pattern.directory))
    else:
        assert isinstance(pattern, JdbcTable)
        found = spark.read.jdbc(pattern.url, pattern.table)
    return sorted((r.batch, r.id, r.word, r["count"]) for r in _lower(found).collect())


def _lower(frame: DataFrame) -> DataFrame:
    return frame.toDF(*map(str.lower, frame.columns))


def row(batch: int, n: int) -> Row:
    data = json.dumps({"word": f"w{n}", "count": batch}).encode()
    return Row(f"lines/{batch}.{n}", f"w{n}", data)


def work(sink: FormatSink, epoch: int, batch: int) -> None:
    """One batch with a losing attempt."""
    sink.prepare(epoch, batch, 0, 0, [row(batch, 9)], QUIET)
    sink.prepare(epoch, batch, 1, 0, [row(batch, 2)], QUIET)
    sink.prepare(epoch, batch, 0, 1, [row(batch, 0), row(batch, 1)], QUIET)
    sink.commit(epoch, batch, {0: 1, 1: 0}, QUIET)


def expected(batches: Iterable[int]) -> list[tuple[Any, ...]]:
    return [(b, f"lines/{b}.{n}", f"w{n}", b) for b in batches for n in range(3)]


Made = Callable[["SparkSession", Path], Pattern]
EACH = pytest.mark.parametrize("made", [folders, table])


@pytest.fixture(autouse=True)
def python_of_workers(spark: SparkSession) -> None:
    use_this_python(spark)


@EACH
def test_batches_are_there_once(spark: SparkSession, tmp_path: Path, made: Made) -> None:
    sink = FormatSink(made(spark, tmp_path), tmp_path / "staged", FIELDS)
    sink.expect_new("app")
    sink.open("app", 1, QUIET)
    for batch in range(2):
        work(sink, 1, batch)
        work(pickle.loads(pickle.dumps(sink)), 1, batch)
    sink.open("app", 2, QUIET)
    for batch in range(1, 3):
        work(sink, 2, batch)
    sink.commit(2, 3, {}, QUIET)
    assert read(spark, sink.pattern) == expected(range(3))
    assert list((tmp_path / "staged" / "_staged").iterdir()) == []
    with pytest.raises(FencedError):
        work(sink, 1, 3)
    with pytest.raises(UsageError, match="has batches of app, and this checkpoint is new"):
        sink.expect_new("app")
