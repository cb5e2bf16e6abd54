"""Everything that ships with Bettong to be run, by name."""

from __future__ import annotations

from bettong.harness.catalog import CatalogEntry
from bettong.scenarios import word_count, word_count_twins
from bettong.scenarios.protocols import entries as protocols


def entries() -> list[CatalogEntry]:
    """All scenarios, suites, protocols and sinks."""
    return [*word_count.entries(), *word_count_twins.entries(), *protocols.entries()]
