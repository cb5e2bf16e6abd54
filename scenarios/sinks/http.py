"""Sinks that post rows to a bulk API over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import requests

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
