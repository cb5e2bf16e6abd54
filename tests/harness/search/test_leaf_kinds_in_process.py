"""Each kind of fault beyond crashes and losses: a system that it breaks is found, the right one is
not blamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bettong.harness.api import run_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.runs.course import Limits
from bettong.harness.search.bounds import SearchBounds
from bettong.lineage.results import Result
from bettong.scenarios.mutants.definition import mended
from bettong.scenarios.mutants.shipped import MUTANTS

NONE = {"crashes": 0, "losses": 0, "batches": 1}
KINDS = [
    ("crashes", "gateway_goes_by_old_notes", "stop(gateway, after gateway.append/"),
    ("crashes", "sink_tidies_up_as_it_stops", "stop(receiver, before receiver.commit/batch=0)"),
    ("pauses", "sink_fences_nobody", "pause(driver, from batch=0/"),
    ("pauses", "epoch_taken_by_rename", "pause(driver, from epoch=1/take, call "),
    ("pauses", "commit_awaited_for_good", "silence(driver->receiver, batch=0/sink.commit"),
    ("storage", "gateway_acks_early", "storage(ENOSPC, gateway, before gateway.append/"),
    ("duplicates", "gateway_takes_stale_frames", "duplicate(sender->gateway, sender.send/lines/"),
    ("partitions", "commit_given_up", "cut(receiver|driver, from batch=0/sink.commit"),
]


@pytest.fixture(scope="module")
def backends() -> Iterator[list[LocalBackend]]:
    with LocalBackend(runner="in-process") as one, LocalBackend(runner="in-process") as two:
        yield [one, two]


def searched(backends: list[LocalBackend], name: str, kind: str, out: Path, right: bool) -> Result:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    return run_scenario(
        mended(mutant) if right else mutant,
        SearchBounds(**{**NONE, kind: 1}),
        backend=backends[0],
        beside=backends[1:],
        out=out,
        limits=Limits(idle_s=15),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "fault"), KINDS)
def test_a_system_that_a_kind_of_fault_breaks_is_found_and_the_right_one_is_valid(
    backends: list[LocalBackend], tmp_path: Path, kind: str, name: str, fault: str
) -> None:
    broken = searched(backends, name, kind, tmp_path / "broken", right=False)
    assert broken.verdict == "invalid", broken.reason
    (found,) = broken.counterexamples[0].faults
    assert found.startswith(fault)
    right = searched(backends, name, kind, tmp_path / "right", right=True)
    assert right.verdict == "valid", right.reason
    assert right.coverage.hypotheses
    assert not right.coverage.not_injected
    assert all(run.evidence.keys() == set(run.faults) for run in right.runs)


DISKS: Mapping[str, str] = {
    "gateway_acks_unsynced": "power-cut(gateway, ",
    "gateway_leaves_segment_unnamed": "power-cut(gateway, ",
    "gateway_numbers_first": "storage(",
    "gateway_ends_first": "storage(",
    "gateway_swallows_failed_syncs": "storage(EIO, ",
    "gateway_leaves_torn_records": "storage(",
    "gateway_forgets_rests": "storage(EIO, gateway, before gateway.",
    "gateway_drops_newest_first": "power-cut(gateway, ",
    "sink_commits_first": "storage(",
    "sink_trusts_what_is_there": "crash-writing(receiver, ",
    "state_files_unsynced": "power-cut(driver, ",
}

SOON = 60
"""Runs, of more than two hundred single storage faults that there are."""


@pytest.mark.slow
@pytest.mark.parametrize("name", DISKS)
def test_a_system_that_mistreats_its_disk_is_found(
    backends: list[LocalBackend], tmp_path: Path, name: str
) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    found = run_scenario(
        mutant,
        SearchBounds(crashes=0, losses=0, storage=1, batches=2),
        backend=backends[0],
        beside=backends[1:],
        out=tmp_path,
        limits=Limits(idle_s=15),
    )
    assert found.verdict == "invalid", found.reason
    assert found.counterexamples[0].faults[0].startswith(DISKS[name])
    assert found.coverage.to_first is not None and found.coverage.to_first <= SOON
