"""Jobs without state: rows in, rows out."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bettong.harness import Bag, Files, Job, Rows
from bettong.scenarios.jobs.outputs import (
    ToAppendedFile,
    ToParquet,
    ToSqlite,
    connected,
    started,
)

if TYPE_CHECKING:
    import sqlite3

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

ORDERS = "id STRING, product STRING, amount INT"


class _Cleaned(Job):
    inputs = {"orders": Files("json", ORDERS)}  # noqa: RUF012
    oracle, compare = "batch", Bag("id", "amount")

    def transform(self, env: Any) -> DataFrame:
        rows: DataFrame = env.input("orders").where("amount >= 10").select("id", "amount")
        return rows


class Cleaned(_Cleaned, ToParquet):
    """Files, filtered, into Spark's file sink."""


class CleanedAppended(_Cleaned, ToAppendedFile):
    """The same, appended to a file: a replayed batch is there twice."""


class Upserted(_Cleaned, ToSqlite):
    """The same, upserted by id."""

    tables = ("CREATE TABLE orders (id TEXT PRIMARY KEY, amount INTEGER)",)
    select = "SELECT id, amount FROM orders"

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        db.executemany("INSERT OR REPLACE INTO orders VALUES (?, ?)", rows)


class KeyedByPlace(_Cleaned, ToSqlite):
    """Under the batch and a row's place in it, which is another one where a replay reads the
    batch's file in other parts."""

    tables = ("CREATE TABLE orders (place TEXT PRIMARY KEY, id TEXT, amount INTEGER)",)
    select = "SELECT id, amount FROM orders"

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        from pyspark.sql.functions import monotonically_increasing_id

        def each(batch: DataFrame, batch_id: int) -> None:
            rows = batch.select(monotonically_increasing_id(), "id", "amount").collect()
            placed = [(f"{batch_id}:{place}", id, amount) for place, id, amount in rows]
            with connected(env) as db:
                db.executemany("INSERT OR REPLACE INTO orders VALUES (?, ?, ?)", placed)

        return started(df, env, each)


class KeyedByChance(_Cleaned, ToSqlite):
    """Under a key that is drawn when the batch is written: a replay draws other ones."""

    tables = ("CREATE TABLE orders (key TEXT PRIMARY KEY, id TEXT, amount INTEGER)",)
    select = "SELECT id, amount FROM orders"

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        def each(batch: DataFrame, batch_id: int) -> None:
            rows = [tuple(row) for row in batch.selectExpr("uuid()", "id", "amount").collect()]
            with connected(env) as db:
                db.executemany("INSERT OR REPLACE INTO orders VALUES (?, ?, ?)", rows)

        return started(df, env, each)


class NumberedByBatch(_Cleaned):
    """Into a file a batch, with the batch's number."""

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        number = self.numbering()

        def each(batch: DataFrame, batch_id: int) -> None:
            lines = "".join(f"{text}\n" for text in batch.toJSON().collect())
            (env.workdir / f"{number(batch_id):05d}.jsonl").write_text(lines)

        return started(df, env, each)

    def read(self, env: Any) -> list[Any]:
        files = sorted(env.workdir.glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def numbering(self) -> Callable[[int], int]:
        """The number of a batch's file."""
        return lambda batch_id: batch_id


class NumberedByDriver(NumberedByBatch):
    """The same, with a number that the driver counts: a new driver begins with the first one again
    and writes over what is there."""

    def numbering(self) -> Callable[[int], int]:
        numbers = itertools.count()
        return lambda batch_id: next(numbers)


class SkippedByMarker(_Cleaned, ToSqlite):
    """A marker of the batch in a transaction of its own, then the rows: a crash between the two
    loses them."""

    tables = (
        "CREATE TABLE orders (id TEXT, amount INTEGER)",
        "CREATE TABLE batches (id INTEGER PRIMARY KEY)",
    )
    select = "SELECT id, amount FROM orders"

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if not db.execute("SELECT 1 FROM batches WHERE id = ?", (batch_id,)).fetchone():
            db.execute("INSERT INTO batches VALUES (?)", (batch_id,))
            db.commit()
            db.executemany("INSERT INTO orders VALUES (?, ?)", rows)


class TwoSinks(_Cleaned, ToSqlite):
    """Two tables in one foreachBatch: both with the batch's id, in one transaction."""

    inputs = {"orders": Rows(ORDERS)}  # noqa: RUF012
    compare = Bag("id", "amount", "copy")
    tables = (
        "CREATE TABLE orders (id TEXT, amount INTEGER, batch INTEGER)",
        "CREATE TABLE audit (id TEXT, amount INTEGER, batch INTEGER)",
    )
    select = (
        "SELECT id, amount, 'orders' AS copy FROM orders "
        "UNION ALL SELECT id, amount, 'audit' FROM audit"
    )

    def transform(self, env: Any) -> DataFrame:
        from pyspark.sql.functions import array, explode, lit

        rows = super().transform(env)
        if not env.static:
            return rows
        return rows.withColumn("copy", explode(array(lit("orders"), lit("audit"))))

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        for table in ("orders", "audit"):
            db.execute(f"DELETE FROM {table} WHERE batch = ?", (batch_id,))  # noqa: S608
            self.insert(db, table, batch_id, rows)

    def insert(
        self, db: sqlite3.Connection, table: str, batch_id: int, rows: list[tuple[Any, ...]]
    ) -> None:
        """Write the batch's rows to a table."""
        numbered = [(*row, batch_id) for row in rows]
        db.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", numbered)  # noqa: S608


class TwoSinksOneMarked(TwoSinks):
    """The second table does not know what batches it has: a replay writes its rows again."""

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        db.execute("DELETE FROM orders WHERE batch = ?", (batch_id,))
        self.insert(db, "orders", batch_id, rows)
        self.insert(db, "audit", batch_id, rows)
