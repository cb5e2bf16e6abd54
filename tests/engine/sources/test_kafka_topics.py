"""Topics as streams, on a real broker: which numbers messages have, and what is no longer there."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bettong.engine.config import RunConfig
from bettong.engine.errors import MissingError
from bettong.engine.net.client import Patience
from bettong.engine.sinks.kafka_client import kafka, producer
from bettong.engine.sources.base import Extent, FileSource, beginnings
from bettong.engine.sources.kafka import KafkaPartition, KafkaSource
from bettong.engine.state.store import LocalStore
from bettong.harness.servers import KafkaServer
from bettong.lineage.errors import BettongError, UsageError
from bettong.lineage.trace import MessageRange

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    pytest.importorskip("kafka")
    with KafkaServer() as server:
        yield server.address


@pytest.fixture
def topic(broker: str, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name)
    admin = kafka().KafkaAdminClient(bootstrap_servers=broker)
    admin.create_topics([kafka().admin.NewTopic(name, 2, 1)])
    admin.close()
    return name


def transact(broker: str, topic: str, *values: bytes, commits: bool = True) -> None:
    sender: Any = producer(broker, topic)
    sender.init_transactions()
    sender.begin_transaction()
    for value in values:
        sender.send(topic, value or None, b"key", partition=0)
    if commits:
        sender.commit_transaction()
    else:
        sender.flush()
        sender.abort_transaction()
    sender.close()


def partition(broker: str, topic: str, folder: Path, **given: Any) -> KafkaPartition:
    streams = KafkaSource(broker, topic, **given).partitions("s", LocalStore(folder))
    assert list(streams) == ["s-0", "s-1"]
    return pickle.loads(pickle.dumps(streams["s-0"]))


def read(found: KafkaPartition, start: int, stop: int) -> list[tuple[int, bytes]]:
    records = found.read(MessageRange("s-0", start, stop), "", [])
    assert (records.source, records.partition) == ("s", 0)
    return list(zip(records.numbers.tolist(), records.values, strict=True))


def test_committed_records_have_their_offsets(broker: str, topic: str, tmp_path: Path) -> None:
    transact(broker, topic, b"a", b"")  # 0, 1, and the mark of the transaction's end
    transact(broker, topic, b"lost", commits=False)  # 3, 4
    transact(broker, topic, b"b", b"c")  # 5, 6, 7
    found = partition(broker, topic, tmp_path)
    assert found.extent(8, 0.0) == Extent(8, False)
    assert read(found, 0, 8) == [(0, b"a"), (1, b""), (5, b"b"), (6, b"c")]
    assert read(found, 1, 6) == [(1, b""), (5, b"b")], "a part is read again"
    assert read(found, 6, 8) == [(6, b"c")], "and where the last one ended"
    assert read(found, 2, 5) == []


def test_a_run_to_the_end_ends_where_it_was_at_the_start(
    broker: str, topic: str, tmp_path: Path
) -> None:
    transact(broker, topic, b"a")
    now = partition(broker, topic, tmp_path, end="now")
    transact(broker, topic, b"b")
    assert now.extent(9, 0.0) == Extent(2, True)
    assert partition(broker, topic, tmp_path, end="now").extent(9, 0.0) == Extent(4, True)


def test_what_the_topic_no_longer_has(broker: str, topic: str, tmp_path: Path) -> None:
    transact(broker, topic, b"a", b"b", b"c")
    before = partition(broker, topic, tmp_path / "before")
    admin = kafka().KafkaAdminClient(bootstrap_servers=broker)
    admin.delete_records({kafka().TopicPartition(topic, 0): 2})
    admin.close()
    with pytest.raises(MissingError, match=f"from {topic}-0/0 on are no longer in the topic"):
        read(before, 0, 3)
    assert read(before, 2, 3) == [(2, b"c")]
    assert partition(broker, topic, tmp_path / "before").first == 0, "as it was noted"
    new = partition(broker, topic, tmp_path / "new")
    assert beginnings({"s-0": new}) == {"s-0": 2}


def test_a_topic_that_is_not_there_is_named(broker: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"source s: .* has no topic nowhere"):
        KafkaSource(broker, "nowhere").partitions("s", LocalStore(tmp_path))


def test_brokers_that_do_not_answer_are_given_up(tmp_path: Path) -> None:
    pytest.importorskip("kafka")
    soon = {"bootstrap_timeout_ms": 100}
    source = KafkaSource("127.0.0.1:1", "t", options=soon, patience=Patience(give_up_s=0.01))
    with pytest.raises(BettongError, match="Kafka: gave up after"):
        source.partitions("s", LocalStore(tmp_path))


def test_streams_have_names_of_their_own(broker: str, topic: str, tmp_path: Path) -> None:
    sources = {"s-1": FileSource(tmp_path / "lines"), "s": KafkaSource(broker, topic)}
    with pytest.raises(UsageError, match="s-1 is a source and a partition of s"):
        RunConfig(tmp_path, sources, {}).streams()
