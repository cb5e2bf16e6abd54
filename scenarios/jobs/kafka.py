"""Jobs that read a topic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bettong.harness import Bag, Clean, Job, Table, Topic
from bettong.harness.queries.job.contract import Compare
from bettong.harness.servers import KafkaServer
from bettong.scenarios.jobs.outputs import ToSqlite
from bettong.scenarios.jobs.windows import CLICKS, FAR, counted

if TYPE_CHECKING:
    import sqlite3

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class _OnKafka(Job):
    servers = {"kafka": KafkaServer}  # noqa: RUF012
    inputs = {"clicks": Topic("clicks", CLICKS, closing=FAR)}  # noqa: RUF012


class CountsToTopic(_OnKafka):
    """Kafka, window count, Kafka: each closed window is a record with its own key, and a reader
    takes the last one of a key, as a compacted topic keeps it."""

    oracle = "batch"
    compare: Compare = Table(key="window", latest="offset")

    def setup(self, env: Any) -> None:
        from kafka import KafkaAdminClient
        from kafka.admin import NewTopic

        admin = KafkaAdminClient(bootstrap_servers=self.address(env))
        admin.create_topics([NewTopic(self.output(env), 1, 1)])
        admin.close()

    def transform(self, env: Any) -> DataFrame:
        groups = counted(env.input("clicks"))
        return groups.selectExpr("concat(user, ' ', window.start) AS window", "n")

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        records = df.selectExpr("window AS key", "to_json(struct(window, n)) AS value")
        writer = records.writeStream.format("kafka").option("topic", self.output(env))
        writer = writer.option("kafka.bootstrap.servers", self.address(env))
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Any) -> list[dict[str, Any]]:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(bootstrap_servers=self.address(env), enable_auto_commit=False)
        place = TopicPartition(self.output(env), 0)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        end = consumer.end_offsets([place])[place]
        found = []
        while consumer.position(place) < end:
            for records in consumer.poll(timeout_ms=1000).values():
                found += [{**json.loads(r.value), "offset": r.offset} for r in records]
        consumer.close(autocommit=False)
        return found

    @staticmethod
    def address(env: Any) -> str:
        host, port = env.address("kafka")
        return f"{host}:{port}"

    @staticmethod
    def output(env: Any) -> str:
        return f"counts-{env.run_id}"


class CountsToTopicOfAll(CountsToTopic):
    """The same, for a reader who takes every record: Spark's Kafka sink writes a replayed batch
    again."""

    compare = Bag("window", "n")


class _Copied(_OnKafka, ToSqlite):
    inputs = {"orders": Topic("orders", "id STRING, amount INT")}  # noqa: RUF012
    oracle: str | Clean = "batch"
    compare = Bag("id", "amount")
    select = "SELECT id, amount FROM orders"

    def transform(self, env: Any) -> DataFrame:
        rows: DataFrame = env.input("orders")
        return rows


class Copied(_Copied):
    """A topic into a table, upserted by id."""

    tables = ("CREATE TABLE orders (id TEXT PRIMARY KEY, amount INTEGER)",)

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        db.executemany("INSERT OR REPLACE INTO orders VALUES (?, ?)", rows)


class CopiedOfOnePartition(Copied):
    """A topic into a table, upserted by id, of the partition that there was when it was written."""

    oracle = Clean()

    def transform(self, env: Any) -> DataFrame:
        host, port = env.address("kafka")
        records = (
            env.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", f"{host}:{port}")
            .option("assign", json.dumps({env.topic("orders"): [0]}))
            .option("startingOffsets", "earliest")
            .load()
        )
        row = "from_json(CAST(value AS STRING), 'id STRING, amount INT') AS row"
        rows: DataFrame = records.selectExpr(row).select("row.*")
        return rows


class CopiedTwice(_Copied):
    """A topic into a table, inserted."""

    tables = ("CREATE TABLE orders (id TEXT, amount INTEGER)",)

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        db.executemany("INSERT INTO orders VALUES (?, ?)", rows)
