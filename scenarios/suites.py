"""Suites that ship: scenarios with the faults that they are to withstand."""

from __future__ import annotations

from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Resource
from bettong.harness.suites.suite import Suite, SuiteRun
from bettong.scenarios.mutants.shipped import MUTANTS

COMBINED = Resource("bettong.scenarios", "schedules/word_count")
"""Cuts that heal, pauses, full disks, crashes one after another and at once."""

TWO_WORKERS = Resource("bettong.scenarios", "schedules/two_workers")
"""Workers killed, and cut off each other and the driver."""

SUITES = {
    "faults of every kind under word count": Suite(
        "word_count_faults", (SuiteRun("word_count", COMBINED.path),)
    ),
    "word count on two workers that are killed and cut off": Suite(
        "word_count_two_workers", (SuiteRun("word_count", TWO_WORKERS.path, workers=2),)
    ),
    "every single fault at each step of a batch": Suite(
        "word_count_each_step", (SuiteRun("word_count", "each-step"),)
    ),
    "every mutant under the faults that show it, and each is found: the suite fails": Suite(
        "mutants",
        tuple(
            SuiteRun(mutant.name, mutant.schedule.path)
            for mutant in MUTANTS
            if mutant.schedule is not None
        ),
    ),
    "20,000 messages in 10 batches, without faults and with random ones": Suite(
        "word_count_at_length", (SuiteRun("word_count_20000", "random:3"),)
    ),
}


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [
        CatalogEntry(
            s.name,
            "suite",
            title,
            given(s),
            expect="invalid" if s.name == "mutants" else "valid",
        )
        for title, s in SUITES.items()
    ]
