"""Jobs in which real bugs and traps of Spark live, for check-job to find without a hint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from bettong.harness import Bag, Files, Job, OnePerKey, OuterBag
from bettong.scenarios.jobs.outputs import ToParquet, ToSqlite, started

if TYPE_CHECKING:
    import sqlite3

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_FAR = "2030-01-01T00:00:00Z"


def _at(second: int) -> str:
    return f"2024-01-01T00:{second // 60:02d}:{second % 60:02d}Z"


class PartitionAndEpoch(Job):
    """A ``foreach`` writer that takes (partition, epoch) for the name of what it has written, as
    Spark's guide once said: a replay is partitioned otherwise."""

    inputs = {"orders": Files("json", "id STRING, amount INT, note STRING", per_step=20)}  # noqa: RUF012
    oracle, compare = "batch", Bag("id")

    def transform(self, env: Any) -> DataFrame:
        rows: DataFrame = env.input("orders").select("id")
        return rows

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        writer = df.writeStream.foreach(_Once(env.workdir))
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Any) -> list[dict[str, Any]]:
        files = sorted(env.workdir.glob("*.txt"))
        return [{"id": line} for file in files for line in file.read_text().splitlines()]


class _Once:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, partition_id: int, epoch_id: int) -> bool:
        self._file = self._folder / f"{epoch_id}-{partition_id}.txt"
        self._lines: list[str] = []
        return not self._file.exists()

    def process(self, row: Any) -> None:
        self._lines.append(row.id)

    def close(self, error: Exception | None) -> None:
        if error is None and not self._file.exists():
            aside = self._file.with_suffix(".new")
            aside.write_text("".join(f"{line}\n" for line in self._lines))
            aside.rename(self._file)


class TwoActions(ToSqlite):
    """Two actions in foreachBatch compute the batch twice: what is not deterministic differs in
    the two tables."""

    inputs = {"orders": Files("json", "order_id STRING, amount INT")}  # noqa: RUF012
    compare = Bag("order_id", "agree")
    tables = (
        "CREATE TABLE invoices (order_id TEXT PRIMARY KEY, number TEXT)",
        "CREATE TABLE ledger (order_id TEXT PRIMARY KEY, number TEXT)",
    )
    select = (
        "SELECT order_id, invoices.number = ledger.number AS agree "
        "FROM invoices JOIN ledger USING (order_id)"
    )

    @staticmethod
    def oracle(inputs: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Both tables have the same number for an order."""
        return [{"order_id": row["order_id"], "agree": 1} for row in inputs["orders"]]

    def transform(self, env: Any) -> DataFrame:
        from pyspark.sql.functions import udf

        # Spark's own uuid() is the same in both: its seed is the batch's.
        number = udf(lambda: uuid4().hex).asNondeterministic()
        rows: DataFrame = env.input("orders").select("order_id", number().alias("number"))
        return rows

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        from bettong.scenarios.jobs.outputs import connected

        def each(batch: DataFrame, batch_id: int) -> None:
            for table in ("invoices", "ledger"):
                rows = [tuple(row) for row in batch.collect()]
                with connected(env) as db:
                    db.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", rows)  # noqa: S608

        return started(df, env, each)

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        """Not by batches as a whole."""


class PartOfTheBatch(Job):
    """foreachBatch that reads the first row only: the other tasks never commit their state."""

    inputs = {"orders": Files("json", "id STRING, at TIMESTAMP")}  # noqa: RUF012
    oracle, compare = OnePerKey("id"), Bag("id")

    def transform(self, env: Any) -> DataFrame:
        orders = env.input("orders").withWatermark("at", "1 minute")
        rows: DataFrame = orders.dropDuplicatesWithinWatermark(["id"]).select("id")
        return rows

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        def each(batch: DataFrame, batch_id: int) -> None:
            first = [row.id for row in batch.head(1)]
            (env.workdir / f"{batch_id}.json").write_text(json.dumps(first))

        return started(df, env, each)

    def read(self, env: Any) -> list[dict[str, Any]]:
        files = env.workdir.glob("*.json")
        return [{"id": id} for file in files for id in json.loads(file.read_text())]


class EqualToTheWatermark(ToParquet):
    """No delay: rows of the same event time, cut into two batches, are late in the second one."""

    inputs = {  # noqa: RUF012
        "events": Files(
            "json",
            [{"id": f"e{n}", "at": _at(n // 4 * 10)} for n in range(16)],
            schema="id STRING, at TIMESTAMP",
            per_step=6,
            closing={"id": "closing", "at": _FAR},
        )
    }
    compare = Bag("id")

    def transform(self, env: Any) -> DataFrame:
        events = env.input("events").withWatermark("at", "0 seconds")
        rows: DataFrame = events.dropDuplicates(["id", "at"]).select("id")
        return rows


class LateMatch(ToParquet):
    """A left outer join whose match comes when the row without one is out: which of the two is
    there depends on how batches are cut."""

    inputs = {  # noqa: RUF012
        "ads": Files(
            "json",
            [{"ad": f"a{n}", "shown": _at(n * 20)} for n in range(8)],
            schema="ad STRING, shown TIMESTAMP",
            per_step=2,
            closing={"ad": "last", "shown": _FAR},
        ),
        "clicks": Files(
            "json",
            [{"clicked": f"a{n}", "at": _at(max(0, n - 2) * 20 + 1)} for n in range(8)],
            schema="clicked STRING, at TIMESTAMP",
            per_step=2,
            closing={"clicked": "none", "at": _FAR},
        ),
    }
    compare = OuterBag(left="ads")

    def transform(self, env: Any) -> DataFrame:
        from pyspark.sql.functions import expr

        ads = env.input("ads").withWatermark("shown", "1 second")
        clicks = env.input("clicks").withWatermark("at", "1 second")
        within = "ad = clicked AND at BETWEEN shown - interval 60 seconds AND shown"
        joined: DataFrame = ads.join(clicks, expr(within), "left_outer")
        return joined.select("ad", "at")


class Replayed(ToSqlite):
    """foreachBatch that inserts: a replayed batch is there twice."""

    inputs = {"orders": Files("json", "id STRING, amount INT")}  # noqa: RUF012
    oracle, compare = "batch", Bag("id")
    tables = ("CREATE TABLE orders (id TEXT)",)
    select = "SELECT id FROM orders"

    def transform(self, env: Any) -> DataFrame:
        rows: DataFrame = env.input("orders").select("id")
        return rows

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        db.executemany("INSERT INTO orders VALUES (?)", rows)
