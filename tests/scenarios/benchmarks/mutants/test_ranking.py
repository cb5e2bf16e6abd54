"""In which order faults are tried on a mistake: those first that hit what runs it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.faults.kinds import Crash, Fault, Omit, Pause, PowerCut
from bettong.harness.faults.point import Point
from bettong.harness.search.turns import sort_of
from bettong.lineage.faults import FaultSet
from bettong.scenarios.benchmarks.mutants.executed import Executed, UnderFault, failure
from bettong.scenarios.benchmarks.mutants.ranking import Trail, trails

APPENDS = [Point(f"gateway.append/amounts/{n}") for n in range(3)]
COMMITS = [Point(f"receiver.commit/batch={n}") for n in range(2)]
FAULTS: list[Fault] = [
    *(Crash("gateway", at) for at in APPENDS),
    *(PowerCut("gateway", at, 1, "nothing") for at in APPENDS),
    *(Crash("receiver", at) for at in COMMITS),
    *(Pause("driver", Point(f"batch={n}/sink.commit")) for n in range(2)),
    Omit("driver->receiver", Point("batch=1/sink.commit")),
]
ALL = frozenset(fault.id for fault in FAULTS)


def singles(found: Sequence[FaultSet]) -> list[str]:
    return [id for ids in found if len(ids) == 1 for id in ids]


def test_a_fault_that_the_right_engine_does_not_have_comes_first() -> None:
    fresh = FAULTS[4].id
    assert singles(Trail(known=ALL - {fresh}).first(FAULTS))[0] == fresh


def test_what_leads_to_the_mistake_comes_before_what_is_of_its_sort_and_that_before_its_steps() -> (
    None
):
    trail = Trail(
        ALL,
        led_to=frozenset({COMMIT_0}),
        sorts=frozenset({sort_of(FAULTS[-1])}),
        moments=frozenset({("gateway", APPENDS[1].step)}),
    )
    order = singles(trail.first(FAULTS))
    at_step = {f.id for f in FAULTS if f.points[0] in APPENDS[1:]}
    of_shape = {f.id for f in FAULTS if f.nodes == ("gateway",)} - at_step
    assert order[:2] == [COMMIT_0, FAULTS[-1].id]
    assert set(order[2:6]) == at_step
    assert set(order[6:8]) == of_shape


def test_what_is_of_the_kind_of_what_led_to_the_mistake_comes_next_to_it() -> None:
    kind, _, at = sort_of(FAULTS[-1])
    trail = Trail(ALL, sorts=frozenset({(kind, (), at)}))
    assert singles(trail.first(FAULTS))[0] == FAULTS[-1].id


def test_a_fault_right_before_the_next_step_of_the_node_is_as_near_as_one_at_the_step() -> None:
    trail = Trail(ALL, moments=frozenset({("gateway", APPENDS[0].step)}))
    near = {f.id for f in FAULTS[:6] if f.points[0] in APPENDS[:2]}
    assert set(singles(trail.first(FAULTS))[:4]) == near


COMMIT_0 = Crash("receiver", COMMITS[0]).id


def test_of_equally_near_faults_the_one_that_has_shown_a_mistake_comes_first() -> None:
    trail = Trail(moments=frozenset({("gateway", "")}), shown=[frozenset({FAULTS[0].id})])
    order = singles(trail.first(FAULTS))
    assert order[0] == FAULTS[0].id
    assert set(order[:6]) == {f.id for f in FAULTS if f.nodes == ("gateway",)}


def test_a_peer_of_a_link_that_runs_the_mistake_is_hit_by_what_is_lost_on_it() -> None:
    order = singles(Trail(moments=frozenset({("receiver", "")})).first(FAULTS))
    assert set(order[:3]) == {f.id for f in FAULTS[6:8]} | {FAULTS[-1].id}


ids = st.sampled_from(sorted(ALL))
moments = st.tuples(
    st.sampled_from(["gateway", "driver", "receiver"]),
    st.sampled_from(["", *(f.points[0].step for f in FAULTS)]),
)
trail_values = st.builds(
    Trail,
    known=st.frozensets(ids),
    led_to=st.frozensets(ids),
    sorts=st.frozensets(st.sampled_from([sort_of(f) for f in FAULTS])),
    moments=st.frozensets(moments, max_size=4),
    shown=st.lists(st.frozensets(ids, min_size=1, max_size=2), max_size=4, unique=True),
)


@given(trail_values, st.permutations(FAULTS))
def test_only_the_order_depends_on_where_the_mistake_is(trail: Trail, faults: list[Fault]) -> None:
    found = trail.first(faults)
    order = singles(found)
    assert sorted(order) == sorted(ALL)
    assert [s for s in found if len(s) > 1] == [s for s in trail.shown if len(s) > 1]
    fresh = ALL - trail.known if trail.known else frozenset()
    assert set(order[: len(fresh)]) == fresh


def test_a_trail_has_the_sorts_of_all_scenarios_and_the_moments_of_its_own() -> None:
    path, line, moment = "engine/storage/log.py", 7, ("gateway", "gateway.append/lines/1")
    crash = sort_of(FAULTS[0])
    recorded = {
        "a": Executed(
            {path: {1: frozenset({moment})}},
            frozenset({"x", "y"}),
            {"x": UnderFault(crash, {path: frozenset({line})}), "y": UnderFault(crash, {})},
        ),
        "b": Executed({path: {line: frozenset({moment})}}, frozenset({"z"})),
    }
    found = trails(recorded, path, line, line, {"b": [frozenset({"z"})]})
    assert found["a"] == Trail(
        frozenset({"x", "y"}), frozenset({"x"}), frozenset({crash}), frozenset(), ()
    )
    assert found["b"].moments == {moment}
    assert found["b"].sorts == {crash} and not found["b"].led_to
    assert found["b"].shown == [frozenset({"z"})]


def test_what_swallows_an_exception_is_hit_by_faults_that_make_its_statement_fail() -> None:
    path, line = "engine/storage/log.py", 7
    led = {
        "ran": UnderFault(sort_of(FAULTS[0]), {path: frozenset({line})}),
        "failed": UnderFault(sort_of(FAULTS[0]), {path: frozenset({line, failure(line)})}),
    }
    recorded = {"a": Executed({}, frozenset(led), led)}
    assert trails(recorded, path, line, line, {})["a"].led_to == {"ran", "failed"}
    assert trails(recorded, path, line, failure(line), {})["a"].led_to == {"failed"}
