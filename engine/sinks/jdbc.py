"""A table of any database that Spark writes to by JDBC, a batch in one transaction.

Spark's tasks insert the rows into a table made for this once, each task in a transaction of its
own. Then the driver copies them into the target and notes the batch, in one transaction: the key of
the notes lets a batch be there once. A task that was tried again may have left its rows twice; they
carry the attempt, and one attempt of each task is copied.
"""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from bettong.engine.sinks.database import Database
from bettong.engine.sinks.patterns import Promise
from bettong.lineage.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_NAME = re.compile(r"(?:[A-Za-z_]\w*\.)?[A-Za-z_]\w*")
_PART, _ATTEMPT = "bettong_part", "bettong_attempt"


@dataclass(frozen=True)
class JdbcTable:
    """Rows of a table, with the number of their batch; which batches are there is in the table
    ``<table>_batches``, which is made when there is none.

    Attributes:
        url: of the database, ``jdbc:…``.
        table: its name. It is there, with the sink's columns and ``batch`` of 64 bits; several
            applications may write to it.
        options: of Spark's JDBC writer, such as ``user``, ``password`` and ``driver``.

    Raises:
        UsageError: that is no name, or rows are to be written without transactions.
    """

    promises: ClassVar[Promise] = "effectively-once"
    url: str = field(repr=False)  # it, like options, may hold a password
    table: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.table):
            raise UsageError(f"{self.table!r} is no name of a table: letters, digits, _ and one .")
        if any(k.lower() == "isolationlevel" and v == "NONE" for k, v in self.options.items()):
            raise UsageError(
                f"table {self.table}: with isolationLevel NONE a task that dies leaves a part of "
                "its rows: leave it out"
            )

    def has_batches(self, spark: SparkSession, application: str, after: int) -> bool:
        with self._open(spark) as database:
            asked = f"SELECT 1 FROM {self._notes} WHERE application = ? AND batch > ?"  # noqa: S608
            return database.has(self._notes) and database.finds(asked, application, after)

    def begin(self, spark: SparkSession, application: str) -> None:
        """Raises UsageError when there is no such table, or the database has no transactions."""
        with self._open(spark) as database:
            if not database.has_transactions:
                raise UsageError(f"{self} is in a database without transactions: take another one")
            if not database.has(self.table):
                raise UsageError(
                    f"the database has no table {self.table}: make it, with the sink's columns and "
                    "batch of 64 bits"
                )
            if not database.has(self._notes):
                database.run(
                    f"CREATE TABLE {self._notes} (application VARCHAR(200) NOT NULL, "
                    "batch BIGINT NOT NULL, PRIMARY KEY (application, batch))"
                )
            for left in database.tables(self._aside(application)):
                database.run(f"DROP TABLE {left}")

    def put(self, rows: DataFrame, application: str, batch: int) -> None:
        with self._open(rows.sparkSession) as database:
            if self._has(database, application, batch):
                return
            aside = f"{self._aside(application)}{uuid.uuid4().hex[:12]}"
            types = {n: kind for n in rows.columns if (kind := database.column(n).text_type)}
            try:
                self._write(_with_attempts(rows), aside, types)
                self._copy(database, aside, rows.columns, application, batch)
            finally:
                with suppress(Exception):  # the next start removes what is left
                    database.run(f"DROP TABLE {aside}")

    def _write(self, rows: DataFrame, aside: str, types: Mapping[str, str]) -> None:
        of_text = ", ".join(f"{name} {kind}" for name, kind in types.items())
        own = {"url": self.url, "dbtable": aside}
        if of_text:
            own["createTableColumnTypes"] = of_text
        rows.write.format("jdbc").mode("error").options(**self.options, **own).save()

    def _copy(
        self, database: Database, aside: str, names: list[str], application: str, batch: int
    ) -> None:
        quoted = database.quoted
        into = ", ".join(quoted(database.column(name).name) for name in (*names, "batch"))
        found = ", ".join(f"s.{quoted(name)}" for name in names)
        part, attempt = quoted(_PART), quoted(_ATTEMPT)
        note = f"INSERT INTO {self._notes} VALUES (?, ?)"  # noqa: S608
        one_attempt = f"SELECT {part} AS p, MIN({attempt}) AS a FROM {aside} GROUP BY {part}"  # noqa: S608
        copy = (
            f"INSERT INTO {self.table} ({into}) SELECT {found}, {batch} FROM {aside} s "  # noqa: S608
            f"JOIN ({one_attempt}) m ON s.{part} = m.p AND s.{attempt} = m.a"
        )
        try:
            with database.transaction():
                database.run(note, application, batch)
                database.run(copy)
        except Exception:
            if not self._has(database, application, batch):
                raise  # else another driver was faster: it wrote the same

    def _has(self, database: Database, application: str, batch: int) -> bool:
        asked = f"SELECT 1 FROM {self._notes} WHERE application = ? AND batch = ?"  # noqa: S608
        return database.finds(asked, application, batch)

    def _open(self, spark: SparkSession) -> Database:
        return Database(spark, {**self.options, "url": self.url, "dbtable": self.table})

    @property
    def _notes(self) -> str:
        return f"{self.table}_batches"

    def _aside(self, application: str) -> str:
        """How the tables that an application's rows are first written to begin."""
        return f"{self.table}_{zlib.crc32(application.encode()):08x}_"


def _with_attempts(rows: DataFrame) -> DataFrame:
    """The rows with the task and the attempt that they come from."""
    from pyspark.sql.types import LongType, StructType

    schema = StructType([*rows.schema.fields]).add(_PART, LongType()).add(_ATTEMPT, LongType())
    return rows.mapInArrow(_add_attempt, schema)


def _add_attempt(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task is not None
    for batch in batches:
        for name, value in ((_PART, task.partitionId()), (_ATTEMPT, task.taskAttemptId())):
            column = pa.array([value] * len(batch), pa.int64())
            batch = batch.append_column(name, column)
        yield batch
