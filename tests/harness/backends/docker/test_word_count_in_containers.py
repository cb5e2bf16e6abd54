"""Word count with each node in a container, under faults that the engine carries out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from bettong.harness.backends.base import Backend
from bettong.harness.backends.docker import DockerBackend
from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.record import RunRecord
from bettong.harness.runs.run import run_once
from bettong.scenarios.mutants.shipped import MUTANTS
from bettong.scenarios.word_count import WORD_COUNT

pytestmark = [pytest.mark.spark, pytest.mark.docker]

_runs = count(1)

AT_EVERY_CHANGE = {"the receiver is off the network"}

FAULTS = {
    "a driver is killed and another starts": (
        "crash: {node: driver, before: batch=1/commits}",
        "status -9",
    ),
    "the receiver is killed and started again": (
        "crash: {node: receiver, after: receiver.commit/batch=1}",
        "status -9",
    ),
    "a commit is lost": (
        "omit: {link: driver->receiver, at: batch=1/sink.commit}",
        "step failed",
    ),
    "the answer to a commit is lost": (
        "omit-reply: {link: driver->receiver, at: batch=1/sink.commit}",
        "step failed",
    ),
    "the gateway stands still": (
        "pause: {node: gateway, from: batch=0/sink.commit, until: after batch=0/sink.commit}",
        "paused",
    ),
    "the receiver is off the network": (
        "cut: {between: [[driver], [receiver]], from: batch=1/sink.commit, "
        "until: before batch=1/sink.commit#2}",
        "the engine has disconnected receiver",
    ),
}


@pytest.fixture(scope="module")
def backend(engine: str) -> Iterator[DockerBackend]:
    with DockerBackend() as found:
        yield found


def run(backend: Backend, schedule: str = "", scenario: str = "word_count") -> RunRecord:
    assert backend.runs is not None
    wanted = Schedule.parse(f"faults: [{{{schedule}}}]") if schedule else Schedule()
    chosen = next((t for t in MUTANTS if t.name == scenario), WORD_COUNT)
    return run_once(backend, chosen, wanted, backend.runs / f"run-{next(_runs)}")


@pytest.mark.slow
def test_a_run_in_containers_takes_the_steps_of_a_run_without(
    backend: DockerBackend, tmp_path: Path
) -> None:
    inside = run(backend)
    assert (inside.outcome, inside.replay_changed, inside.note) == ("good", False, "")
    with LocalBackend(spares=0) as processes:
        outside = run_once(processes, WORD_COUNT, Schedule(), tmp_path / "run")
    assert inside.step_ids == outside.step_ids
    assert sorted(inside.outputs) == sorted(outside.outputs)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in AT_EVERY_CHANGE else [pytest.mark.slow])
        for name in FAULTS
    ],
)
def test_the_right_engine_withstands(backend: DockerBackend, name: str) -> None:
    schedule, evidence = FAULTS[name]
    seen = run(backend, schedule)
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note
    assert evidence in "; ".join(seen.evidence.values())


def test_a_broken_mutant_is_found(backend: DockerBackend) -> None:
    seen = run(backend, "crash: {node: driver, before: batch=1/commits}", "sink_commits_again")
    assert seen.outcome == "violation"
    assert {a.kind for a in seen.anomalies} == {"Duplicate"}
