"""Aggregations: windows that close, totals that are updated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bettong.harness import Bag, Files, Job, Rows, Table
from bettong.scenarios.jobs.outputs import ToAppendedFile, ToParquet, ToSqlite

if TYPE_CHECKING:
    import sqlite3

    from pyspark.sql import DataFrame

CLICKS = "user STRING, at TIMESTAMP"
FAR = "2030-01-01T00:00:00Z"


def counted(clicks: DataFrame) -> DataFrame:
    """Clicks by user and window."""
    from pyspark.sql.functions import count, window

    groups = clicks.withWatermark("at", "10 seconds").groupBy("user", window("at", "30 seconds"))
    return groups.agg(count("*").alias("n"))


class _Counts(Job):
    inputs = {"clicks": Files("json", CLICKS, closing=FAR)}  # noqa: RUF012
    oracle, compare = "batch", Bag("user", "window", "n")

    def transform(self, env: Any) -> DataFrame:
        return counted(env.input("clicks"))


class Counts(_Counts, ToParquet):
    """Clicks counted by user and window, append mode, into Spark's file sink."""


class CountsAppended(_Counts, ToAppendedFile):
    """The same, appended to a file in foreachBatch: closed windows are there twice."""

    compare = Bag("user", "n")

    def transform(self, env: Any) -> DataFrame:
        return super().transform(env).select("user", "n")


class _Totals(ToSqlite):
    inputs = {"sales": Rows("id STRING, product STRING, amount INT")}  # noqa: RUF012
    oracle, compare = "batch", Table(key="product")
    tables: tuple[str, ...] = ("CREATE TABLE totals (product TEXT PRIMARY KEY, total INTEGER)",)
    select = "SELECT product, total FROM totals"
    mode = "update"

    def transform(self, env: Any) -> DataFrame:
        from pyspark.sql.functions import col, sum

        sales: DataFrame = env.input("sales")
        return sales.groupBy("product").agg(sum(col("amount")).cast("int").alias("total"))


class Totals(_Totals):
    """Totals by product in update mode; each update replaces the row of its key, unless that is of
    a later batch."""

    tables = ("CREATE TABLE totals (product TEXT PRIMARY KEY, total INTEGER, batch INTEGER)",)

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        db.executemany(
            "INSERT INTO totals VALUES (?, ?, ?) ON CONFLICT (product) DO UPDATE SET "
            "total = excluded.total, batch = excluded.batch WHERE excluded.batch >= batch",
            [(*row, batch_id) for row in rows],
        )


class TotalsOfWhoeverWritesLast(_Totals):
    """Each update replaces the row of its key: a driver that was replaced, and goes on, puts back
    the totals of its own batch."""

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        db.executemany("INSERT OR REPLACE INTO totals VALUES (?, ?)", rows)


class TotalsAdded(_Totals):
    """The batch's own sums added to what is there: a replayed batch is added twice."""

    mode = "append"

    def transform(self, env: Any) -> DataFrame:
        rows: DataFrame = env.input("sales").select("product", "amount")
        if not env.static:
            return rows
        return super().transform(env)

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        db.executemany(
            "INSERT INTO totals VALUES (?, ?) "
            "ON CONFLICT (product) DO UPDATE SET total = total + excluded.total",
            rows,
        )


class Overwritten(_Totals):
    """Complete mode: the table is replaced as a whole, unless it is of a later batch."""

    mode = "complete"
    tables = (*_Totals.tables, "CREATE TABLE batches (id INTEGER PRIMARY KEY)")

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        db.execute("BEGIN IMMEDIATE")  # nobody else writes from before the look until after it
        if not db.execute("SELECT 1 FROM batches WHERE id > ?", (batch_id,)).fetchone():
            db.execute("INSERT OR IGNORE INTO batches VALUES (?)", (batch_id,))
            db.execute("DELETE FROM totals")
            db.executemany("INSERT INTO totals VALUES (?, ?)", rows)


class OverwrittenInTwo(Overwritten):
    """Emptied in one transaction, filled in another, by batches that a marker lets in once: a
    crash between leaves the table of the batch before, or none."""

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if db.execute("SELECT 1 FROM batches WHERE id = ?", (batch_id,)).fetchone():
            return
        db.execute("DELETE FROM totals")
        db.execute("INSERT INTO batches VALUES (?)", (batch_id,))
        db.commit()
        db.executemany("INSERT INTO totals VALUES (?, ?)", rows)
