"""Failure specifications: their size, their schedules, and what a schedule means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.lineage.errors import UsageError
from bettong.lineage.protocols.failure_spec import CrashModel, FailureSpec
from bettong.lineage.protocols.strategies import failure_specs, schedules

THREE, FOUR = ("a", "b", "c"), ("a", "b", "C", "d")


@pytest.mark.parametrize(
    ("nodes", "eot", "eff", "crashes", "size"),
    [
        (THREE, 6, 3, 0, 4096),
        (THREE, 6, 3, 1, 65536),
        (FOUR, 6, 0, 1, 21),
        (FOUR, 8, 0, 1, 29),
        (FOUR, 8, 0, 2, 323),
    ],
)
def test_sizes(nodes: tuple[str, ...], eot: int, eff: int, crashes: int, size: int) -> None:
    assert FailureSpec(nodes, eot, eff, crashes).size() == size


@settings(max_examples=40, deadline=None)
@given(failure_specs(max_size=3000, max_crashes=3, disorder=True))
def test_every_schedule_once_and_no_other(spec: FailureSpec) -> None:
    found = list(spec.schedules())
    assert found[0] == frozenset()
    assert len(found) == len(set(found)) == spec.size()
    for schedule in found:
        spec.check(schedule)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_loses_a_message_is_in_force_in_its_round(data: st.DataObject) -> None:
    spec = data.draw(failure_specs(max_crashes=2))
    schedule = data.draw(schedules(spec))
    rounds = spec.rounds(schedule)
    for a, b in spec.links:
        for t in range(1, spec.eot):
            lost = not schedule.isdisjoint(f.id for f in spec.losing(a, b, t))
            silent = (a, b) in rounds[t - 1].lost or a in rounds[t - 1].stopped
            assert lost == (silent or b in rounds[t].stopped)


@pytest.mark.parametrize(
    ("model", "stopped", "restarted"),
    [
        ("send-stop", [[], [], [], []], [[], [], [], []]),
        ("full-stop", [[], ["a"], ["a"], ["a"]], [[], [], [], []]),
        ("restart", [[], ["a"], [], []], [[], ["a"], [], []]),
    ],
)
def test_crash_models(
    model: CrashModel, stopped: list[list[str]], restarted: list[list[str]]
) -> None:
    spec = FailureSpec(THREE, 4, 0, 1, model)
    rounds = spec.rounds(frozenset({"C(a,2)"}))
    assert [sorted(r.stopped) for r in rounds] == stopped
    assert [sorted(r.restarted) for r in rounds] == restarted


def test_a_schedule_beyond_the_bounds_is_refused() -> None:
    spec = FailureSpec(THREE, 6, 3, 1)
    with pytest.raises(UsageError, match="did you mean"):
        spec.check(frozenset({"O(a,b,3)"}))
    with pytest.raises(UsageError, match="more than"):
        spec.check(frozenset({"C(a,1)", "C(b,1)"}))


@pytest.mark.parametrize("name", ["", "x y", "a,b", "b->c", "b)"])
def test_names_with_which_no_fault_can_be_written_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a node cannot be named"):
        FailureSpec(("a", name), 4)
