"""Everything that ships with Bettong to be run, by name."""

from __future__ import annotations

from bettong.harness.catalog import CatalogEntry
from bettong.scenarios import counting, suites, word_count, word_count_twins
from bettong.scenarios.protocols import entries as protocols
from bettong.scenarios.sinks import entries as sinks


def entries() -> list[CatalogEntry]:
    """All scenarios, suites, protocols and sinks."""
    scenarios = [*word_count.entries(), *counting.entries(), *word_count_twins.entries()]
    return [*scenarios, *suites.entries(), *protocols.entries(), *sinks()]
