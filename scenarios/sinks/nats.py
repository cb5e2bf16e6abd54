"""Sinks that publish rows to a NATS JetStream stream."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import nats
from nats.errors import TimeoutError as NoMore
from nats.js.errors import NotFoundError

from bettong.harness.queries.sink.contract import Environment, Sink
from bettong.harness.servers import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_LAST_S = 0.3
_ANSWER_S = 2


class Publish(Sink):
    """Each row is published and acknowledged by the stream."""

    servers = {"nats": NatsServer}  # noqa: RUF012

    def setup(self, env: Environment) -> None:
        async def empty(stream: Any) -> None:
            with contextlib.suppress(NotFoundError):
                await stream.delete_stream("rows")  # a purge would remember the messages' ids
            await stream.add_stream(name="rows", subjects=["rows"])

        asyncio.run(self._with_stream(env, empty))

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def publish(batch: DataFrame, batch_id: int) -> None:
            found = [row.asDict() for row in batch.drop("ts").collect()]

            async def send(stream: Any) -> None:
                for row in found:
                    await stream.publish("rows", json.dumps(row).encode(), headers=self.head(row))

            asyncio.run(self._with_stream(env, send))

        writer = rows.writeStream.foreachBatch(publish)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def head(self, row: dict[str, Any]) -> dict[str, str] | None:
        return None

    def read(self, env: Environment) -> Iterable[Any]:
        found: list[Any] = []

        async def take(stream: Any) -> None:
            messages = await stream.subscribe("rows", ordered_consumer=True)
            try:
                while True:
                    found.append(json.loads((await messages.next_msg(_LAST_S)).data))
            except NoMore:
                pass

        asyncio.run(self._with_stream(env, take))
        return found

    @staticmethod
    async def _with_stream(env: Environment, use: Any) -> None:
        host, port = env.address("nats")
        client = await nats.connect(f"nats://{host}:{port}", allow_reconnect=False)
        try:
            await use(client.jetstream(timeout=_ANSWER_S))
        finally:
            await client.close()


class PublishWithId(Publish):
    """The row's id is the message's id: the stream drops what it has seen lately."""

    def head(self, row: dict[str, Any]) -> dict[str, str] | None:
        return {"Nats-Msg-Id": row["id"]}
