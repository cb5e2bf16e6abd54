"""What sources and sinks need of a Kafka client, which is installed only where it is wanted."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from bettong.engine.net.client import Patience, back_off
from bettong.lineage.errors import BettongError, UsageError

T = TypeVar("T")


class Record(NamedTuple):
    """One record as a producer sends it."""

    value: bytes
    key: bytes | None
    headers: list[tuple[str, bytes]]

    @classmethod
    def of(cls, row_id: str, key: str | None, data: bytes) -> Record:
        """The record of one row."""
        return cls(data, None if key is None else key.encode(), [("id", row_id.encode())])


def kafka() -> ModuleType:
    """The client library; raises UsageError when it is not installed."""
    try:
        import_module("kafka.admin")
        import_module("kafka.errors")
        return import_module("kafka")
    except ImportError as e:
        raise UsageError("Kafka needs a client: pip install 'bettong[kafka]'") from e


def attempted(action: Callable[[], T], patience: Patience) -> T:
    """What an action gives that is safe to repeat; raises BettongError when the brokers go on
    without an answer."""
    failed: Exception | None = None
    for _ in back_off(patience.give_up_s):
        try:
            return action()
        except kafka().errors.KafkaError as e:
            failed = e
    raise BettongError(f"Kafka: gave up after {patience.give_up_s:g} s: {failed}") from failed


def producer(servers: str, transactional_id: str | None, patience: Patience) -> Any:
    """A new idempotent producer, transactional if it has an id."""
    return kafka().KafkaProducer(
        **_reached(servers, patience),
        acks="all",
        enable_idempotence=True,
        transactional_id=transactional_id,
        linger_ms=5,
        max_block_ms=_milliseconds(patience),
    )


def newest_note(servers: str, topic: str, application: str, patience: Patience) -> dict[str, Any]:
    """The last committed value for this application in a topic of notes; empty without one."""
    library = kafka()
    _make_topic(servers, topic, patience)
    consumer = library.KafkaConsumer(
        **_reached(servers, patience),
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    try:
        place = library.TopicPartition(topic, 0)
        consumer.assign([place])
        end = consumer.end_offsets([place])[place]
        consumer.seek_to_beginning(place)
        note: dict[str, Any] = {}
        while consumer.position(place) < end:
            for records in consumer.poll(timeout_ms=1000).values():
                for record in records:
                    if record.key == application.encode():
                        note = json.loads(record.value)
        return note
    finally:
        consumer.close(autocommit=False)


def _make_topic(servers: str, topic: str, patience: Patience) -> None:
    library = kafka()
    admin = library.KafkaAdminClient(**_reached(servers, patience))
    try:
        if topic not in admin.list_topics():
            compacted = {"cleanup.policy": "compact", "segment.ms": "600000"}
            admin.create_topics([library.admin.NewTopic(topic, 1, -1, topic_configs=compacted)])
    except library.errors.TopicAlreadyExistsError:
        pass
    finally:
        admin.close()


def _reached(servers: str, patience: Patience) -> dict[str, Any]:
    """How a client comes to its brokers: it waits no longer than for one answer, so that there is
    time for another attempt."""
    found = servers.split(",")
    return {"bootstrap_servers": found, "bootstrap_timeout_ms": _milliseconds(patience)}


def _milliseconds(patience: Patience) -> int:
    return int(patience.timeout_s * 1000)
