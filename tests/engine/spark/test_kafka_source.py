"""From Kafka to Kafka on a real broker and a real Spark whose driver dies."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from bettong.engine import interpret
from bettong.engine.batching import BY_NUMBER, Batching
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.sinks.kafka_client import kafka
from bettong.engine.sources.base import FileSource
from bettong.engine.sources.kafka import KafkaSource
from bettong.engine.spark.kafka import options_of
from bettong.harness.servers import KafkaServer, jars
from bettong.lineage.errors import UsageError
from bettong.scenarios.applications import market_spread, running_sum

CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
PARTITIONS = 3


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    pytest.importorskip("kafka")
    with KafkaServer() as server:
        admin = kafka().KafkaAdminClient(bootstrap_servers=server.address)
        from kafka.admin import NewTopic

        admin.create_topics([NewTopic("amounts", PARTITIONS, 1), NewTopic("sums", 1, 1)])
        admin.close()
        yield server.address


def send(servers: str, messages: list[bytes]) -> list[list[bytes]]:
    """Put each key's messages into one partition; gives what each partition holds of them."""
    producer = kafka().KafkaProducer(bootstrap_servers=servers)
    parts: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    for message in messages:
        place = sum(message.split(b",")[0]) % PARTITIONS
        producer.send("amounts", message, partition=place)
        parts[place].append(message)
    producer.flush()
    producer.close()
    return parts


def job(servers: str, folder: Path, at: str) -> subprocess.CompletedProcess[str]:
    script = Path(__file__).with_name("kafka_job.py")
    paths = ",".join(map(str, jars(CONNECTOR, transitive=False)))
    return subprocess.run(
        [sys.executable, script, servers, folder, paths, at],
        capture_output=True,
        text=True,
        timeout=240,
    )


def seen(servers: str) -> list[tuple[str, bytes]]:
    """The committed records: id and value."""
    consumer = kafka().KafkaConsumer(
        bootstrap_servers=servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    place = kafka().TopicPartition("sums", 0)
    consumer.assign([place])
    consumer.seek_to_beginning()
    (end,) = consumer.end_offsets([place]).values()
    found = []
    while consumer.position(place) < end:
        for records in consumer.poll(timeout_ms=1000).values():
            found += [(dict(r.headers)["id"].decode(), r.value) for r in records]
    consumer.close(autocommit=False)
    return found


@pytest.mark.spark
@pytest.mark.servers
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_from_kafka_to_kafka_each_message_counts_once(broker: str, tmp_path: Path) -> None:
    messages = running_sum.messages(100, keys=7)["amounts"]
    parts = send(broker, messages[:90])
    for at in ('[0, "before"]', '[1, "after"]'):
        died = job(broker, tmp_path, at)
        assert died.returncode == 9, died.stderr[-3000:]
    more = send(broker, messages[90:])
    ended = job(broker, tmp_path, "[-1, null]")
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert int(ended.stdout.split()[-1]) >= 3
    expected = []
    for place in range(PARTITIONS):
        outputs = interpret(running_sum.app, {"amounts": parts[place] + more[place]}).outputs
        expected += [(o.id.replace("/", f"-{place}/"), o.data) for o in outputs]
    assert sorted(seen(broker)) == sorted(expected)


def test_the_in_process_runner_says_who_reads_kafka(tmp_path: Path) -> None:
    config = RunConfig(tmp_path, {"amounts": KafkaSource("127.0.0.1:1", "amounts")}, {})
    with pytest.raises(UsageError, match="source amounts is read by Spark's connector for Kafka"):
        run_in_process(running_sum.app, config)


def test_kafka_goes_with_kafka_alone(tmp_path: Path) -> None:
    sources = {"nbbo": KafkaSource("127.0.0.1:1", "nbbo"), "orders": FileSource(tmp_path / "no")}
    config = RunConfig(tmp_path, sources, {"rejected": None})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="sources of Kafka go together with each other alone"):
        config.check(market_spread.app)


@pytest.mark.parametrize(
    ("end", "batching", "closes"),
    [
        (None, Batching(500, 0.05), ("500", "500", "50ms")),
        (None, Batching(500, BY_NUMBER), ("500", "500", "36500d")),
        (None, Batching(500, 0.0), ("500", None, None)),
        ("now", Batching(500, 0.05), ("500", None, None)),
    ],
)
def test_sparks_connector_is_told_when_a_batch_closes(
    end: Literal["now"] | None,
    batching: Batching,
    closes: tuple[str, str | None, str | None],
) -> None:
    told = options_of(KafkaSource("127.0.0.1:1", "amounts", end), batching)
    names = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
    assert tuple(map(told.get, names)) == closes
