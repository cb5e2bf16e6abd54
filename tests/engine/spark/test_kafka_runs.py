"""From Kafka and a file to Kafka on a real broker, on both runners, whose driver dies."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_job import app

from bettong.engine import interpret
from bettong.engine.sinks.kafka_client import kafka
from bettong.harness.servers import KafkaServer
from bettong.scenarios.applications import running_sum

pytestmark = pytest.mark.servers
PARTITIONS = 3


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    pytest.importorskip("kafka")
    with KafkaServer() as server:
        yield server.address


def make(servers: str, topics: dict[str, int]) -> None:
    admin = kafka().KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics([kafka().admin.NewTopic(t, n, 1) for t, n in topics.items()])
    admin.close()


def send(servers: str, topic: str, messages: list[bytes]) -> list[list[bytes]]:
    """Put each key's messages into one partition; gives what each partition holds of them."""
    producer = kafka().KafkaProducer(bootstrap_servers=servers)
    parts: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    for message in messages:
        place = sum(message.split(b",")[0]) % PARTITIONS
        producer.send(topic, message, partition=place)
        parts[place].append(message)
    producer.flush()
    producer.close()
    return parts


def job(runner: str, servers: str, folder: Path, at: str) -> subprocess.CompletedProcess[str]:
    script = Path(__file__).with_name("kafka_job.py")
    return subprocess.run(
        [sys.executable, script, runner, servers, runner, folder, at],
        capture_output=True,
        text=True,
        timeout=1000,
    )


def seen(servers: str, topic: str) -> list[tuple[str, bytes]]:
    """The committed records: id and value."""
    consumer = kafka().KafkaConsumer(
        bootstrap_servers=servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    place = kafka().TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek_to_beginning()
    (end,) = consumer.end_offsets([place]).values()
    found = []
    while consumer.position(place) < end:
        for records in consumer.poll(timeout_ms=1000).values():
            found += [(dict(r.headers)["id"].decode(), r.value) for r in records]
    consumer.close(autocommit=False)
    return found


@pytest.mark.parametrize(
    "runner", ["in-process", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])]
)
def test_kafka_beside_a_file_counts_each_message_once(
    broker: str, tmp_path: Path, runner: str
) -> None:
    make(broker, {runner: PARTITIONS, f"{runner}.sums": 1})
    messages = running_sum.messages(100, keys=7)["amounts"]
    others = [b"file" + m for m in running_sum.messages(40, keys=3)["amounts"]]
    (tmp_path / "others").write_bytes(b"".join(m + b"\n" for m in others))
    parts = send(broker, runner, messages[:90])
    for at in ('[0, "before"]', '[1, "after"]'):
        died = job(runner, broker, tmp_path, at)
        assert died.returncode == 9, died.stderr[-3000:]
        more = send(broker, runner, messages[90:95] if at.startswith("[0") else messages[95:])
        parts = [a + b for a, b in zip(parts, more, strict=True)]
    ended = job(runner, broker, tmp_path, "[-1, null]")
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert int(ended.stdout.split()[-1]) >= 3
    expected = [(o.id, o.data) for o in interpret(app, {"amounts": [], "others": others}).outputs]
    for place in range(PARTITIONS):
        outputs = interpret(app, {"amounts": parts[place], "others": []}).outputs
        expected += [(o.id.replace("/", f"-{place}/"), o.data) for o in outputs]
    assert sorted(seen(broker, f"{runner}.sums")) == sorted(expected)
