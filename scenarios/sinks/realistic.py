"""Sinks as people publish them: clients that make their table in each batch, send row by row, try
again by themselves, keep connections, go through HTTP. Each says in ``level`` what it really gives.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

import psycopg
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from bettong.harness.queries.sink.contract import Environment, Sink
from bettong.harness.servers import BulkServer, PostgresServer
from bettong.lineage.results import Guarantee

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_TABLE = """CREATE TABLE IF NOT EXISTS events
(batch bigint, id text, key text, seq bigint, value bigint{unique})"""
_INSERT = "INSERT INTO events VALUES (%s, %s, %s, %s, %s)"
_UPSERT = f"{_INSERT} ON CONFLICT (id) DO UPDATE SET value = excluded.value"
_MERGE_OWN = """INSERT INTO events
SELECT batch, id, key, seq, value FROM staged WHERE attempt = %s"""
_TRIES, _PAUSE_S = 3, 0.2
Row = tuple[int, str, str, int, int]


class Published(Sink):
    """Rows of a batch, collected and sent by a client of the sink's own."""

    level: ClassVar[Guarantee] = "at-least-once"

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def send(batch: DataFrame, batch_id: int) -> None:
            self.send([(batch_id, r.id, r.key, r.seq, r.value) for r in batch.collect()], env)

        writer = rows.writeStream.foreachBatch(send)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def send(self, rows: list[Row], env: Environment) -> None:
        raise NotImplementedError


class _Postgres(Published):
    servers = {"db": PostgresServer}  # noqa: RUF012
    unique = ""

    def setup(self, env: Environment) -> None:
        with self.connect(env) as db:
            db.execute("DROP TABLE IF EXISTS events, staged")

    def read(self, env: Environment) -> Iterable[Any]:
        with self.connect(env) as db:
            db.execute(_TABLE.format(unique=self.unique))
            found = db.execute("SELECT id, key, seq, value FROM events").fetchall()
        return [dict(zip(("id", "key", "seq", "value"), row, strict=True)) for row in found]

    @staticmethod
    def connect(env: Environment, autocommit: bool = False) -> Any:
        host, port = env.address("db")
        return psycopg.connect(
            host=host,
            port=port,
            user="bettong",
            dbname="bettong",
            connect_timeout=10,
            autocommit=autocommit,
        )

    def send(self, rows: list[Row], env: Environment) -> None:
        with self.connect(env) as db:
            self.apply(db, rows)

    def apply(self, db: Any, rows: list[Row]) -> None:
        raise NotImplementedError


class TableInEachBatch(_Postgres):
    """CREATE TABLE IF NOT EXISTS, then INSERT, in one transaction a batch."""

    def apply(self, db: Any, rows: list[Row]) -> None:
        db.execute(_TABLE.format(unique=""))
        db.cursor().executemany(_INSERT, rows)


class RowByRow(_Postgres):
    """Each row a statement and a transaction of its own."""

    statement = _INSERT

    def send(self, rows: list[Row], env: Environment) -> None:
        with self.connect(env, autocommit=True) as db:
            db.execute(_TABLE.format(unique=self.unique))
            for row in rows:
                db.execute(self.statement, row)


class RowByRowUpsert(RowByRow):
    """The same, by key."""

    level = "effectively-once"
    unique = ", UNIQUE (id)"
    statement = _UPSERT


class TriesAgain(TableInEachBatch):
    """A batch that failed is sent again by the client itself."""

    def send(self, rows: list[Row], env: Environment) -> None:
        _again(lambda: super(TriesAgain, self).send(rows, env), psycopg.OperationalError)


class TriesAgainByKey(TriesAgain):
    """The same, by key."""

    level = "effectively-once"
    unique = ", UNIQUE (id)"

    def apply(self, db: Any, rows: list[Row]) -> None:
        db.execute(_TABLE.format(unique=self.unique))
        db.cursor().executemany(_UPSERT, rows)


class DeletesFirst(_Postgres):
    """DELETE of the batch, then INSERT, in one transaction. A driver that was thought dead deleted
    before its successor wrote, and inserts afterwards."""

    def apply(self, db: Any, rows: list[Row]) -> None:
        db.execute(_TABLE.format(unique=""))
        db.execute("DELETE FROM events WHERE batch = %s", (rows[0][0] if rows else -1,))
        db.cursor().executemany(_INSERT, rows)


class StagesThenMerges(_Postgres):
    """Rows go into a table aside, and from there by key into the target, in two transactions. A
    driver that was thought dead puts its rows in the place of its successor's."""

    level = "at-most-once"
    unique = ", UNIQUE (id)"

    def send(self, rows: list[Row], env: Environment) -> None:
        with self.connect(env) as db:
            db.execute(_TABLE.format(unique=self.unique))
            db.execute("DROP TABLE IF EXISTS staged")
            db.execute("CREATE TABLE staged (LIKE events)")
            db.cursor().executemany(_INSERT.replace("events", "staged"), rows)
        with self.connect(env) as db:
            db.execute("INSERT INTO events SELECT * FROM staged ON CONFLICT (id) DO NOTHING")


class StagesForItself(_Postgres):
    """The same, with rows aside that each attempt names for itself, and the batch's mark in one
    transaction with the rows that it takes from there."""

    level = "effectively-once"

    def setup(self, env: Environment) -> None:
        super().setup(env)
        with self.connect(env) as db:
            db.execute("DROP TABLE IF EXISTS applied")
            db.execute("CREATE TABLE applied (batch bigint PRIMARY KEY)")
            db.execute(_TABLE.format(unique=""))
            db.execute("CREATE TABLE staged (LIKE events, attempt text)")

    def send(self, rows: list[Row], env: Environment) -> None:
        attempt, batch = uuid4().hex, rows[0][0] if rows else -1
        with self.connect(env) as db:
            statement = "INSERT INTO staged VALUES (%s, %s, %s, %s, %s, %s)"
            db.cursor().executemany(statement, [(*row, attempt) for row in rows])
        with self.connect(env) as db:
            marked = db.execute("INSERT INTO applied VALUES (%s) ON CONFLICT DO NOTHING", (batch,))
            if marked.rowcount:
                db.execute(_MERGE_OWN, (attempt,))
            db.execute("DELETE FROM staged WHERE attempt = %s", (attempt,))


class KeepsConnection(_Postgres):
    """One connection for all batches, made anew when it is broken; rows and marker together. Of two
    drivers both ask before either of them writes, and find nothing."""

    _kept: Any = None

    def send(self, rows: list[Row], env: Environment) -> None:
        if self._kept is None or self._kept.broken or self._kept.closed:
            self._kept = self.connect(env)
        try:
            with self._kept.transaction():
                self.apply(self._kept, rows)
        except psycopg.Error:
            self._kept.close()
            raise

    def apply(self, db: Any, rows: list[Row]) -> None:
        db.execute(_TABLE.format(unique=""))
        batch = rows[0][0] if rows else -1
        if not db.execute("SELECT 1 FROM events WHERE batch = %s LIMIT 1", (batch,)).fetchall():
            db.cursor().executemany(_INSERT, rows)


class HttpTriesAgain(Published):
    """A session that tries again by itself, a POST a batch."""

    servers = {"api": partial(BulkServer, idempotency_keys=True)}  # noqa: RUF012

    def setup(self, env: Environment) -> None:
        requests.delete(self._url(env), timeout=10).raise_for_status()

    def read(self, env: Environment) -> Iterable[Any]:
        answer = requests.get(self._url(env), timeout=10)
        return [json.loads(line) for line in answer.text.splitlines()]

    def send(self, rows: list[Row], env: Environment) -> None:
        names = ("id", "key", "seq", "value")
        found = [dict(zip(names, row[1:], strict=True)) for row in rows]
        retry = Retry(_TRIES, backoff_factor=_PAUSE_S, allowed_methods=None)
        with requests.Session() as session:
            session.mount("http://", HTTPAdapter(max_retries=retry))
            if found:
                answer = session.post(
                    self._url(env), json=found, headers=self.headers(rows), timeout=5
                )
                answer.raise_for_status()

    def headers(self, rows: list[Row]) -> dict[str, str]:
        return {}

    @staticmethod
    def _url(env: Environment) -> str:
        host, port = env.address("api")
        return f"http://{host}:{port}/rows"


class HttpTriesAgainByKey(HttpTriesAgain):
    """The same, with an idempotency key."""

    level = "effectively-once"

    def headers(self, rows: list[Row]) -> dict[str, str]:
        return {"Idempotency-Key": f"batch-{rows[0][0]}"}


def _again(send: Callable[[], None], errors: type[Exception]) -> None:
    for left in reversed(range(_TRIES)):
        try:
            return send()
        except errors:
            if not left:
                raise
            time.sleep(_PAUSE_S)
    return None


REALISTIC: tuple[type[Published], ...] = (
    TableInEachBatch,
    RowByRow,
    RowByRowUpsert,
    TriesAgain,
    TriesAgainByKey,
    DeletesFirst,
    StagesThenMerges,
    StagesForItself,
    KeepsConnection,
    HttpTriesAgain,
    HttpTriesAgainByKey,
)
