"""Sinks that post rows to a bulk API over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from bettong.harness.queries.sink.contract import Environment, Sink
from bettong.harness.servers import BulkServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_SECONDS = 10


class Post(Sink):
    """One POST a batch."""

    servers = {"api": partial(BulkServer, idempotency_keys=True)}  # noqa: RUF012

    def setup(self, env: Environment) -> None:
        requests.delete(self._url(env), timeout=_SECONDS).raise_for_status()

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def post(batch: DataFrame, batch_id: int) -> None:
            found = [row.asDict() for row in batch.drop("ts").collect()]
            if found:
                answer = requests.post(
                    self._url(env), json=found, headers=self.headers(batch_id), timeout=_SECONDS
                )
                answer.raise_for_status()

        writer = rows.writeStream.foreachBatch(post)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def headers(self, batch_id: int) -> dict[str, str]:
        return {}

    def read(self, env: Environment) -> Iterable[Any]:
        answer = requests.get(self._url(env), timeout=_SECONDS)
        return [json.loads(line) for line in answer.text.splitlines()]

    @staticmethod
    def _url(env: Environment) -> str:
        host, port = env.address("api")
        return f"http://{host}:{port}/rows"


class PostWithKey(Post):
    """The batch id is the request's idempotency key."""

    def headers(self, batch_id: int) -> dict[str, str]:
        return {"Idempotency-Key": f"batch-{batch_id}"}


class PostInBackground(PostWithKey):
    """A thread posts, again and again until it is done, and each batch waits for the one before:
    Spark records a batch whose rows are on their way."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        pool = ThreadPoolExecutor(1)
        last: Future[None] | None = None

        def post(batch: DataFrame, batch_id: int) -> None:
            nonlocal last
            found = [row.asDict() for row in batch.drop("ts").collect()]
            if last is not None:
                last.result()
            last = pool.submit(self._until_done, env, found, batch_id)

        writer = rows.writeStream.foreachBatch(post)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def _until_done(self, env: Environment, rows: list[dict[str, Any]], batch_id: int) -> None:
        with requests.Session() as session:
            session.mount("http://", HTTPAdapter(max_retries=_PATIENT))
            session.post(
                self._url(env), json=rows, headers=self.headers(batch_id), timeout=_SECONDS
            )


_PATIENT = Retry(None, backoff_factor=0.1, backoff_max=1.0, allowed_methods=None)
