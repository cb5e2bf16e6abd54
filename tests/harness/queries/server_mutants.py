"""Sinks that are wrong about their server in one way each."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import psycopg
import redis
import requests
from redis.backoff import NoBackoff
from redis.retry import Retry

from bettong.harness.queries.sink.contract import Environment
from bettong.harness.servers import PostgresServer, RedisServer
from bettong.scenarios.sinks.http import PostWithKey
from bettong.scenarios.sinks.kafka import IdempotentProducer
from bettong.scenarios.sinks.postgres import OnConflict
from bettong.scenarios.sinks.redis import GuardedPush, Push, Set, _Redis

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_SECONDS = 5


class ForgetfulRedis(RedisServer):
    """It keeps nothing on disk, so that a crash loses what it has answered."""

    def command(self) -> list[str]:
        command = super().command()
        command[command.index("--appendonly") + 1] = "no"
        return command


class ForgetfulSet(Set):
    """HSET by the row's id, on a Redis that forgets."""

    servers = {"redis": ForgetfulRedis}  # noqa: RUF012


class SwallowingSet(Set):
    """HSET by the row's id; when the server cannot be reached, that is logged and forgotten."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        try:
            super().apply(db, batch_id, rows)
        except redis.ConnectionError as e:
            print(f"batch {batch_id} could not be written: {e}")


class SwallowingOnceSet(SwallowingSet):
    """The same with a client that does not try again by itself."""

    @staticmethod
    def _connect(env: Environment) -> Any:
        host, port = env.address("redis")
        return redis.Redis(host, port, socket_timeout=10, retry=Retry(NoBackoff(), 0))


class GuardedForAnHour(GuardedPush):
    """RPUSH and the batch's id in one MULTI, unless that is there; it is kept for an hour."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        with db.pipeline() as pipe:
            pipe.watch(f"applied:{batch_id}")
            if pipe.exists(f"applied:{batch_id}"):
                return
            pipe.multi()
            pipe.set(f"applied:{batch_id}", 1, ex=3600)
            if rows:
                pipe.rpush("rows", *map(json.dumps, rows))
            pipe.execute()


class KeptForAnHour(_Redis):
    """SET of each row, which is kept for an hour, as whoever reads it wants it."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            db.set(f"row:{row['id']}", json.dumps(row), ex=3600)

    def read(self, env: Environment) -> Iterable[Any]:
        with self._connect(env) as db:
            return [json.loads(db.get(key)) for key in db.keys("row:*")]


class LeavesErrorsInPipeline(Set):
    """HSET by the row's id, in a pipeline whose answers nobody looks at."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        pipe = db.pipeline(transaction=False)
        for row in rows:
            pipe.hset("by_id", row["id"], json.dumps(row))
        pipe.execute(raise_on_error=False)


class FlushesAndGoesOn(IdempotentProducer):
    """Sends all records and flushes: what became of each nobody asks."""

    def produce(self, producer: Any, env: Environment, batch_id: int, values: list[bytes]) -> None:
        for value in values:
            producer.send(self.topic(env, "rows"), value, partition=0)
        producer.flush(timeout=_SECONDS)


class RepairsOnce(Push):
    """RPUSH; a batch that is begun again has its rows removed first, and one that is begun a third
    time is taken for repaired."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        begun = db.hincrby("begun", batch_id, 1)
        if begun < 3:
            for row in rows:
                db.lrem("rows", 0, json.dumps(row))
            super().apply(db, batch_id, rows)

    _connect = staticmethod(SwallowingOnceSet._connect)


class KnowsItsEnds(Push):
    """RPUSH row by row; a batch that is begun again goes on where it was if that was after its
    first row or before its last one, and is sent whole if not."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        texts = sorted(map(json.dumps, rows))
        there = len(set(texts) & {text.decode() for text in db.lrange("rows", 0, -1)})
        for text in texts[there if there in (1, len(texts) - 1, len(texts)) else 0 :]:
            db.rpush("rows", text)


class ArchivesThirds(Set):
    """HSET by the row's id; each third batch moves what is there to a list, in two requests."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        archived = {json.loads(text)["id"] for text in db.lrange("archive", 0, -1)}
        super().apply(db, batch_id, [row for row in rows if row["id"] not in archived])
        if batch_id % 3 == 2 and (kept := db.hgetall("by_id")):
            db.rpush("archive", *kept.values())
            db.delete("by_id")

    def read(self, env: Environment) -> list[Any]:
        with self._connect(env) as db:
            archived = [json.loads(text) for text in db.lrange("archive", 0, -1)]
        return [*archived, *super().read(env)]


class LeasesLock(Push):
    """Asks under a lock whether the batch is there, and pushes its rows with a marker. The lock
    expires, so that one who has died keeps nobody waiting, and one who stands still longer goes on
    without it."""

    lease_s = 45

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        with db.lock("writer", timeout=self.lease_s):
            if not db.sismember("done", batch_id):
                pipe = db.pipeline(transaction=True)
                pipe.rpush("rows", *map(json.dumps, rows))
                pipe.sadd("done", batch_id)
                pipe.execute()

    @staticmethod
    def _connect(env: Environment) -> Any:
        return SwallowingOnceSet._connect(env)


_UPSERT = "INSERT INTO sink_rows VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
_AGAIN = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)


class SkipsWhatIsRefused(OnConflict):
    """A row that the server refuses is logged; COMMIT does not say that it took the others back."""

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        for row in rows:
            try:
                db.execute(_UPSERT, row)
            except psycopg.Error as e:
                print(f"{row} could not be written: {e}")


class RetriesLastStatement(OnConflict):
    """The victim of a deadlock does its last statement again; those before it are gone."""

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        for row in rows:
            try:
                db.execute(_UPSERT, row)
            except _AGAIN:
                db.rollback()
                db.execute(_UPSERT, row)


class RetriesTransaction(OnConflict):
    """The same with all of its transaction: right."""

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        while True:
            try:
                for row in rows:
                    db.execute(_UPSERT, row)
                return db.commit()
            except _AGAIN:
                db.rollback()


class TruncatesFirst(OnConflict):
    """Empties its target with the first batch, in the transaction of its rows."""

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if batch_id == 0:
            db.execute("TRUNCATE sink_rows")
        super().apply(db, batch_id, rows)


class LocksFirst(OnConflict):
    """Locks its table before it has its rows made: right, and whoever stands still in the midst of
    that keeps its successor waiting."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def apply(batch: DataFrame, batch_id: int) -> None:
            with self._connect(env) as db:
                db.execute("LOCK TABLE sink_rows")
                self.apply(db, batch_id, [(r.id, r.key, r.seq, r.value) for r in batch.collect()])

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()


class StagesElsewhere(OnConflict):
    """Stages a batch's rows in Redis, and takes them into a table from there, in one transaction
    with the batch's id: but every driver stages under the same key."""

    servers = {"db": PostgresServer, "redis": RedisServer}  # noqa: RUF012
    columns = "id text, key text, seq bigint, value bigint"

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def apply(batch: DataFrame, batch_id: int) -> None:
            staged, stage = self.staged(batch_id), redis.Redis(*env.address("redis"))
            stage.set(staged, json.dumps([(r.id, r.key, r.seq, r.value) for r in batch.collect()]))
            with self._connect(env) as db:
                done = "INSERT INTO sink_applied VALUES (%s) ON CONFLICT DO NOTHING"
                if db.execute(done, (batch_id,)).rowcount:
                    self.apply(db, batch_id, [tuple(r) for r in json.loads(stage.get(staged))])

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def apply(self, db: Any, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        db.cursor().executemany("INSERT INTO sink_rows VALUES (%s, %s, %s, %s)", rows)

    def staged(self, batch_id: int) -> str:
        return "staged"


class StagesElsewhereByBatch(StagesElsewhere):
    """The same under a key of the batch's own."""

    def staged(self, batch_id: int) -> str:
        return f"staged-{batch_id}"


class _Posting(PostWithKey):
    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def post(batch: DataFrame, batch_id: int) -> None:
            found = [row.asDict() for row in batch.drop("ts").collect()]
            if found:
                self.post(env, batch_id, found)

        writer = rows.writeStream.foreachBatch(post)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def post(self, env: Environment, batch_id: int, rows: list[dict[str, Any]]) -> None:
        raise NotImplementedError


class GivesUp(_Posting):
    """Asks whether the service is there, then tries three times to post, then forgets the batch."""

    def post(self, env: Environment, batch_id: int, rows: list[dict[str, Any]]) -> None:
        requests.head(self._url(env), timeout=_SECONDS).raise_for_status()
        for _ in range(3):
            try:
                answer = requests.post(
                    self._url(env), json=rows, headers=self.headers(batch_id), timeout=_SECONDS
                )
            except requests.ConnectionError:
                time.sleep(0.1)
            else:
                return answer.raise_for_status()
        print(f"batch {batch_id} is given up")


class TakesAnyAnswer(_Posting):
    """Posts with an idempotency key, and whatever the service answers, the batch is done."""

    def post(self, env: Environment, batch_id: int, rows: list[dict[str, Any]]) -> None:
        requests.post(self._url(env), json=rows, headers=self.headers(batch_id), timeout=_SECONDS)


class DropsWhatIsItsOwnFault(_Posting):
    """An answer of 5xx is raised, one of 4xx means that the rows are wrong: they are logged."""

    def post(self, env: Environment, batch_id: int, rows: list[dict[str, Any]]) -> None:
        answer = requests.post(
            self._url(env), json=rows, headers=self.headers(batch_id), timeout=_SECONDS
        )
        if 400 <= answer.status_code < 500:
            print(f"{rows} were not taken: {answer.text}")
        else:
            answer.raise_for_status()


class AsksFiveTimes(_Posting):
    """Asks up to five times while the service fails, and forgets to say that it still does."""

    def post(self, env: Environment, batch_id: int, rows: list[dict[str, Any]]) -> None:
        for _ in range(5):
            answer = requests.post(
                self._url(env), json=rows, headers=self.headers(batch_id), timeout=_SECONDS
            )
            if answer.ok:
                break


class KeyForEachTry(_Posting):
    """What has timed out is tried again with another key; what fails is left to the replay, whose
    keys are the same. It waits longer than a server refuses connections here."""

    def post(self, env: Environment, batch_id: int, rows: list[dict[str, Any]]) -> None:
        for number in range(3):
            key = {"Idempotency-Key": f"batch-{batch_id}-{number}"}
            try:
                answer = requests.post(self._url(env), json=rows, headers=key, timeout=16)
            except requests.Timeout:
                continue
            return answer.raise_for_status()
        raise OSError(f"batch {batch_id} has timed out")


class HalvesWhatFails(_Posting):
    """What the service fails at is posted in halves, each with a key of its own."""

    def post(self, env: Environment, batch_id: int, rows: list[dict[str, Any]]) -> None:
        key = {"Idempotency-Key": f"{batch_id} from {rows[0]['id']} to {rows[-1]['id']}"}
        answer = requests.post(self._url(env), json=rows, headers=key, timeout=_SECONDS)
        if answer.status_code >= 500 and len(rows) > 1:
            middle = len(rows) // 2
            self.post(env, batch_id, rows[:middle])
            self.post(env, batch_id, rows[middle:])
        else:
            answer.raise_for_status()


class MarksAmongPosts(_Posting):
    """Says what it does, marks the batch, posts its rows and says that it is done: four POSTs to
    the same place. A batch that is marked is skipped."""

    def post(self, env: Environment, batch_id: int, rows: list[dict[str, Any]]) -> None:
        with requests.Session() as session:
            there = session.get(self._url(env), timeout=_SECONDS).text
            if f'"marked-{batch_id}"' in there:
                return
            for word, what in (
                ("begun", None),
                ("marked", None),
                ("rows", rows),
                ("done", None),
            ):
                name = f"{word}-{batch_id}"
                session.post(
                    self._url(env),
                    json=what or [{"id": name}],
                    headers={"Idempotency-Key": name},
                    timeout=_SECONDS,
                ).raise_for_status()

    def read(self, env: Environment) -> list[Any]:
        return [row for row in super().read(env) if row["id"].startswith("m/")]
