"""The search over Dedalus programs against running every schedule."""

from __future__ import annotations

import pytest
from dedalus_programs import NODES, programs
from hypothesis import assume, given
from hypothesis import strategies as st

from bettong.lineage.dedalus import DedalusProgram
from bettong.lineage.dedalus.loader import load_text
from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.explorer import Exploration, explore
from bettong.lineage.protocols.failure_spec import CrashModel, FailureSpec
from bettong.lineage.search.findings import Findings
from bettong.lineage.search.loop import search
from bettong.scenarios import dedalus

MODELS: tuple[CrashModel, ...] = ("send-stop", "full-stop", "restart")


def searched(program: DedalusProgram, spec: FailureSpec) -> Findings:
    return search(RoundExecutor(program, spec), spec.bounds, find_all=True)


def explored(program: DedalusProgram, spec: FailureSpec) -> Exploration:
    return explore(RoundExecutor(program, spec), processes=1)


def agree(program: DedalusProgram, spec: FailureSpec) -> Exploration:
    found, every = searched(program, spec), explored(program, spec)
    assert set(found.minimal) == set(every.minimal)
    assert found.verdict in ("unknown", "invalid" if every.minimal else "valid")
    if found.verdict == "unknown":
        assert found.baseline.outcome == "vacuous"
    return every


@given(programs(), st.sampled_from(MODELS))
def test_the_search_finds_all_minimal_sets_of_random_programs(text: str, model: CrashModel) -> None:
    program = DedalusProgram(load_text(text, "p.ded"), NODES)
    spec = FailureSpec(NODES, 4, 3, 1, model)
    executor = RoundExecutor(program, spec)
    assume(executor.baseline.post & executor.baseline.pre)
    agree(program, spec)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        *((n, b) for n in ("simple", "retry", "classic", "redun", "ack") for b in ((5, 2, 1),)),
        ("classic", (5, 0, 3)),
        *((n, (6, 0, 2)) for n in dedalus.names() if n.startswith("2pc")),
        ("3pc", (8, 0, 2)),
        ("kafka", (7, 0, 2)),
        ("paxos", (7, 0, 2)),
        ("bully-le", (7, 0, 3)),
        ("flux", (9, 0, 2)),
    ],
)
def test_the_search_agrees_with_running_every_schedule(
    name: str, bounds: tuple[int, int, int], model: CrashModel
) -> None:
    program = dedalus.program(name)
    agree(program, FailureSpec(program.nodes, *bounds, model))


TWO_TALLIES = """
open("b")@1;
open(N)@next :- open(N);
calm("a")@async :- open("b"), notin ballot("a");
ballot("a")@2;
yes("b", "v")@async :- ballot("a");
no("b", "w")@async :- ballot("a"), notin calm("a");
yes(N, V)@next :- yes(N, V);
no(N, V)@next :- no(N, V);
votes(N, count<V>) :- yes(N, V);
votes(N, count<V>) :- no(N, V);
pre(N, 1) :- open(N);
post(N, C) :- votes(N, C);
"""


def test_a_fact_that_two_aggregates_may_make_is_explained_by_both() -> None:
    program = DedalusProgram(load_text(TWO_TALLIES, "p.ded"), NODES)
    every = agree(program, FailureSpec(NODES, 5, 3, 0))
    assert every.minimal == [{"O(a,b,2)"}]


ALIKE = """
v("a", 1)@1;
w("b", "1")@1;
w(N, V)@next :- w(N, V);
v("b", V)@async :- v("a", V);
v("b", V)@next :- v("b", V);
pre("x", 1) :- w("b", _);
post("x", V) :- v("b", V);
post("x", V) :- w("b", V);
"""


def test_a_number_and_a_string_that_read_alike_are_two_goals() -> None:
    program = DedalusProgram(load_text(ALIKE, "p.ded"), NODES)
    every = agree(program, FailureSpec(NODES, 4, 2, 0))
    assert every.minimal == [{"O(a,b,1)"}]


LOSSES = "simple", (6, 3, 0), 2048, 1024, [{"O(a,b,1)"}, {"O(a,c,1)"}]
RETRY = (
    {"C(a,2)", "O(a,b,1)"},
    {"C(a,2)", "O(a,c,1)"},
    {"C(a,3)", "O(a,b,1)", "O(a,b,2)"},
    {"C(a,3)", "O(a,c,1)", "O(a,c,2)"},
)
TWO_PHASE = [{f"C(C,{t})"} for t in (2, 3, 4)] + [
    {f"C({x},{t})"} for x in ("a", "b", "d") for t in (1, 2)
]


@pytest.mark.parametrize(
    ("name", "bounds", "violated", "vacuous", "minimal"),
    [
        LOSSES,
        ("retry", (6, 3, 0), 0, 0, []),
        pytest.param("retry", (6, 3, 1), 3584, 5376, [*RETRY], marks=pytest.mark.slow),
        ("classic", (6, 0, 2), 0, 36, []),
        pytest.param("redun", (6, 3, 1), 0, 5376, [], marks=pytest.mark.slow),
        pytest.param("ack", (6, 3, 1), 0, 5376, [], marks=pytest.mark.slow),
        ("2pc", (6, 0, 1), 9, 1, TWO_PHASE),
        ("3pc", (8, 0, 1), 0, 0, []),
    ],
)
def test_counts_and_minimal_sets_of_the_shipped_programs(
    name: str,
    bounds: tuple[int, int, int],
    violated: int,
    vacuous: int,
    minimal: list[set[str]],
) -> None:
    program = dedalus.program(name)
    every = agree(program, FailureSpec(program.nodes, *bounds))
    assert (every.outcomes["violation"], every.outcomes["vacuous"]) == (violated, vacuous)
    assert sorted(map(sorted, every.minimal)) == sorted(map(sorted, minimal))


@pytest.mark.parametrize(
    ("name", "bounds", "verdict", "within"),
    [
        ("2pc", (7, 3, 0), "valid", 5),
        ("kafka", (7, 4, 0), "valid", 20),
        ("kafka", (6, 4, 1), "unknown", 1),
        ("kafka", (7, 4, 1), "invalid", 100),
        ("ack", (8, 6, 1), "valid", 672),
        ("redun", (8, 6, 1), "valid", 10),
        ("retry", (25, 23, 0), "valid", 5),
        ("paxos", (7, 6, 1), "valid", 172),
        ("bully-le", (10, 9, 1), "valid", 2),
        ("flux", (22, 21, 1), "valid", 186),
    ],
)
def test_large_spaces_are_searched_in_few_executions(
    name: str, bounds: tuple[int, int, int], verdict: str, within: int
) -> None:
    program = dedalus.program(name)
    found = searched(program, FailureSpec(program.nodes, *bounds))
    assert found.verdict == verdict
    assert len(found.executions) <= within
    assert verdict == "unknown" or found.complete


@pytest.mark.parametrize(
    ("name", "bounds", "within"),
    [
        ("simple", (4, 2, 0), 2),
        ("retry", (4, 2, 1), 3),
        ("classic", (5, 3, 0), 5),
        ("2pc", (5, 0, 1), 2),
        ("2pc-ctp", (8, 0, 1), 3),
        ("3pc", (9, 7, 1), 10),
        ("kafka", (7, 4, 1), 10),
    ],
)
def test_the_first_violation_comes_as_early_as_in_the_paper(
    name: str, bounds: tuple[int, int, int], within: int
) -> None:
    program = dedalus.program(name)
    spec = FailureSpec(program.nodes, *bounds)
    found = search(RoundExecutor(program, spec), spec.bounds)
    assert found.coverage.to_first is not None
    assert found.coverage.to_first <= within
