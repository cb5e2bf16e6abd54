"""The sweep and the exhaustive explorer, where the other judges are too slow or need no help."""

from __future__ import annotations

import pytest

from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.explorer import explore
from bettong.lineage.protocols.failure_spec import FailureSpec
from bettong.lineage.protocols.random_search import sample
from bettong.lineage.protocols.simulator import Simulation
from bettong.lineage.protocols.sweep import sweep
from bettong.lineage.search.loop import search
from bettong.scenarios.protocols.commit import ThreePhaseCommit
from bettong.scenarios.protocols.delivery import Ack, Classic, Retry
from bettong.scenarios.protocols.kafka import Kafka


def executor(cls: type, *bounds: int) -> RoundExecutor:
    program = Simulation(cls())
    return RoundExecutor(program, FailureSpec(program.nodes, *bounds))


def test_the_sweep_finds_what_the_search_finds_where_running_everything_is_out_of_reach() -> None:
    subject = executor(Kafka, 7, 3, 1)
    found = search(subject, subject.spec.bounds, find_all=True)
    second = sweep(subject, seconds=120)
    assert second.complete
    assert sorted(map(sorted, second.minimal)) == sorted(map(sorted, found.minimal))


@pytest.mark.slow
def test_three_phase_commit_under_losses() -> None:
    subject = executor(ThreePhaseCommit, 9, 7, 1)
    found = search(subject, subject.spec.bounds, find_all=True)
    second = sweep(subject, seconds=240)
    assert second.complete
    assert len(found.minimal) == 66
    assert sorted(map(sorted, second.minimal)) == sorted(map(sorted, found.minimal))


def test_too_many_worlds_conclude_nothing() -> None:
    found = sweep(executor(Ack, 6, 3, 1), worlds=10)
    assert (found.complete, found.minimal) == (False, [])


def test_processes_share_the_work_and_count_the_same() -> None:
    subject = executor(Retry, 5, 2, 1)
    alone, together = explore(subject, processes=1), explore(subject, processes=2)
    assert alone.outcomes == together.outcomes
    assert alone.minimal == together.minimal
    assert alone.first == together.first
    assert alone.complete
    assert together.complete


def test_a_budget_leaves_the_exploration_incomplete() -> None:
    found = explore(executor(Retry, 5, 2, 1), runs=10)
    assert (found.executions, found.complete) == (10, False)


def test_random_schedules_are_the_same_for_a_seed() -> None:
    subject = executor(Classic, 5, 3, 0)
    one, other = sample(subject, 30, seed=7), sample(subject, 30, seed=7)
    assert [e.schedule for e in one.executions] == [e.schedule for e in other.executions]
    assert one.minimal is not None
    assert subject.outcome(one.minimal) == "violation"
    assert all(subject.outcome(one.minimal - {f}) != "violation" for f in one.minimal)
