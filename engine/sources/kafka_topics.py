"""This process's connections to brokers, for reading topics: a client for each cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from bettong.engine.errors import MissingError
from bettong.engine.sinks.kafka_client import kafka

Offsets = np.ndarray[Any, np.dtype[np.int64]]
T = TypeVar("T")

_FRESH_S = 0.01
"""For how long it is believed how far a topic has come: its partitions are asked together."""

_ANSWER_S = 10.0


class TopicReader:
    """Reads committed records. A client that has failed is replaced by a new one at the next call.

    Any call raises KafkaError when the brokers do not answer.
    """

    def __init__(self, servers: str, options: Mapping[str, Any]) -> None:
        self._servers = servers
        self._options = options
        self._lock = threading.Lock()
        self._client: Any = None
        self._ends: dict[str, tuple[float, dict[int, int]]] = {}

    def begins(self, topic: str) -> dict[int, int]:
        """The offset of the first record that each partition has; empty without the topic."""
        return self._asked(lambda client: client.beginning_offsets(self._places(client, topic)))

    def ends(self, topic: str) -> dict[int, int]:
        """The offset up to which everything in each partition is committed or given up."""
        seen, ends = self._ends.get(topic, (0.0, {}))
        if time.monotonic() - seen > _FRESH_S:
            ends = self._asked(lambda client: client.end_offsets(self._places(client, topic)))
            self._ends[topic] = time.monotonic(), ends
        return ends

    def read(
        self, topic: str, partition: int, start: int, stop: int
    ) -> tuple[Offsets, list[bytes]]:
        """The committed records at offsets from ``start`` up to but not including ``stop``, and
        their offsets: there are gaps.

        Raises:
            MissingError: the partition's records no longer begin so early.
        """

        def fetch(client: Any) -> tuple[Offsets, list[bytes]]:
            place = kafka().TopicPartition(topic, partition)
            if client.assignment() != {place} or client.position(place) != start:
                client.assign([place])
                client.seek(place, start)
            offsets: list[int] = []
            values: list[bytes] = []
            give_up = time.monotonic() + _ANSWER_S
            while client.position(place) < stop:
                for record in client.poll(timeout_ms=100).get(place, ()):
                    give_up = time.monotonic() + _ANSWER_S
                    if record.offset < stop:
                        offsets.append(record.offset)
                        values.append(record.value or b"")
                if time.monotonic() > give_up and client.position(place) < stop:
                    raise kafka().errors.KafkaTimeoutError(
                        f"{topic}-{partition}/{client.position(place)} did not come"
                    )
            return np.array(offsets, np.int64), values

        try:
            return self._use(fetch)
        except kafka().errors.OffsetOutOfRangeError as e:
            raise MissingError(
                f"messages from {topic}-{partition}/{start} on are no longer in the topic, which "
                "keeps its records for a time only, and a batch that is to be done again needs "
                "them: begin again with an empty checkpoint, and let the topic keep them longer"
            ) from e

    def _asked(self, ask: Callable[[Any], Mapping[Any, int]]) -> dict[int, int]:
        return {place.partition: offset for place, offset in self._use(ask).items()}

    def _places(self, client: Any, topic: str) -> list[Any]:
        found = client.partitions_for_topic(topic) or ()
        return [kafka().TopicPartition(topic, p) for p in found]

    def _use(self, act: Callable[[Any], T]) -> T:
        with self._lock:
            try:
                if self._client is None:
                    self._client = self._connect()
                return act(self._client)
            except BaseException:
                before, self._client = self._client, None
                if before is not None:
                    before.close(autocommit=False)
                raise

    def _connect(self) -> Any:
        own = {
            "isolation_level": "read_committed",
            "enable_auto_commit": False,
            "auto_offset_reset": "none",
            "allow_auto_create_topics": False,
            "max_poll_records": 1 << 20,
            "metrics_enabled": False,
        }
        options = {"bootstrap_timeout_ms": int(_ANSWER_S * 1000), **self._options, **own}
        return kafka().KafkaConsumer(bootstrap_servers=self._servers.split(","), **options)


_readers: dict[tuple[str, str], TopicReader] = {}


def reader(servers: str, options: Mapping[str, Any]) -> TopicReader:
    """This process's reader of a cluster."""
    return _readers.setdefault(
        (servers, repr(sorted(options.items()))), TopicReader(servers, options)
    )
