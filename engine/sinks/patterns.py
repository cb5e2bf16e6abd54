"""Patterns by which Spark writes a batch so that its replay changes nothing; each is told the
batch's number, and what it promises holds for readers of its target."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from bettong.engine.storage.disk import OS_DISK, Disk
from bettong.lineage.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Promise = Literal["effectively-once", "at-least-once"]


class Pattern(Protocol):
    """How a batch is written. Objects are sent to workers, so they can be pickled."""

    @property
    def promises(self) -> Promise:
        """What it is worth to a reader of the target."""
        ...

    def has_batches(self, spark: SparkSession, application: str, after: int) -> bool:
        """Whether the target holds a batch of the application after this one; -1 for any."""
        ...

    def begin(self, spark: SparkSession, application: str) -> None:
        """Make what the pattern needs beside the target. Raises UsageError when the target is
        another application's and can be of one only."""
        ...

    def put(self, rows: DataFrame, application: str, batch: int) -> None:
        """Write a batch's rows, all of them or none; a batch that is there already changes
        nothing, also when another driver writes it at the same moment."""
        ...


FILES = frozenset({"avro", "csv", "json", "orc", "parquet", "text"})
"""Formats whose tables are folders of files and nothing else."""

_OTHERS = {
    "delta": "DeltaTable",
    "iceberg": "ReplacedBatches",
    "jdbc": "JdbcTable",
    "kafka": "KafkaSink",
}
_FOLDER = re.compile(r"batch=(\d+)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True)
class BatchFolders:
    """Each batch becomes a folder ``batch=N`` of files, put in place by one rename.

    A reader of the directory by Spark sees ``batch`` as a column.

    Attributes:
        directory: of this application's output alone, on a file system whose renames are atomic
            and that driver and workers share.
        format: one of :data:`FILES`.
        options: of Spark's writer.
        disk: where the directory is.

    Raises:
        UsageError: another format, or a directory of an object store.
    """

    promises: ClassVar[Promise] = "effectively-once"
    directory: Path
    format: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    disk: Disk = OS_DISK

    def __post_init__(self) -> None:
        if self.format not in FILES:
            instead = _OTHERS.get(self.format, "AppendedBatches, which is at-least-once")
            raise UsageError(
                f"format {self.format} is more than files, so that no rename makes a batch of it "
                f"visible: take {instead}"
            )
        if _SCHEME.match(str(self.directory)):
            raise UsageError(
                f"{self.directory}: a store of objects has no rename of folders in one step: take "
                "DeltaTable or ReplacedBatches there"
            )

    def has_batches(self, spark: SparkSession, application: str, after: int) -> bool:
        names = self.disk.names(self.directory) if self.directory.is_dir() else ()
        return any(int(m[1]) > after for m in map(_FOLDER.fullmatch, names) if m)

    def begin(self, spark: SparkSession, application: str) -> None:
        self.disk.make_directory(self.directory.absolute())

    def put(self, rows: DataFrame, application: str, batch: int) -> None:
        directory = self.directory.absolute()
        visible = directory / f"batch={batch}"
        if not visible.is_dir():
            aside = directory / f"_aside-{batch}-{uuid.uuid4().hex}"  # with a "=" Spark sees it
            writer = rows.write.format(self.format).options(**self.options)
            writer.save(f"file:{aside}")
            self._sync(aside)
            try:
                self.disk.rename(aside, visible)
            except OSError:
                if not visible.is_dir():  # else another driver was faster: it wrote the same
                    raise
        self.disk.sync_directory(directory)
        self._remove_aside(batch)

    def _sync(self, folder: Path) -> None:
        for name in self.disk.names(folder):
            file = self.disk.append_to(folder / name)
            try:
                file.sync()
            finally:
                file.close()
        self.disk.sync_directory(folder)

    def _remove_aside(self, batch: int) -> None:
        """Remove what drivers have left that died over a batch."""
        for left in self.directory.absolute().glob(f"_aside-{batch}-*"):
            shutil.rmtree(left, ignore_errors=True)


@dataclass(frozen=True)
class DeltaTable:
    """Appends to a Delta table, whose log holds beside the files which batch of which application
    they are: Delta does nothing when it has it already, and of two drivers at once it lets one
    through.

    Attributes:
        path: of the table; it is made when there is none.
        options: of Spark's writer.
    """

    promises: ClassVar[Promise] = "effectively-once"
    path: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def has_batches(self, spark: SparkSession, application: str, after: int) -> bool:
        jvm = spark._jvm  # Delta shows what its log knows of applications to the JVM alone
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(  # type: ignore[union-attr]
            spark._jsparkSession, self.path
        )
        snapshot = log.update(False, jvm.scala.Option.empty(), jvm.scala.Option.empty())  # type: ignore[union-attr]
        if snapshot.version() < 0:
            return False
        newest = snapshot.transactions()
        return bool(newest.contains(application) and newest.apply(application) > after)

    def begin(self, spark: SparkSession, application: str) -> None:
        """Nothing: the table is made by its first batch."""

    def put(self, rows: DataFrame, application: str, batch: int) -> None:
        own = {"txnAppId": application, "txnVersion": str(batch)}
        writer = _numbered(rows, batch).write.format("delta").mode("append")
        writer.options(**self.options, **own).save(self.path)


@dataclass(frozen=True)
class ReplacedBatches:
    """Each batch replaces the rows of its own number in a table, in one step of the table's:
    a replay puts the same rows in their place. For Iceberg, and any other table with a log of its
    own that overwrites by a condition.

    Attributes:
        table: its name. It is there, has the sink's columns and ``batch BIGINT``, and is of this
            application's output alone; property ``bettong.application`` of it says so.
    """

    promises: ClassVar[Promise] = "effectively-once"
    table: str

    def has_batches(self, spark: SparkSession, application: str, after: int) -> bool:
        return not spark.table(self.table).where(f"batch > {after}").limit(1).isEmpty()

    def begin(self, spark: SparkSession, application: str) -> None:
        found = {r.key: r.value for r in spark.sql(f"SHOW TBLPROPERTIES {self.table}").collect()}
        owner = found.get("bettong.application")
        if owner not in (None, application):
            raise UsageError(f"table {self.table} holds the output of {owner}: take another")
        if owner is None:
            name = application.replace("'", "''")
            spark.sql(
                f"ALTER TABLE {self.table} SET TBLPROPERTIES ('bettong.application'='{name}')"
            )

    def put(self, rows: DataFrame, application: str, batch: int) -> None:
        from pyspark.sql import functions as f

        writer = _numbered(rows, batch).writeTo(self.table)
        writer.overwrite(f.col("batch") == f.lit(batch).cast("long"))


@dataclass(frozen=True)
class AppendedBatches:
    """Appends with whatever format: a batch that is replayed, or a task that is tried again, is
    there again. The columns ``id`` and ``batch`` are the same each time, so that readers can drop
    what they have seen.

    Attributes:
        format: as Spark knows it.
        options: of Spark's writer.
    """

    promises: ClassVar[Promise] = "at-least-once"
    format: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def has_batches(self, spark: SparkSession, application: str, after: int) -> bool:
        return False  # nothing is taken for having been made already

    def begin(self, spark: SparkSession, application: str) -> None:
        """Nothing is needed."""

    def put(self, rows: DataFrame, application: str, batch: int) -> None:
        writer = _numbered(rows, batch).write.format(self.format).mode("append")
        writer.options(**self.options).save()


def _numbered(rows: DataFrame, batch: int) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.withColumn("batch", f.lit(batch).cast("long"))
