"""Random protocols: the search against running everything, and lineage against other runs."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from random_protocols import protocols

from bettong.lineage.faults import CLEAN
from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.explorer import explore
from bettong.lineage.protocols.failure_spec import FailureSpec
from bettong.lineage.protocols.protocol import Protocol, ProtocolError
from bettong.lineage.protocols.simulator import Simulation
from bettong.lineage.protocols.strategies import failure_specs, schedules
from bettong.lineage.protocols.sweep import sweep
from bettong.lineage.queries import holding
from bettong.lineage.search.loop import search

NODES = ("a", "b")
CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def simulated(drawn: tuple[Protocol, str], spec: FailureSpec) -> RoundExecutor:
    note(drawn[1])
    note(str(spec))
    try:
        return RoundExecutor(Simulation(drawn[0]), spec)
    except ProtocolError:
        assume(False)
        raise


@settings(max_examples=60, deadline=None, suppress_health_check=CHECKS)
@given(
    protocols(NODES),
    failure_specs(NODES, max_eot=5, max_crashes=2, max_size=1500, disorder=True),
)
def test_search_agrees_with_running_everything(
    drawn: tuple[Protocol, str], spec: FailureSpec
) -> None:
    executor = simulated(drawn, spec)
    assume(executor.outcome(CLEAN) == "good")
    judge = explore(executor, processes=1)
    found = search(executor, spec.bounds, find_all=True)
    assert [sorted(s) for s in found.minimal] == [sorted(s) for s in judge.minimal]
    assert found.complete
    second = sweep(executor)
    if second.complete:
        assert sorted(map(sorted, second.minimal)) == sorted(map(sorted, judge.minimal))


@settings(max_examples=100, deadline=None, suppress_health_check=CHECKS)
@given(protocols(), failure_specs(max_crashes=2, disorder=True), st.data())
def test_what_lineage_says_of_another_schedule_holds_there(
    drawn: tuple[Protocol, str], spec: FailureSpec, data: st.DataObject
) -> None:
    executor = simulated(drawn, spec)
    seen, other = data.draw(schedules(spec)), data.draw(schedules(spec))
    lineage = executor.run(seen).lineage
    lineage.merge(executor.run(data.draw(schedules(spec))).lineage)
    facts = executor.run(other).details["facts"]
    happened = {
        f"{name}({node},{arguments})@{time}"
        for node, held in facts.items()
        for fact, times in held.items()
        for name, arguments in [fact[:-1].split("(", 1)]
        for time in times
    }
    claimed = re.compile(r"(!?)((?:s|e|m)\d\(\w+,[^_>]*\)@\d+)$")
    for id in holding(lineage, other):
        match = claimed.match(id)
        if match and lineage.graph.nodes[id]["kind"] == "fact":
            assert (match[2] in happened) is not bool(match[1]), id
