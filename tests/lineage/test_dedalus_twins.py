"""Plain-Python protocols and their Dedalus twins: the same verdicts, minimal sets and counts."""

from __future__ import annotations

import pytest

from bettong.harness.catalog import find
from bettong.lineage.explorer import Exploration, explore
from bettong.lineage.loop import search
from bettong.lineage.round_executor import RoundExecutor
from bettong.lineage.rounds import RoundProgram
from bettong.lineage.simulator import Simulation
from bettong.lineage.spec import CrashModel, FailureSpec
from bettong.scenarios import dedalus

DELIVERY = ("simple", "retry", "redun", "classic", "ack")


def small(name: str) -> list[tuple[int, int, int]]:
    """Bounds within which every schedule is run."""
    if name in DELIVERY:
        return [(4, 2, 1), (5, 0, 3)]
    return [(7, 0, 2)] if name == "kafka" else [(6, 0, 2), (8, 0, 2), (4, 2, 0)]


def large(name: str) -> list[tuple[int, int, int]]:
    """Bounds within which every minimal set is searched for."""
    if name in DELIVERY:
        return [(8, 6, 1)]
    return {"kafka": [(7, 4, 1), (8, 5, 0)], "3pc": [(9, 7, 1)]}.get(name, [(7, 4, 1)])


def twins(name: str) -> tuple[RoundProgram, RoundProgram, tuple[str, ...]]:
    python = Simulation(find(name, "protocol").load()(), name)
    twin = dedalus.program(name)
    assert set(python.nodes) == set(twin.nodes)
    return python, twin, tuple(python.nodes)


def every(program: RoundProgram, spec: FailureSpec) -> Exploration:
    return explore(RoundExecutor(program, spec), processes=1)


@pytest.mark.parametrize("model", ["send-stop", "full-stop"])
@pytest.mark.parametrize(
    ("name", "bounds"),
    [(n, b) for n in dedalus.names() for b in small(n)],
)
def test_every_schedule_ends_alike(
    name: str, bounds: tuple[int, int, int], model: CrashModel
) -> None:
    python, twin, nodes = twins(name)
    spec = FailureSpec(nodes, *bounds, model)
    one, other = every(python, spec), every(twin, spec)
    assert one.outcomes == other.outcomes
    assert set(one.minimal) == set(other.minimal)


@pytest.mark.parametrize(
    ("name", "bounds"),
    [(n, b) for n in dedalus.names() for b in large(n)],
)
def test_searches_come_to_the_same_minimal_sets(name: str, bounds: tuple[int, int, int]) -> None:
    python, twin, nodes = twins(name)
    spec = FailureSpec(nodes, *bounds)
    one = search(RoundExecutor(python, spec), spec.bounds, find_all=True)
    other = search(RoundExecutor(twin, spec), spec.bounds, find_all=True)
    assert (one.verdict, one.complete) == (other.verdict, other.complete)
    assert set(one.minimal) == set(other.minimal)
