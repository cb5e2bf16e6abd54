"""Sinks that produce rows to a Kafka topic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import kafka
from kafka.admin import NewTopic

from bettong.harness.queries.sink.contract import Environment, Sink
from bettong.harness.servers import KafkaServer
from bettong.harness.servers.kafka import kafka_connector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_PRODUCER_S = 8
"""How long a producer tries before it gives up: the query fails, and is started again."""
_FLUSH_S = 2 * _PRODUCER_S
"""By when all has been given up. kafka-python's idempotent producer may never give up what waits
behind a batch that has expired, and a flush without a limit then does not return."""


class _Kafka(Sink):
    """Topics of its own for every run: Kafka deletes them in its own time."""

    servers = {"kafka": KafkaServer}  # noqa: RUF012

    def setup(self, env: Environment) -> None:
        topics = [NewTopic(self.topic(env, name), 1, 1) for name in ("rows", "applied")]
        admin = kafka.KafkaAdminClient(bootstrap_servers=self.address(env))
        admin.create_topics(topics)
        admin.close()

    def read(self, env: Environment) -> Iterable[Any]:
        return [json.loads(value) for value in self.values(env, "rows")]

    def values(self, env: Environment, topic: str) -> list[bytes]:
        """What a reader of committed records sees."""
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.address(env),
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        place = kafka.TopicPartition(self.topic(env, topic), 0)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        end = consumer.end_offsets([place])[place]
        found: list[bytes] = []
        while consumer.position(place) < end:
            for records in consumer.poll(timeout_ms=1000).values():
                found += [record.value for record in records]
        consumer.close(autocommit=False)
        return found

    @staticmethod
    def topic(env: Environment, name: str) -> str:
        return f"{name}-{env.run_id}"

    @staticmethod
    def address(env: Environment) -> str:
        host, port = env.address("kafka")
        return f"{host}:{port}"


class SparkKafka(_Kafka):
    """Spark's own Kafka sink: each task produces its rows."""

    @property
    def spark_config(self) -> Mapping[str, str]:  # type: ignore[override]
        return kafka_connector()

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        records = rows.selectExpr("key", "to_json(struct(id, key, seq, value)) AS value")
        options: dict[str, str | int] = {
            "kafka.bootstrap.servers": self.address(env),
            "topic": self.topic(env, "rows"),
            "kafka.linger.ms": 100,
            "kafka.request.timeout.ms": 1000 * _PRODUCER_S - 1000,
            "kafka.delivery.timeout.ms": 1000 * _PRODUCER_S,
            "kafka.max.block.ms": 1000 * _PRODUCER_S,
        }
        writer = records.writeStream.format("kafka").options(**options)
        return writer.option("checkpointLocation", env.checkpoint).start()


class IdempotentProducer(_Kafka):
    """An idempotent producer in foreachBatch: it drops what it sends twice itself, and knows
    nothing of what an earlier one has sent."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def apply(batch: DataFrame, batch_id: int) -> None:
            values = [json.dumps(row.asDict()).encode() for row in batch.drop("ts").collect()]
            producer = self.producer(env)
            try:
                self.produce(producer, env, batch_id, values)
            finally:
                producer.close(timeout=0)

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def producer(self, env: Environment) -> Any:
        return self.new_producer(env)

    def new_producer(self, env: Environment, **more: Any) -> Any:
        return kafka.KafkaProducer(
            bootstrap_servers=self.address(env),
            acks="all",
            enable_idempotence=True,
            linger_ms=10,
            retry_backoff_ms=20,
            request_timeout_ms=1000 * _PRODUCER_S - 1000,
            delivery_timeout_ms=1000 * _PRODUCER_S,
            max_block_ms=1000 * _PRODUCER_S,
            **more,
        )

    def produce(self, producer: Any, env: Environment, batch_id: int, values: list[bytes]) -> None:
        self.send(producer, env, {"rows": values})

    def send(self, producer: Any, env: Environment, values: Mapping[str, list[bytes]]) -> None:
        """One topic after the other, so that equal batches are equal conversations."""
        for topic, each in values.items():
            sent = [producer.send(self.topic(env, topic), value) for value in each]
            producer.flush(timeout=_FLUSH_S)
            for future in sent:
                future.get(timeout=_PRODUCER_S)


class Transactional(IdempotentProducer):
    """Rows and batch id in one transaction of one transactional id, which fences whoever had it
    before; a batch whose id is there is skipped."""

    def setup(self, env: Environment) -> None:
        super().setup(env)
        self.producer(env).close(timeout=0)  # a new broker takes its time for the first one

    def producer(self, env: Environment) -> Any:
        producer = self.new_producer(env, transactional_id=self.topic(env, "sink"))
        producer.init_transactions()
        return producer

    def produce(self, producer: Any, env: Environment, batch_id: int, values: list[bytes]) -> None:
        applied = str(batch_id).encode()
        if applied not in self.values(env, "applied"):
            producer.begin_transaction()
            self.send(producer, env, {"rows": values, "applied": [applied]})
            producer.commit_transaction()


class PreparedThenMarked(Transactional):
    """Two-phase commit whose second phase may come too late: the rows wait in an open transaction
    while the batch is marked elsewhere as done, and a broker gives up transactions whose producer
    is gone."""

    def produce(self, producer: Any, env: Environment, batch_id: int, values: list[bytes]) -> None:
        marker = env.workdir / f"prepared-{batch_id}"
        if not marker.exists():
            producer.begin_transaction()
            self.send(producer, env, {"rows": values})
            marker.touch()
            producer.commit_transaction()
