"""Kafka as a node: a real broker whose clients stay behind their link's proxy, and the topics of
runs."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bettong.engine.sinks.kafka_client import kafka
from bettong.engine.steps import Instrumentation
from bettong.harness.cluster.nodes import Node
from bettong.harness.processes.patience import patience
from bettong.harness.processes.session import Ended
from bettong.harness.servers import KafkaServer

KAFKA = "kafka"
_SHOWN_WITHIN_S = 10.0


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
        """The committed records of a topic of one partition, as rows of the receiver.

        A broker answers a commit before readers see it, so that they are given time as long as
        there is more on the topic than they may see; what a transaction keeps from them that is
        left open, they lack.
        """
        place = kafka().TopicPartition(topic, 0)
        with self._consumer("read_uncommitted") as everything:
            whole = everything.end_offsets([place])[place]
        with self._consumer("read_committed") as consumer:
            consumer.assign([place])
            consumer.seek_to_beginning()
            until = time.monotonic() + patience(_SHOWN_WITHIN_S)
            end = consumer.end_offsets([place])[place]
            while consumer.position(place) < (end if time.monotonic() > until else whole):
                for records in consumer.poll(timeout_ms=1000).values():
                    yield from map(_row, records)
                end = consumer.end_offsets([place])[place]

    @contextmanager
    def _consumer(self, isolation_level: str) -> Iterator[Any]:
        consumer = kafka().KafkaConsumer(
            bootstrap_servers=self.server.direct,
            isolation_level=isolation_level,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        try:
            yield consumer
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
