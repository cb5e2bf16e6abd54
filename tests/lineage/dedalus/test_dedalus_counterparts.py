"""Plain-Python protocols and their Dedalus counterparts: the same verdicts, minimal sets and
counts."""

from __future__ import annotations

import pytest

from bettong.harness.catalog import entries, find
from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.explorer import Exploration, explore
from bettong.lineage.protocols.failure_spec import CrashModel, FailureSpec
from bettong.lineage.protocols.rounds import RoundProgram
from bettong.lineage.protocols.simulator import Simulation
from bettong.lineage.search.loop import search
from bettong.scenarios import dedalus

DELIVERY = ("simple", "retry", "redun", "classic", "ack")


Bounds = tuple[int, int, int]


def small(name: str) -> list[Bounds]:
    """Bounds within which every schedule is run."""
    if name in DELIVERY:
        return [(4, 2, 1), (5, 0, 3)]
    known = {
        "kafka": [(7, 0, 2)],
        "paxos": [(7, 0, 2), (5, 3, 0)],
        "bully-le": [(6, 0, 3), (5, 3, 0)],
        "flux": [(9, 0, 2)],
    }
    return known.get(name, [(6, 0, 2), (8, 0, 2), (4, 2, 0)])


def large(name: str) -> list[Bounds]:
    """Bounds within which every minimal set is searched for."""
    if name in DELIVERY:
        return [(8, 6, 1)]
    known = {
        "kafka": [(7, 4, 1), (8, 5, 0)],
        "paxos": [(7, 6, 1), (8, 3, 1)],
        "bully-le": [(10, 9, 1)],
        "flux": [(22, 21, 1)],
        "3pc": [(9, 7, 1)],
    }
    return known.get(name, [(7, 4, 1)])


def test_every_shipped_protocol_has_its_counterpart() -> None:
    assert {e.name for e in entries("protocol")} == set(dedalus.names())


def counterparts(name: str) -> tuple[RoundProgram, RoundProgram, tuple[str, ...]]:
    python = Simulation(find(name, "protocol").load()(), name)
    counterpart = dedalus.program(name)
    assert set(python.nodes) == set(counterpart.nodes)
    return python, counterpart, tuple(python.nodes)


def every(program: RoundProgram, spec: FailureSpec) -> Exploration:
    return explore(RoundExecutor(program, spec), processes=1)


@pytest.mark.parametrize("model", ["send-stop", "full-stop"])
@pytest.mark.parametrize(
    ("name", "bounds"),
    [(n, b) for n in dedalus.names() for b in small(n)],
)
def test_every_schedule_ends_alike(name: str, bounds: Bounds, model: CrashModel) -> None:
    python, counterpart, nodes = counterparts(name)
    spec = FailureSpec(nodes, *bounds, model)
    one, other = every(python, spec), every(counterpart, spec)
    assert one.outcomes == other.outcomes
    assert set(one.minimal) == set(other.minimal)


@pytest.mark.parametrize(
    ("name", "bounds"),
    [(n, b) for n in dedalus.names() for b in large(n)],
)
def test_searches_come_to_the_same_minimal_sets(name: str, bounds: Bounds) -> None:
    python, counterpart, nodes = counterparts(name)
    spec = FailureSpec(nodes, *bounds)
    one = search(RoundExecutor(python, spec), spec.bounds, find_all=True)
    other = search(RoundExecutor(counterpart, spec), spec.bounds, find_all=True)
    assert (one.verdict, one.complete) == (other.verdict, other.complete)
    assert set(one.minimal) == set(other.minimal)
