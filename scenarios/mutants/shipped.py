"""Every mutant: a right system with one honest mistake, and the fault that shows it."""

from __future__ import annotations

from collections.abc import Sequence

from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Scenario
from bettong.scenarios.mutants import (
    batch_mutants,
    disk_mutants,
    gateway_mutants,
    live_mutants,
    sink_mutants,
)

MUTANTS: Sequence[Scenario] = (
    *gateway_mutants.MUTANTS,
    *sink_mutants.MUTANTS,
    *batch_mutants.MUTANTS,
    *live_mutants.MUTANTS,
    *disk_mutants.MUTANTS,
)

SPARK_ONLY = frozenset(
    {
        "gateway_forgets_credit",
        "retries_left_out",
        "sink_commits_losers",
        "state_published_late",
    }
)
"""Shown by what only Spark has: retried task attempts, a log of commits of its own, and batches
that are released when the next one is planned."""

IN_PROCESS_ONLY = frozenset(
    {
        "batch_goes_by_no_note",
        "batch_planned_twice",
        "fenced_commit_passed_over",
        "forgotten_come_back",
        "full_batch_not_noted",
        "gateway_indexes_the_first",
        "merged_files_dropped_early",
        "silent_end_forgotten",
        "state_files_unsynced",
        "state_hashed_by_python",
        "wait_plans_again",
    }
)
"""On Spark its own log of offsets keeps what a batch takes a second time, state files are of the
workers' disks, workers hash alike, a batch whose messages are released is not done again, and the
crashes that show a forgotten end, or entities that come back, fire without harm."""


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [
        CatalogEntry(
            s.name,
            "scenario",
            s.title,
            given(s),
            expect=s.expect,
            schedule=s.schedule.path if s.schedule is not None else None,
        )
        for s in MUTANTS
    ]
