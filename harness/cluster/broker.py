"""Kafka as a node: a real broker whose clients stay behind their link's proxy, and the topics of
runs."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bettong.engine.sinks.kafka_client import kafka
from bettong.engine.steps import Instrumentation
from bettong.harness.cluster.nodes import Node
from bettong.harness.processes.session import Ended
from bettong.harness.servers import KafkaServer

KAFKA = "kafka"


class Broker(Node):
    """The node ``kafka``; what it has stored outlives its incarnations.

    Attributes:
        server: its process; ``server.advertised`` is to be set before the start.
    """

    def __init__(self) -> None:
        kafka()  # the client, which is an extra
        self.server = KafkaServer()
        super().__init__(KAFKA, Instrumentation(), Path())

    def ensure(self) -> None:
        """Start it unless it runs."""
        if self.poll() is not None:
            self.start()

    def _start(self, instrumentation: Instrumentation) -> None:
        self.server.start()
        self.log = self.server.folder / "server.log"

    def _kill(self) -> Ended | None:
        pid = self.server.pid
        status = self.server.kill()
        return None if pid is None or status is None else Ended(pid, status, 1)

    def _let_go(self) -> None:
        raise NotImplementedError("a broker has no successor beside it")

    def _pause(self) -> str | None:
        self.server.pause()
        return f"pid {self.server.pid} stopped"

    def resume(self) -> None:
        self.server.resume()

    def poll(self) -> int | None:
        return self.server.poll()

    def close(self) -> None:
        """Kill it and remove its data."""
        self.server.close()

    # --- what the harness does itself, past the proxies

    def fill(self, topics: Mapping[str, Sequence[bytes]], empty: Sequence[str]) -> None:
        """Make topics of one partition each, and produce records into some."""
        library = kafka()
        admin = library.KafkaAdminClient(bootstrap_servers=self.server.direct)
        try:
            admin.create_topics([library.admin.NewTopic(t, 1, 1) for t in (*topics, *empty)])
        finally:
            admin.close()
        producer = library.KafkaProducer(bootstrap_servers=self.server.direct, acks="all")
        try:
            sent = [producer.send(topic, m) for topic, found in topics.items() for m in found]
            producer.flush()
            for each in sent:
                each.get(timeout=0)
        finally:
            producer.close()

    def rows(self, topic: str) -> Iterator[Mapping[str, Any]]:
        """The committed records of a topic of one partition, as rows of the receiver."""
        library = kafka()
        consumer = library.KafkaConsumer(
            bootstrap_servers=self.server.direct,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        try:
            place = library.TopicPartition(topic, 0)
            consumer.assign([place])
            consumer.seek_to_beginning()
            end = consumer.end_offsets([place])[place]
            while consumer.position(place) < end:
                for records in consumer.poll(timeout_ms=1000).values():
                    yield from map(_row, records)
        finally:
            consumer.close(autocommit=False)


def _row(record: Any) -> Mapping[str, Any]:
    own = {
        "id": dict(record.headers).get("id", b"").decode() or None,
        "key": None if record.key is None else record.key.decode(),
    }
    try:
        return {**own, "data": record.value.decode()}
    except UnicodeDecodeError:
        return {**own, "base64": b64encode(record.value).decode()}
