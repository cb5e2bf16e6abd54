"""Everything that ships with Bettong to be run, by name."""

from __future__ import annotations

from bettong.harness.catalog import CatalogEntry
from bettong.scenarios import (
    benchmarks,
    buckets,
    corners,
    counting,
    full,
    kafka,
    live,
    market_spread,
    merging,
    showcase,
    suites,
    word_count,
)
from bettong.scenarios.jobs import entries as jobs
from bettong.scenarios.museum import entries as museum
from bettong.scenarios.mutants import shipped
from bettong.scenarios.protocols import entries as protocols
from bettong.scenarios.sinks import entries as sinks


def entries() -> list[CatalogEntry]:
    """All scenarios, suites, protocols, sinks, jobs and measurements."""
    own = (
        word_count,
        counting,
        buckets,
        corners,
        merging,
        full,
        market_spread,
        showcase,
        kafka,
        live,
        shipped,
    )
    scenarios = [entry for module in own for entry in module.entries()]
    return [
        *scenarios,
        *suites.entries(),
        *protocols.entries(),
        *sinks(),
        *jobs(),
        *museum(),
        *benchmarks.entries(),
    ]
