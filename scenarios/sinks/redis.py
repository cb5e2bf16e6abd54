"""Sinks that keep rows in Redis."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import redis

from bettong.harness.queries.sink.contract import Environment, Sink
from bettong.harness.servers import RedisServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class _Redis(Sink):
    servers = {"redis": RedisServer}  # noqa: RUF012

    def setup(self, env: Environment) -> None:
        self._connect(env).flushall()

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def apply(batch: DataFrame, batch_id: int) -> None:
            found = [row.asDict() for row in batch.drop("ts").collect()]
            with self._connect(env) as db:
                self.apply(db, batch_id, found)

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        raise NotImplementedError

    def read(self, env: Environment) -> Iterable[Any]:
        with self._connect(env) as db:
            return [json.loads(text) for text in db.lrange("rows", 0, -1)]

    @staticmethod
    def _connect(env: Environment) -> Any:
        host, port = env.address("redis")
        return redis.Redis(host, port, socket_timeout=10)


class Push(_Redis):
    """RPUSH of the whole batch, one command."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        if rows:
            db.rpush("rows", *map(json.dumps, rows))


class Increment(_Redis):
    """HINCRBY for each row: a counter."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        pipe = db.pipeline(transaction=False)
        for row in rows:
            pipe.hincrby("counts", row["id"], 1)
        pipe.execute()

    def read(self, env: Environment) -> Iterable[Any]:
        with self._connect(env) as db:
            counts = db.hgetall("counts")
        return [{"id": id.decode()} for id, times in counts.items() for _ in range(int(times))]


class Set(_Redis):
    """HSET by the row's id: written again, it is the same."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        if rows:
            db.hset("by_id", mapping={row["id"]: json.dumps(row) for row in rows})

    def read(self, env: Environment) -> Iterable[Any]:
        with self._connect(env) as db:
            return [json.loads(text) for text in db.hvals("by_id")]


class GuardedPush(_Redis):
    """RPUSH and the batch id in one MULTI, unless the batch id is there already."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        with db.pipeline() as pipe:
            pipe.watch("applied")
            if pipe.sismember("applied", batch_id):
                return
            pipe.multi()
            pipe.sadd("applied", batch_id)
            if rows:
                pipe.rpush("rows", *map(json.dumps, rows))
            pipe.execute()


class MarksFirst(_Redis):
    """Says what it does, marks the batch, sets its rows and says that it is done: five commands."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        db.set("status", f"writing {batch_id}")
        db.set(f"begun:{batch_id}", "1")
        if db.set(f"applied:{batch_id}", "1", nx=True):
            db.set(f"batch:{batch_id}", json.dumps(rows))
        db.set("status", f"done {batch_id}")

    def read(self, env: Environment) -> Iterable[Any]:
        with self._connect(env) as db:
            batches = (db.get(key) for key in sorted(db.keys("batch:*")))
            return [row for batch in batches for row in json.loads(batch)]
