"""Kafka as a sink, on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bettong.engine.errors import FencedError
from bettong.engine.net.client import Patience
from bettong.engine.sinks import kafka as module
from bettong.engine.sinks.base import Noted, Row
from bettong.engine.sinks.kafka import DirectKafkaSink, KafkaSink
from bettong.engine.sinks.kafka_client import kafka
from bettong.harness.servers import KafkaServer

pytestmark = [pytest.mark.servers, pytest.mark.slow]
QUIET = Noted("")


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    pytest.importorskip("kafka")
    with KafkaServer() as server:
        yield server.address


@pytest.fixture
def sink(broker: str, tmp_path: Path, request: pytest.FixtureRequest) -> KafkaSink:
    return KafkaSink(broker, request.node.name.replace("[", ".").strip("]"), tmp_path)


def read(servers: str, topic: str, isolation: str = "read_committed") -> list[tuple[Any, ...]]:
    consumer = kafka().KafkaConsumer(
        bootstrap_servers=servers,
        isolation_level=isolation,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    partitions = [
        kafka().TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic) or ()
    ]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    found = []
    for partition, end in consumer.end_offsets(partitions).items():
        while consumer.position(partition) < end:
            for records in consumer.poll(timeout_ms=1000).values():
                found += [(dict(r.headers)["id"].decode(), r.key, r.value) for r in records]
    consumer.close(autocommit=False)
    return found


def rows(batch: int) -> list[Row]:
    return [Row(f"lines/{batch}.{n}", f"k{n % 2}" if n else None, b"\xff%d" % n) for n in range(5)]


def seen(*batches: int) -> list[tuple[str, bytes | None, bytes]]:
    return [
        (row.id, None if row.key is None else str(row.key).encode(), row.data)
        for batch in batches
        for row in rows(batch)
    ]


def work(sink: KafkaSink, epoch: int, batch: int) -> None:
    sink.prepare(epoch, batch, 0, 0, rows(99), QUIET)
    sink.prepare(epoch, batch, 0, 1, rows(batch), QUIET)
    sink.commit(epoch, batch, {0: 1}, QUIET)


def test_batches_are_committed_once(sink: KafkaSink) -> None:
    sink.open("app", 1, QUIET)
    for batch in range(3):
        work(sink, 1, batch)
        work(sink, 1, batch)
    sink.open("app", 2, QUIET)
    for batch in range(1, 4):
        work(sink, 2, batch)
    assert read(sink.servers, sink.topic) == seen(0, 1, 2, 3)


def test_a_driver_that_dies_inside_a_transaction_leaves_nothing(
    sink: KafkaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.open("app", 1, QUIET)
    driver = module._drivers[sink]
    died = driver._producer

    def die() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(died, "commit_transaction", die)
    with pytest.raises(KeyboardInterrupt):
        work(sink, 1, 0)
    module._drivers.clear()
    assert read(sink.servers, sink.topic, "read_uncommitted")[:5] == seen(0), "it had arrived"
    sink.open("app", 2, QUIET)
    work(sink, 2, 0)
    assert read(sink.servers, sink.topic) == seen(0)


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_whose_answer_is_lost_is_found_out(sink: KafkaSink, committed: bool) -> None:
    sink.open("app", 1, QUIET)
    driver = module._drivers[sink]
    commit = driver._producer.commit_transaction

    def lose_answer() -> None:
        if committed:
            commit()
        raise kafka().errors.KafkaTimeoutError("the answer is lost")

    driver._producer.commit_transaction = lose_answer
    work(sink, 1, 0)
    work(sink, 1, 1)
    assert read(sink.servers, sink.topic) == seen(0, 1)


def test_a_zombie_is_fenced_by_kafka_too(sink: KafkaSink, tmp_path: Path) -> None:
    zombie = KafkaSink(sink.servers, sink.topic, tmp_path / "elsewhere", Patience(give_up_s=20))
    zombie.staging.mkdir()
    zombie.open("app", 1, QUIET)
    zombie.prepare(1, 0, 0, 0, rows(0), QUIET)
    sink.open("app", 2, QUIET)
    work(sink, 2, 0)
    with pytest.raises(FencedError):
        zombie.commit(1, 0, {0: 0}, QUIET)
    with pytest.raises(FencedError):
        zombie.open("app", 1, QUIET)
    work(sink, 2, 1)
    assert read(sink.servers, sink.topic) == seen(0, 1)


def test_direct_rows_carry_ids_to_drop_doubles_by(broker: str) -> None:
    sink = DirectKafkaSink(broker, "direct")
    sink.open("app", 1, QUIET)
    for attempt in range(2):
        sink.prepare(1, 0, 0, attempt, rows(0), QUIET)
    sink.commit(1, 0, {0: 1}, QUIET)
    assert read(broker, "direct") == seen(0, 0)
