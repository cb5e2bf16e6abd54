"""The search against running everything, for every shipped program over small bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.explorer import explore
from bettong.lineage.protocols.failure_spec import CRASH_MODELS, CrashModel, FailureSpec
from bettong.lineage.protocols.local import Node
from bettong.lineage.protocols.protocol import (
    Event,
    Given,
    Message,
    Protocol,
    State,
    postcondition,
    precondition,
    rule,
)
from bettong.lineage.protocols.simulator import Simulation
from bettong.lineage.protocols.sweep import sweep
from bettong.lineage.protocols.world import World
from bettong.lineage.search.loop import search
from bettong.scenarios.protocols import entries

PROGRAMS = {entry.name: entry.load() for entry in entries.entries()}
SMALL = {"kafka": [(7, 0, 1), (7, 0, 2)], "flux": [(6, 0, 2), (7, 0, 1)]}
COMMIT = [(6, 0, 2), (8, 0, 1), (7, 2, 0)]
DELIVERY = [(4, 2, 1), (4, 3, 0), (5, 0, 2)]


def bounds(name: str) -> list[tuple[int, int, int]]:
    if name in SMALL:
        return SMALL[name]
    return COMMIT if "pc" in name else DELIVERY


def asked() -> list[tuple[str, tuple[int, int, int], CrashModel]]:
    return [
        (name, bound, model)
        for name in PROGRAMS
        for bound in bounds(name)
        for model in CRASH_MODELS
        if bound[2] or model == "send-stop"
    ]


@pytest.mark.parametrize(("name", "bound", "model"), asked())
def test_search_agrees_with_running_everything(
    name: str, bound: tuple[int, int, int], model: CrashModel
) -> None:
    program = Simulation(PROGRAMS[name]())
    spec = FailureSpec(program.nodes, *bound, crash_model=model)
    executor = RoundExecutor(program, spec)
    judge = explore(executor, processes=1)
    found = search(executor, spec.bounds, find_all=True)
    if found.baseline.outcome != "good":
        assert found.verdict == "unknown"
        return
    assert [sorted(s) for s in found.minimal] == [sorted(s) for s in judge.minimal]
    assert found.verdict == ("invalid" if judge.minimal else "valid")
    assert found.complete
    if model != "restart":
        second = sweep(executor)
        assert second.complete
        assert sorted(map(sorted, second.minimal)) == sorted(map(sorted, judge.minimal))


@pytest.mark.parametrize("name", ["simple", "retry", "redun", "classic", "ack", "bully-le"])
@pytest.mark.parametrize(
    ("duplicates", "delays", "eff"),
    [(1, 0, 2), (0, 1, 2), (1, 1, 1), pytest.param(1, 1, 2, marks=pytest.mark.slow)],
)
def test_search_agrees_with_duplicates_and_delays(
    name: str, duplicates: int, delays: int, eff: int
) -> None:
    program = Simulation(PROGRAMS[name]())
    spec = FailureSpec(program.nodes, 5, eff, 1, duplicates=duplicates, delays=delays)
    executor = RoundExecutor(program, spec)
    judge = explore(executor, processes=1)
    found = search(executor, spec.bounds, find_all=True)
    assert [sorted(s) for s in found.minimal] == [sorted(s) for s in judge.minimal]
    assert found.complete


class ToItself(Protocol):
    """A message that a node sends itself and keeps: lost when it is down just then."""

    nodes = ("a", "b")
    go = Event("x")
    asked = State("x")
    note = Message("x", keep=True)

    def given(self) -> Iterable[Given]:
        return [Given("a", "go", (1,)), Given("b", "asked", (1,))]

    @rule("go")
    def write(self, me: Node, x: int) -> None:
        me.note.send(me.name, x)

    @precondition("asked")
    def pre(self, world: World, node: str, x: int) -> Iterator[tuple[int]]:
        yield (x,)

    @postcondition("note")
    def post(self, world: World, node: str, sender: str, x: int) -> Iterator[tuple[int]]:
        yield (x,)


@pytest.mark.parametrize("model", ["full-stop", "restart"])
def test_a_node_that_is_down_does_not_hear_itself(model: CrashModel) -> None:
    spec = FailureSpec(ToItself.nodes, 4, 0, 1, model)
    executor = RoundExecutor(Simulation(ToItself()), spec)
    found = search(executor, spec.bounds, find_all=True)
    assert found.minimal == [{"C(a,1)"}, {"C(a,2)"}]
    assert explore(executor, processes=1).minimal == found.minimal
