"""Windows that close late, into PostgreSQL: no batch before the last one has any row of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from bettong.harness import Bag, Files, Job
from bettong.harness.servers import PostgresServer
from bettong.scenarios.jobs.outputs import started
from bettong.scenarios.jobs.windows import CLICKS, FAR

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_MARK = "INSERT INTO batches VALUES (%s) ON CONFLICT DO NOTHING RETURNING id"


class LateCounts(Job):
    """Clicks counted by user and window, the batch's id in one transaction with its rows."""

    servers = {"db": PostgresServer}  # noqa: RUF012
    inputs = {"clicks": Files("json", CLICKS, closing=FAR)}  # noqa: RUF012
    oracle, compare = "batch", Bag("user", "n")
    marks_apart = False

    def setup(self, env: Any) -> None:
        with self.connected(env) as db:
            db.execute("DROP TABLE IF EXISTS counts, batches")
            db.execute("CREATE TABLE counts (name text, n bigint)")
            db.execute("CREATE TABLE batches (id bigint PRIMARY KEY)")

    def transform(self, env: Any) -> DataFrame:
        from pyspark.sql.functions import window

        clicks = env.input("clicks").withWatermark("at", "10 minutes")
        counts = clicks.groupBy("user", window("at", "30 seconds")).count()
        rows: DataFrame = counts.selectExpr("user", "count AS n")
        return rows

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        def each(batch: DataFrame, batch_id: int) -> None:
            rows = [tuple(row) for row in batch.collect()]
            if rows:
                with self.connected(env) as db:
                    self.apply(db, batch_id, rows)

        return started(df, env, each)

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        """Write a batch, unless it is there."""
        is_new = db.execute(_MARK, (batch_id,)).fetchall()
        if self.marks_apart:
            db.commit()
        if is_new:
            with db.cursor() as cursor:
                cursor.executemany("INSERT INTO counts VALUES (%s, %s)", rows)

    def read(self, env: Any) -> list[dict[str, Any]]:
        with self.connected(env) as db:
            found = db.execute("SELECT name, n FROM counts").fetchall()
        return [{"user": user, "n": n} for user, n in found]

    @staticmethod
    def connected(env: Any) -> Any:
        """A transaction that is committed when all went well."""
        host, port = env.address("db")
        return psycopg.connect(
            host=host, port=port, user="bettong", dbname="bettong", connect_timeout=10
        )


class LateCountsMarkedFirst(LateCounts):
    """The same, but the batch's id is committed before its rows."""

    marks_apart = True
