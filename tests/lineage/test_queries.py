"""Queries on random graphs, and exports."""

from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from test_hypotheses import FAULTS, lineages

from bettong.lineage.export import to_dot, to_openlineage
from bettong.lineage.faults import Fault
from bettong.lineage.graph import Lineage, LineageError
from bettong.lineage.queries import cone, frontier, holding, support, supports


def _only(lineage: Lineage, leaves: frozenset[str]) -> Lineage:
    """The same where every other leaf that can fail has failed."""
    part = Lineage(lineage.graph.copy(), dict(lineage.goals), dict(lineage.faults))
    dead = Fault("dead", "loss")
    for id, attributes in part.graph.nodes(data=True):
        if attributes["kind"] == "leaf" and attributes["faults"]:
            attributes.update(faults=() if id in leaves else (dead.id,), lost=id not in leaves)
    return part


@settings(max_examples=40, deadline=None)
@given(lineages())
def test_the_way_back_meets_each_fact_and_leaf_once(lineage: Lineage) -> None:
    kinds = {id: attributes["kind"] for id, attributes in lineage.graph.nodes(data=True)}
    for goal in lineage.goals:
        met = list(lineage.back_from([goal]))
        assert len(met) == len(set(met))
        assert set(met) == {id for id in cone(lineage, goal) if kinds[id] != "firing"}
        facts = list(lineage.back_from([goal], lambda id: kinds[id] == "leaf"))
        assert set(facts) == {id for id in met if kinds[id] == "fact"}


@settings(max_examples=40, deadline=None)
@given(lineages())
def test_all_minimal_supports(lineage: Lineage) -> None:
    goal = next(iter(lineage.goals))
    mortal = [i for i, a in lineage.graph.nodes(data=True) if a["kind"] == "leaf" and a["faults"]]
    enough = [
        frozenset(some)
        for some in chain.from_iterable(combinations(mortal, k) for k in range(len(mortal) + 1))
        if goal in holding(_only(lineage, frozenset(some)))
    ]
    expected = {s for s in enough if not any(other < s for other in enough)}
    found = list(supports(lineage, goal))
    assert len(found) == len(set(found))
    assert set(found) == expected


@settings(max_examples=40, deadline=None)
@given(lineages())
def test_a_support_suffices_and_lies_in_the_cone(lineage: Lineage) -> None:
    for goal in lineage.goals:
        found = support(lineage, goal)
        if found is None:
            assert goal not in holding(lineage)
        else:
            assert goal in holding(_only(lineage, found))
            assert found <= set(cone(lineage, goal).nodes)


@settings(max_examples=40, deadline=None)
@given(lineages())
def test_the_frontier_names_firings_that_fail(lineage: Lineage) -> None:
    schedule = frozenset(f.id for f in FAULTS[:3])
    held = holding(lineage, schedule)
    for goal in lineage.goals:
        found = frontier(lineage, goal, schedule)
        assert bool(found) == (goal not in held)
        assert all(f not in held and lineage.graph.nodes[f]["kind"] == "firing" for f in found)


def test_a_circle_does_not_support_itself() -> None:
    lineage = Lineage()
    lineage.firing("a", ["b"], "one")
    lineage.firing("b", ["a"], "two")
    lineage.firing("b", [lineage.leaf("leaf", FAULTS[:1])], "three")
    lineage.fact("a", goal=True)
    assert "a" in holding(lineage)
    assert "a" not in holding(lineage, frozenset({"O(0)"}))
    assert list(supports(lineage, "a")) == [frozenset({"leaf"})]


def test_exports_of_a_small_graph() -> None:
    lineage = Lineage()
    leaf = lineage.leaf('say "hi"', FAULTS[:1])
    absent = lineage.fact("!b", absent=True)
    lineage.firing("a", [leaf, absent], "rule")
    lineage.fact("a", goal=True)
    dot = to_dot(lineage)
    assert '\\"hi\\"' in dot
    assert "penwidth=2" in dot
    (event,) = to_openlineage(lineage, "job", "run", "2026-01-01T00:00:00Z", frozenset({"O(0)"}))
    assert event["job"]["name"] == "job/rule"
    assert [i["name"] for i in event["inputs"]] == ['say "hi"']
    assert event["run"]["facets"]["tags"]["tags"][0]["value"] == "O(0)"


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(LineageError, match="no x"):
        support(Lineage(), "x")
