"""A topic of Kafka, read by Spark's own connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class KafkaSource:
    """The values of a topic's records, on the Spark runner alone.

    Spark plans which offsets make a batch and notes them before any is read, and its workers read
    the topic's partitions side by side. Each partition is a stream of its own: the record at
    offset 17 of partition 0 is message ``NAME-0/17``. So order is by key if, as Kafka's producers
    do, records of one key are put into one partition. A record without a value is an empty message.

    Attributes:
        servers: ``HOST:PORT`` of brokers, with commas.
        topic: its name.
        end: ``now`` ends the run when it has read what was there at its start; None never ends.
        options: further options of Spark's connector, such as ``kafka.security.protocol``.
    """

    servers: str
    topic: str
    end: Literal["now"] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
