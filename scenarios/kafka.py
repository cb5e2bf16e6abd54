"""Scenarios with a real Kafka broker: from topic to topic, and into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Scenario
from bettong.scenarios.counting import COUNTING
from bettong.scenarios.showcase import CELSIUS
from bettong.scenarios.word_count import WORD_COUNT


def between_topics(scenario: Scenario) -> Scenario:
    """The same application and input, with Kafka at both ends."""
    return replace(
        scenario,
        name=f"{scenario.name}_kafka",
        title=f"{scenario.title}, from topic to topic of Kafka",
        inputs="kafka",
        outputs="kafka",
    )


INTO_KAFKA = replace(
    COUNTING,
    name="counting_into_kafka",
    title="sums in 2 batches, each a transaction of Kafka",
    outputs="kafka",
)

SCENARIOS: Sequence[Scenario] = (
    *map(between_topics, (CELSIUS, COUNTING, WORD_COUNT)),
    INTO_KAFKA,
)


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [CatalogEntry(s.name, "scenario", s.title, given(s)) for s in SCENARIOS]
