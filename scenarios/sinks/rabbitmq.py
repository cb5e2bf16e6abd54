"""A sink that publishes rows to RabbitMQ."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pika  # type: ignore[import-untyped]

from bettong.harness.queries.sink.contract import Environment, Sink
from bettong.harness.servers import RabbitMQServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


_PERSISTENT = pika.BasicProperties(delivery_mode=2)
"""Without it a durable queue forgets its messages when the broker is started again."""


class PublishConfirmed(Sink):
    """Each row is a persistent message, confirmed by the broker."""

    servers = {"broker": RabbitMQServer}  # noqa: RUF012

    def setup(self, env: Environment) -> None:
        with self._connect(env) as connection:
            channel = connection.channel()
            channel.queue_delete("rows")
            channel.queue_declare("rows", durable=True)

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def publish(batch: DataFrame, batch_id: int) -> None:
            with self._connect(env) as connection:
                channel = connection.channel()
                channel.confirm_delivery()
                for row in batch.drop("ts").collect():
                    body = json.dumps(row.asDict()).encode()
                    channel.basic_publish("", "rows", body, _PERSISTENT)

        writer = rows.writeStream.foreachBatch(publish)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> Iterable[Any]:
        found = []
        with self._connect(env) as connection:
            channel = connection.channel()
            while (message := channel.basic_get("rows"))[0] is not None:
                found.append(json.loads(message[2]))
        return found  # unacknowledged, so all of them are in the queue again

    @staticmethod
    def _connect(env: Environment) -> Any:
        host, port = env.address("broker")
        return pika.BlockingConnection(pika.ConnectionParameters(host, port, heartbeat=0))
