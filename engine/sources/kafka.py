"""Topics of Kafka, read with a Python client on either runner and beside any other source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bettong.engine import steps
from bettong.engine.net.client import Patience
from bettong.engine.sinks.kafka_client import attempted
from bettong.engine.sources.base import Extent, PreparedSource, Records, awaited
from bettong.engine.sources.kafka_topics import TopicReader, reader
from bettong.engine.state.store import Store
from bettong.engine.steps import step
from bettong.engine.storage.sealed import sealed, unsealed
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import MessageRange

_FOLDER = "sources"
_REMEDY = "restore it from a copy: it says where the application began to read"


@dataclass(frozen=True)
class KafkaSource:
    """The values of a topic's committed records.

    Each partition is a stream of its own: the record at offset 17 of partition 0 is message
    ``NAME-0/17``. So order is by key if, as Kafka's producers do, records of one key are put into
    one partition. A record without a value is an empty message. Partitions are looked for at each
    start, and one is read from the first record on that it had when it was first seen.

    Attributes:
        servers: ``HOST:PORT`` of brokers, with commas.
        topic: its name.
        end: ``now`` ends the run when it has read what was there at its start; None never ends.
        options: further options of kafka-python's consumer, such as ``security_protocol``.
        patience: how long a broker that does not answer is tried again.
    """

    servers: str
    topic: str
    end: Literal["now"] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    patience: Patience = field(default_factory=Patience)

    def partitions(self, stream: str, store: Store) -> dict[str, KafkaPartition]:
        """The topic's partitions as streams; where each begins is noted in the store.

        Raises:
            UsageError: there is no such topic, or no client for Kafka.
            BettongError: the brokers do not answer.
        """
        asked = reader(self.servers, self.options)
        begins = attempted(lambda: asked.begins(self.topic), self.patience)
        if not begins:
            raise UsageError(
                f"source {stream}: {self.servers} has no topic {self.topic}: make it, or name "
                "another"
            )
        ends = attempted(lambda: asked.ends(self.topic), self.patience)
        return {
            f"{stream}-{p}": KafkaPartition(
                self,
                stream,
                p,
                _noted(store, f"{stream}-{p}", begin),
                ends[p] if self.end == "now" else None,
            )
            for p, begin in sorted(begins.items())
        }


@dataclass(frozen=True)
class KafkaPartition(PreparedSource):
    """One partition of a topic, as a stream.

    Attributes:
        topic: the topic.
        source: the name of the application's source.
        partition: its number.
        first: the number of the stream's first message.
        until: where the stream ends in this run; None never ends.
    """

    topic: KafkaSource
    source: str
    partition: int
    first: int
    until: int | None

    def extent(self, upto: int, wait: float) -> Extent:
        return awaited(self._extent, upto, wait)

    def _extent(self) -> Extent:
        ends = attempted(lambda: self._reader().ends(self.topic.topic), self.topic.patience)
        end = ends.get(self.partition, 0)
        if self.until is None:
            return Extent(end, False)
        return Extent(min(end, self.until), end >= self.until)

    def read(self, planned: MessageRange, step_id: str, causes: Sequence[str]) -> Records:
        """The records of a range that are there; raises MissingError when the topic no longer
        has its beginning."""
        link = f"{steps.installed().node}->kafka"

        def fetch() -> Records:
            with step(step_id, causes=causes, carries=[planned], link=link):
                found = self._reader().read(
                    self.topic.topic, self.partition, planned.start, planned.stop
                )
            return Records(self.source, self.partition, *found)

        return attempted(fetch, self.topic.patience)

    def _reader(self) -> TopicReader:
        return reader(self.topic.servers, self.topic.options)


def _noted(store: Store, stream: str, begin: int) -> int:
    """Where a stream began when it was first seen."""
    name = f"{_FOLDER}/{stream}.json"
    if store.create(name, sealed({"begin": begin})):
        return begin
    return int(unsealed(bytes(store.read(name)), name, _REMEDY)["begin"])
