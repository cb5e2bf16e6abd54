"""What came in a run, and which faults could have hit something there."""

from __future__ import annotations

from pathlib import Path

from bettong.harness.api import load_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.fault import DiskUse
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.campaign import Campaign
from bettong.harness.search.read_run import RunReader
from bettong.lineage.faults import CRASH, LOSS, PAUSE, STORAGE

OF_THE_DISK = {"storage", "power-cut", "crash-writing", "stall", "pause"}


def test_each_fault_that_a_run_suggests_hits_what_came_in_it(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("counting_rolling")
    campaign = Campaign(backend, scenario, tmp_path, scenario.messages(), replay=False)
    seen = campaign.run(Schedule())
    reader = RunReader(2, frozenset({CRASH, LOSS, PAUSE, STORAGE}))
    read = reader.read(seen.events, seen.schedule, seen.outcome)
    there = []
    for fault in read.faults:
        at = fault.points[0]
        there.append((fault, read.came[at.step, at.occurrence, at.phase]))
    assert [fault.id for fault, use in there if not fault.is_among(use)] == []
    assert {f.kind for f, _ in there if not f.is_among(DiskUse((), 0))} == OF_THE_DISK
    assert all(fault.is_among(DiskUse()) for fault, _ in there)
