"""What Spark can write as a sink: each pattern lets a batch be there once."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bettong.engine import interpret
from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.config import RunConfig
from bettong.engine.errors import AheadError, FencedError
from bettong.engine.in_process import run_in_process
from bettong.engine.sinks.base import Noted, Row
from bettong.engine.sinks.database import Database
from bettong.engine.sinks.formats import FormatSink
from bettong.engine.sinks.jdbc import JdbcTable
from bettong.engine.sinks.patterns import AppendedBatches, BatchFolders, Pattern
from bettong.engine.sources.base import FileSource
from bettong.engine.sources.generator import GeneratorSource
from bettong.engine.spark.runner import QueryError, run
from bettong.engine.spark.shipping import use_this_python
from bettong.engine.state.manifest import Manifest
from bettong.engine.storage.disk import OsDisk
from bettong.lineage.errors import BettongError, UsageError
from bettong.scenarios.applications import running_sum

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
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
    sink.open("app", 1, QUIET, -1)
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
    for newest, why in ((-1, "it has batches of an earlier run"), (1, "it has batches after 1")):
        with pytest.raises(AheadError, match=why):
            sink.open("app", 3, QUIET, newest)
    sink.open("app", 3, QUIET, 2)


def test_outputs_are_bytes_without_fields(spark: SparkSession, tmp_path: Path) -> None:
    sink = FormatSink(BatchFolders(tmp_path / "out"), tmp_path / "staged")
    sink.open("app", 1, QUIET)
    sink.prepare(1, 0, 0, 0, [Row("a/0", None, b"\xff"), Row("a/1", 7, b"text")], QUIET)
    sink.commit(1, 0, {0: 0}, QUIET)
    found = spark.read.parquet(str(tmp_path / "out")).sort("id").collect()
    assert [tuple(r) for r in found] == [
        ("a/0", None, bytearray(b"\xff"), 0),
        ("a/1", "7", bytearray(b"text"), 0),
    ]


def test_an_output_without_the_fields_ends_the_run(spark: SparkSession, tmp_path: Path) -> None:
    sink = FormatSink(BatchFolders(tmp_path / "out"), tmp_path / "staged", FIELDS)
    sink.open("app", 1, QUIET)
    sink.prepare(1, 0, 0, 0, [Row("a/0", None, b"no JSON")], QUIET)
    with pytest.raises(Exception, match="MALFORMED_RECORD"):
        sink.commit(1, 0, {0: 0}, QUIET)
    assert not sink.pattern.has_batches(spark, "app", -1)


def test_any_other_format_is_appended_to(spark: SparkSession, tmp_path: Path) -> None:
    pattern = AppendedBatches("csv", {"path": str(tmp_path / "out")})
    sink = FormatSink(pattern, tmp_path / "staged", FIELDS)
    sink.open("app", 1, QUIET, -1)
    work(sink, 1, 0)
    work(sink, 1, 0)
    found = spark.read.csv(str(tmp_path / "out")).collect()
    assert sorted(tuple(r) for r in found) == sorted(
        (f"lines/0.{n}", f"w{n}", "0", "0") for n in range(3) for _ in range(2)
    )
    assert sink.promises == "at-least-once"


def test_a_driver_that_dies_before_the_rename_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FormatSink(folders(spark, tmp_path), tmp_path / "staged", FIELDS)
    sink.open("app", 1, QUIET)

    with monkeypatch.context() as patch:
        patch.setattr(OsDisk, "rename", lambda disk, source, target: _or_die(source, target))
        with pytest.raises(KeyboardInterrupt):
            work(sink, 1, 0)
    assert read(spark, sink.pattern) == []
    sink.open("app", 2, QUIET)
    work(sink, 2, 0)
    assert read(spark, sink.pattern) == expected([0])
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["batch=0"]


def _or_die(source: Path, target: Path) -> None:
    if target.name.startswith("batch="):
        raise KeyboardInterrupt
    source.replace(target)


def test_a_task_that_was_tried_again_and_a_driver_that_died_leave_their_rows_aside(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = table(spark, tmp_path)
    assert isinstance(pattern, JdbcTable)
    sink = FormatSink(pattern, tmp_path / "staged", FIELDS)
    sink.open("app", 1, QUIET)
    write = JdbcTable._write

    def twice(self: JdbcTable, rows: DataFrame, aside: str, types: dict[str, str]) -> None:
        write(self, rows, aside, types)
        again = rows.withColumn("bettong_attempt", rows.bettong_attempt + 1000)
        own = {"url": self.url, "dbtable": aside}
        again.write.format("jdbc").mode("append").options(**own).save()

    def die(self: JdbcTable, *given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(JdbcTable, "_copy", die)
        patch.setattr(Database, "run", lambda self, *given: None)
        with pytest.raises(KeyboardInterrupt):
            work(sink, 1, 0)
    with Database(spark, {"url": pattern.url, "dbtable": pattern.table}) as database:
        assert len(database.tables("counts")) == 3, "what was written aside is left"
        sink.open("app", 2, QUIET)
        assert sorted(database.tables("counts")) == ["COUNTS", "COUNTS_BATCHES"]
    monkeypatch.setattr(JdbcTable, "_write", twice)
    work(sink, 2, 0)
    assert read(spark, pattern) == expected([0])


def test_of_two_drivers_at_once_one_gets_its_batch_into_the_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = table(spark, tmp_path)
    sink = FormatSink(pattern, tmp_path / "staged", FIELDS)
    sink.open("app", 1, QUIET)
    copy = JdbcTable._copy

    def after_another(self: JdbcTable, *given: Any) -> None:
        copy(self, *given)
        copy(self, *given)

    monkeypatch.setattr(JdbcTable, "_copy", after_another)
    work(sink, 1, 0)
    assert read(spark, pattern) == expected([0])


def test_what_cannot_be_made_effectively_once_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"format delta is more than files.* take DeltaTable"):
        BatchFolders(tmp_path, "delta")
    with pytest.raises(UsageError, match="take AppendedBatches, which is at-least-once"):
        BatchFolders(tmp_path, "mongodb")
    with pytest.raises(UsageError, match="no rename of folders in one step"):
        BatchFolders(Path("s3a://bucket/out"))
    with pytest.raises(UsageError, match="isolationLevel NONE"):
        JdbcTable("jdbc:derby:x", "t", {"isolationLevel": "NONE"})
    with pytest.raises(UsageError, match="is no name of a table"):
        JdbcTable("jdbc:derby:x", "t; DROP TABLE t")
    absent = FormatSink(JdbcTable(derby(tmp_path), "nowhere"), tmp_path / "staged")
    with pytest.raises(UsageError, match="has no table nowhere: make it"):
        absent.open("app", 1, QUIET)


def test_a_table_lacks_a_column(spark: SparkSession, tmp_path: Path) -> None:
    sink = FormatSink(table(spark, tmp_path), tmp_path / "staged", f"{FIELDS}, size INT")
    sink.open("app", 1, QUIET)
    with pytest.raises(UsageError, match="table counts has no column size"):
        work(sink, 1, 0)


def test_no_message_tells_a_password() -> None:
    """Messages name the pattern, whose options and address may hold one."""
    url = "jdbc:postgresql://127.0.0.1/shop?user=me&password=hidden"
    pattern = JdbcTable(url, "counts", {"password": "hidden"})
    assert "counts" in f"{pattern}" and "hidden" not in f"{pattern}"
    assert "hidden" not in f"{AppendedBatches('jdbc', {'password': 'hidden'})}"


def test_without_spark_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    def none() -> None:
        raise PySparkRuntimeError(errorClass="NO_ACTIVE_OR_DEFAULT_SESSION", messageParameters={})

    monkeypatch.setattr(SparkSession, "active", none)
    sinks = {"sums": FormatSink(BatchFolders(tmp_path / "out"), tmp_path / "staged")}
    config = RunConfig(tmp_path / "c", {"amounts": GeneratorSource(bytes, 0)}, sinks)
    with pytest.raises(UsageError, match="this process has no Spark session"):
        run_in_process(running_sum.app, config)


class Fails(BatchProtocol):
    """The driver fails before or after a commit."""

    def commit(self, job: Job, manifest: Manifest) -> None:
        before_or_after = dict(self.settings.options).get(job.batch)
        if before_or_after == "before":
            raise BettongError("before the commit")
        super().commit(job, manifest)
        if before_or_after == "after":
            raise BettongError("after the commit")


def test_an_application_writes_each_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    lines = running_sum.messages(30, keys=4)["amounts"]
    (tmp_path / "amounts").write_bytes(b"".join(line + b"\n" for line in lines))
    sink = FormatSink(BatchFolders(tmp_path / "out"), tmp_path / "staged")

    def start(options: dict[int, str], checkpoint: str = "checkpoint") -> None:
        sources = {"amounts": FileSource(tmp_path / "amounts")}
        folder = tmp_path / checkpoint
        batches = {"batch_messages": 10, "batch_class": Fails, "options": options}
        config = RunConfig(folder, sources, {"sums": sink}, **batches)  # type: ignore[arg-type]
        run(running_sum.app, spark, config).await_drained()

    for options in ({0: "before"}, {1: "after"}):
        with pytest.raises(QueryError, match="the commit"):
            start(options)
    start({})
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    outputs = interpret(running_sum.app, {"amounts": lines}).outputs
    assert sorted((r.id, bytes(r.data)) for r in found) == sorted((o.id, o.data) for o in outputs)
    for _ in range(2):
        with pytest.raises(UsageError, match="has batches of an earlier run"):
            start({}, "another")
