"""Deduplication: by Spark's state, by a table's key, by a memory that dies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bettong.harness import Bag, Files, OnePerKey
from bettong.scenarios.jobs.outputs import ToAppendedFile, ToParquet, ToSqlite, started

if TYPE_CHECKING:
    import sqlite3

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def _orders() -> list[dict[str, Any]]:
    """Twenty orders, every second one sent twice, the second time in the next step."""
    sent = []
    for number in range(16):
        at = f"2024-01-01T00:{number // 6:02d}:{number % 6 * 10:02d}Z"
        sent.append({"id": f"o{number}", "amount": number, "at": at})
        if number >= 4 and number % 2 == 0:
            again = number - 4
            sent.append({"id": f"o{again}", "amount": again, "at": at})
    return sent


_INPUTS = {
    "orders": Files("json", _orders(), schema="id STRING, amount INT, at TIMESTAMP", per_step=6)
}


class Distinct(ToParquet):
    """dropDuplicatesWithinWatermark, into Spark's file sink."""

    inputs = _INPUTS
    oracle, compare = OnePerKey("id"), Bag("id", "amount")

    def transform(self, env: Any) -> DataFrame:
        orders = env.input("orders").withWatermark("at", "10 minutes")
        rows: DataFrame = orders.dropDuplicatesWithinWatermark(["id"]).select("id", "amount")
        return rows


class DistinctAppended(ToAppendedFile):
    """The same state, its rows appended to a file: state forgets nothing, the file gets a
    replayed batch twice."""

    inputs = _INPUTS
    oracle, compare = OnePerKey("id"), Bag("id", "amount")
    transform = Distinct.transform


class Merged(ToSqlite):
    """Deduplicated in the batch, then merged by key: rows that are there stay."""

    inputs = _INPUTS
    oracle, compare = OnePerKey("id"), Bag("id", "amount")
    tables = ("CREATE TABLE orders (id TEXT PRIMARY KEY, amount INTEGER)",)
    select = "SELECT id, amount FROM orders"

    def transform(self, env: Any) -> DataFrame:
        rows: DataFrame = env.input("orders").select("id", "amount")
        return rows

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        db.executemany("INSERT OR IGNORE INTO orders VALUES (?, ?)", rows)


class Remembered(ToAppendedFile):
    """Ids that were seen are kept in the driver's memory: a new driver knows none of them."""

    inputs = _INPUTS
    oracle, compare = OnePerKey("id"), Bag("id", "amount")
    transform = Merged.transform

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        seen: set[str] = set()
        path = env.workdir / "out.jsonl"

        def append(batch: DataFrame, batch_id: int) -> None:
            with path.open("a") as out:
                for row in batch.collect():
                    if row.id not in seen:
                        seen.add(row.id)
                        out.write(f'{{"id": "{row.id}", "amount": {row.amount}}}\n')

        return started(df, env, append)
