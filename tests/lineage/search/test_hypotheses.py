"""The solver against brute force."""

from __future__ import annotations

from itertools import chain, combinations
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bettong.lineage.faults import CLEAN, WRITE, Bounds, Fault, FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.queries import holding
from bettong.lineage.search.hypotheses import Hypotheses, minimal

FAULTS = [
    *(Fault(f"O({n})", "loss", "", f"a->{n}", n) for n in range(4)),
    *(Fault(f"C(a,{n})", "crash", "crash a", "a", n) for n in range(2)),
    *(Fault(f"C(b,{n})", "crash", "crash b", "b", n) for n in range(2)),
    *(Fault(f"W({node})", WRITE, "", node, 1) for node in "ab"),
]


@st.composite
def lineages(draw: st.DrawFn) -> Lineage:
    """Random AND/OR graphs without circles: leaves, some of which others may do for, two layers of
    facts, goals."""
    lineage = Lineage()
    layers = [[], [], []]
    for n in range(draw(st.integers(1, 5))):
        faults = draw(st.lists(st.sampled_from(FAULTS), unique=True, max_size=3))
        lost = draw(st.integers(0, 4)) == 0
        layers[0].append(lineage.leaf(f"leaf{n}", faults, lost=lost and bool(faults)))
    for n in range(draw(st.integers(0, 2))):
        faults = draw(st.lists(st.sampled_from(FAULTS), unique=True, max_size=2))
        leaf = lineage.leaf(f"leaf1.{n}", faults)
        for _ in range(draw(st.integers(1, 2))):
            premises = draw(st.lists(st.sampled_from(layers[0]), min_size=1, max_size=2))
            lineage.firing(leaf, premises, "instead")
        layers[1].append(leaf)
    for layer in (1, 2):
        below = list(chain(*layers[:layer]))
        for n in range(draw(st.integers(1, 3))):
            fact = f"fact{layer}.{n}"
            for _ in range(draw(st.integers(1, 3))):
                premises = draw(st.lists(st.sampled_from(below), min_size=1, max_size=3))
                lineage.firing(fact, premises, "rule")
            layers[layer].append(fact)
    for fact in layers[2]:
        lineage.fact(fact, goal=True)
    return lineage


def as_one_system(one: Lineage, other: Lineage) -> None:
    """The same leaf of two runs names the same faults."""
    for id, attributes in list(other.graph.nodes(data=True)):
        if attributes["kind"] == "leaf" and id in one.graph:
            attributes.update(one.graph.nodes[id])
    other.faults.update(one.faults)


def brute_force(lineage: Lineage, bounds: Bounds) -> list[FaultSet]:
    known = list(lineage.faults.values())
    sets = chain.from_iterable(combinations(known, k) for k in range(len(known) + 1))
    return minimal(
        frozenset(f.id for f in some)
        for some in sets
        if bounds.allow(some)
        and any(g not in holding(lineage, frozenset(f.id for f in some)) for g in lineage.goals)
    )


bounds = st.builds(
    Bounds,
    st.fixed_dictionaries({"crash": st.integers(0, 2)}, optional={"loss": st.integers(0, 3)}),
    st.none() | st.integers(1, 3),
    st.sampled_from([frozenset(), frozenset({"loss"})]),
) | st.builds(
    Bounds,
    st.just({"crash": 1, WRITE: 1}),
    st.integers(2, 3),
    st.sampled_from([frozenset(), frozenset({"loss"})]),
    st.just(frozenset({WRITE})),
)


@settings(max_examples=60, deadline=None)
@given(lineages(), bounds)
def test_minimal_sets_smallest_first_each_once(lineage: Lineage, bound: Bounds) -> None:
    found = []
    with Hypotheses(lineage, bound) as hypotheses:
        while (schedule := hypotheses.smallest("absent")) is not None:
            found.append(schedule)
            hypotheses.exclude_supersets(schedule)
            if not schedule:
                break
    assert [len(s) for s in found] == sorted(len(s) for s in found)
    assert minimal(found) == brute_force(lineage, bound)
    assert len(set(found)) == len(found)


@settings(max_examples=50, deadline=None)
@given(lineages(), lineages(), bounds)
def test_lineage_that_comes_later_counts_as_if_it_had_come_first(
    one: Lineage, other: Lineage, bound: Bounds
) -> None:
    as_one_system(one, other)
    both = Lineage()
    both.merge(one)
    both.merge(other)
    both.goals = dict(one.goals)
    with Hypotheses(one, bound) as late, Hypotheses(both, bound) as early:
        late.extend(other)
        assert _all(late) == _all(early)


def _all(hypotheses: Hypotheses) -> list[FaultSet]:
    found = []
    while (schedule := hypotheses.smallest("absent")) is not None:
        found.append(schedule)
        hypotheses.exclude_supersets(schedule)
        if not schedule:
            break
    return minimal(found)


@settings(max_examples=60, deadline=None)
@given(lineages(), bounds)
def test_of_the_smallest_sets_the_latest_comes_first(lineage: Lineage, bound: Bounds) -> None:
    """And all of a size come, though one after the other is put off as long as may be."""
    found: list[FaultSet] = []
    with Hypotheses(lineage, bound) as hypotheses:
        while (schedule := hypotheses.smallest("hunt")) is not None and len(schedule) < 3:
            assert hypotheses.admits(schedule, "hunt")
            found.append(schedule)
            if len(schedule) == 1:
                (fault,) = (lineage.faults[f] for f in schedule)
                later = [f for f in lineage.faults.values() if f.time > fault.time]
                assert not any(hypotheses.admits(frozenset({f.id}), "hunt") for f in later)
            hypotheses.exclude(schedule)
        left = any(hypotheses.admits(frozenset({f}), "hunt") for f in lineage.faults)
    assert [len(s) for s in found] == sorted(len(s) for s in found)
    assert len(set(found)) == len(found)
    assert not left


@pytest.mark.parametrize("total", [2, 3])
@pytest.mark.parametrize(
    ("pair", "allowed"),
    [(("C(a,1)", "W(a)"), True), (("C(b,1)", "W(b)"), True), (("C(b,1)", "W(a)"), False)],
)
def test_a_failed_write_is_followed_by_a_crash_of_its_own_node_only(
    pair: tuple[str, str], allowed: bool, total: int
) -> None:
    bound = Bounds({"crash": 1, WRITE: 1}, total, followed=frozenset({WRITE}))
    chosen = [f for f in FAULTS if f.id in pair]
    assert bound.allow(chosen) is allowed
    two = Bounds({"crash": 2, WRITE: 1}, total, followed=frozenset({WRITE}))
    assert not two.allow(f for f in FAULTS if f.id in ("C(a,1)", "C(b,1)", "W(a)"))
    for order in (chosen, chosen[::-1]):
        both = Lineage()
        for fault in order:
            both.firing("goal", [both.leaf(f"no {fault.id}", [fault])], "rule")
        both.fact("goal", goal=True)
        with Hypotheses(both, bound) as hypotheses:
            assert hypotheses.admits(frozenset(pair)) is allowed
            assert hypotheses.smallest() == (frozenset(pair) if allowed else None)


def test_a_set_that_is_excluded_comes_with_another_fault_only() -> None:
    lineage = Lineage()
    leaf = lineage.leaf("leaf", FAULTS[:2])
    lineage.firing("goal", [leaf], "rule")
    lineage.fact("goal", goal=True)
    with Hypotheses(lineage, Bounds()) as hypotheses:
        hypotheses.exclude(frozenset({"O(0)"}))
        assert hypotheses.smallest() == {"O(1)"}
        hypotheses.exclude(frozenset({"O(1)"}))
        assert hypotheses.smallest() == {"O(0)", "O(1)"}
        hypotheses.exclude(frozenset({"O(0)", "O(1)"}))
        assert hypotheses.smallest() is None


def test_a_set_with_a_fault_that_nobody_knows_yet_rules_out_no_other() -> None:
    one, other = Lineage(), Lineage()
    for lineage, leaf, faults in ((one, "leaf", FAULTS[:1]), (other, "second", FAULTS[1:3])):
        lineage.firing("goal", [lineage.leaf(leaf, faults)], "rule")
        lineage.fact("goal", goal=True)
    with Hypotheses(one, Bounds()) as hypotheses:
        hypotheses.exclude(frozenset({"O(0)", "O(1)"}))
        assert hypotheses.smallest() == {"O(0)"}
        hypotheses.exclude(frozenset({"O(0)"}))
        assert hypotheses.smallest() is None
        hypotheses.extend(other)
        assert hypotheses.smallest() == {"O(0)", "O(2)"}


def test_a_fault_that_prevents_harm_hides_only_what_it_is_in() -> None:
    one, other = Lineage(), Lineage()
    for lineage in (one, other):
        lineage.firing("goal", [lineage.leaf("because of O(0)", FAULTS[:1], lost=True)], "rule")
        lineage.firing("goal", [lineage.leaf("first", FAULTS[1:2])], "rule")
        lineage.fact("goal", goal=True)
    other.firing("goal", [other.leaf("second", FAULTS[2:3])], "rule")
    with Hypotheses(one, Bounds({"loss": 2})) as hypotheses:
        assert hypotheses.smallest() == {"O(1)"}
        hypotheses.exclude(frozenset({"O(1)"}))
        assert hypotheses.smallest() is None
        hypotheses.extend(other)
        assert hypotheses.smallest() == {"O(1)", "O(2)"}


@settings(max_examples=50, deadline=None)
@given(lineages(), lineages(), bounds, st.randoms(use_true_random=False))
def test_every_set_but_those_excluded_comes_whenever_its_faults_become_known(
    one: Lineage, other: Lineage, bound: Bounds, random: Random
) -> None:
    as_one_system(one, other)
    both = Lineage()
    both.merge(one)
    both.merge(other)
    both.goals = dict(one.goals)
    ids = sorted(f.id for f in FAULTS)
    excluded = {frozenset(random.sample(ids, random.randint(1, 2))) for _ in range(6)}
    with Hypotheses(one, bound) as late, Hypotheses(both, bound) as early:
        for schedule in excluded:
            late.exclude(schedule)
        late.extend(other)
        for schedule in excluded:
            early.exclude(schedule)
        found, wanted = _each(late), _each(early)
        assert found == wanted
        assert not found & excluded


@settings(max_examples=100, deadline=None)
@given(lineages(), lineages(), st.integers(0, 12), st.booleans())
def test_what_was_ruled_out_before_more_became_known_hides_no_pair(
    one: Lineage, other: Lineage, first: int, late: bool
) -> None:
    as_one_system(one, other)
    bound = Bounds({"crash": 2}, total=2)
    drawn = set()
    with Hypotheses(one, bound) as some, Hypotheses(one, bound) as every:
        for _ in range(first):
            schedule = some.smallest("hunt" if late else "absent")
            if schedule is None:
                break
            drawn.add(schedule)
            some.exclude(schedule)
        some.extend(other)
        every.extend(other)
        assume(not every.admits(CLEAN, "absent"))
        ids = sorted(one.faults.keys() | other.faults.keys())
        sets = {frozenset(s) for k in range(3) for s in combinations(ids, k)}
        assert _each(some) == {s for s in sets - drawn if every.admits(s, "absent")}


@settings(max_examples=100, deadline=None)
@given(lineages(), lineages(), st.randoms(use_true_random=False))
def test_a_table_of_pairs_admits_what_the_formula_does(
    one: Lineage, other: Lineage, random: Random
) -> None:
    """With room for three faults there is no table; what was asked before changes no answer."""
    as_one_system(one, other)
    ids = sorted(one.faults.keys() | other.faults.keys())
    sets = [frozenset(s) for k in range(3) for s in combinations(ids, k)]
    limits = {"crash": 2}
    with (
        Hypotheses(one, Bounds(limits, total=2)) as by_table,
        Hypotheses(one, Bounds(limits, total=3)) as by_formula,
    ):
        for more in (None, other):
            if more is not None:
                by_table.extend(more)
                by_formula.extend(more)
            for schedule in random.sample(sets, len(sets) // 2):
                assert by_table.admits(schedule, "absent") is by_formula.admits(schedule, "absent")
            for schedule in random.sample(sets, len(sets) // 8):
                by_table.exclude(schedule)
                by_formula.exclude(schedule)
            breaking = by_table.smallest("absent") if random.random() < 0.3 else None
            if breaking:
                by_table.exclude_supersets(breaking)
                by_formula.exclude_supersets(breaking)
        for schedule in sets:
            assert by_table.admits(schedule, "absent") is by_formula.admits(schedule, "absent")


def _each(hypotheses: Hypotheses) -> set[FaultSet]:
    found: set[FaultSet] = set()
    while len(found) < 40 and (schedule := hypotheses.smallest("absent")) is not None:
        found.add(schedule)
        hypotheses.exclude(schedule)
        if not schedule:
            break
    return found if len(found) < 40 else set()


def test_what_led_to_no_goal_counts_once_it_does() -> None:
    """The first run shows a way to a fact that nothing needs; the second one needs the fact."""
    fault = Fault("O(0)", "loss")
    one, other = Lineage(), Lineage()
    for lineage in (one, other):
        lineage.leaf("given")
        lineage.leaf("because of O(0)", [fault], lost=True)
    one.firing("between", ["given"], "rule")
    one.firing("goal", ["because of O(0)"], "rule")
    one.fact("goal", goal=True)
    other.firing("between", ["because of O(0)"], "rule")
    other.firing("goal", ["between"], "rule")
    with Hypotheses(one, Bounds({"loss": 1})) as hypotheses:
        hypotheses.extend(other)
        assert hypotheses.smallest("absent") is None
