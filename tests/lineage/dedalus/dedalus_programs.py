"""Random small Dedalus programs, and what a lineage says about other schedules."""

from __future__ import annotations

from hypothesis import strategies as st

from bettong.lineage.faults import FaultSet
from bettong.lineage.graph import Lineage

RELATIONS = ("p", "q", "r", "s")
NODES = ("a", "b")


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of a stratified program over (node, number) relations, most of them kept."""
    # in the far future, so that every relation is one
    lines = ['p("a", 1)@1;', *(f'{relation}("a", 1)@9;' for relation in RELATIONS)]
    lines += [
        f'{relation}("{draw(st.sampled_from(NODES))}", {draw(st.integers(1, 2))})'
        f"@{draw(st.integers(1, 2))};"
        for relation in draw(st.lists(st.sampled_from(RELATIONS), min_size=1, max_size=4))
    ]
    lines += [
        f"{relation}(N, V)@next :- {relation}(N, V){draw(st.sampled_from(UNLESS))};"
        for relation in RELATIONS
        if draw(st.integers(0, 4))
    ]
    lines += draw(st.lists(SPREAD, min_size=1, max_size=2))
    lines += [draw(rules(timing)) for timing in ("@async", *draw(st.lists(TIMINGS, max_size=5)))]
    return "\n".join([*lines, *draw(st.tuples(PRE, POST))]) + "\n"


SPREAD = st.sampled_from(
    [
        'p("b", V)@async :- p(N, V);',
        'q("b", V)@async :- p(N, V);',
        'q("a", V)@async :- p(N, V);',
        "q(N, V) :- p(N, V);",
        "q(N, V)@async :- p(M, V), p(N, _);",
        'q("a", V)@next :- q("b", V), p("a", _);',
    ]
)
UNLESS = ("", "", "", ", notin p(N, V)", ", notin s(N, _)")
TIMINGS = st.sampled_from(["", "", "@next", "@async", "@async"])
PRE = st.sampled_from(["pre(N, V) :- p(N, V);", "pre(N, V) :- q(N, V), notin crash(N, N, _);"])
POST = st.sampled_from(
    [
        "post(N, V) :- q(N, V);",
        "post(N, V) :- p(N, V);",
        "post(N, V) :- p(N, V), notin r(_, V);",
        "post(N, V) :- p(N, V), notin crash(N, N, _);",
        "post(N, V) :- q(N, V), p(M, V), N != M;",
        'post("a", count<V>) :- q(_, V);',
        'post("a", max<V>) :- r(_, V);\npost(N, V) :- s(N, V);',
        "post(N, V) :- p(N, V), q(_, _)@2;",
    ]
)


@st.composite
def rules(draw: st.DrawFn, timing: str) -> str:
    """A safe rule. One that holds now negates and counts only what comes before its head."""
    head = draw(st.sampled_from(RELATIONS))
    level = RELATIONS.index(head) if timing == "" else len(RELATIONS)
    counts = level > 0 and draw(st.integers(0, 3)) == 0
    read = st.sampled_from(RELATIONS[: level + (not counts)])
    place = st.sampled_from(["N", "N", "M", '"a"', "_"])
    number = st.sampled_from(["V", "V", "W", "1", "_"])
    body = [f"{draw(read)}({draw(st.sampled_from(['N', 'N', QUOTED]))}, {draw(number)})"]
    for _ in range(draw(st.integers(0, 2))):
        body.append(f"{draw(read)}({draw(place)}, {draw(number)})")
    if draw(st.integers(0, 5)) == 0 and timing:
        body[-1] += "@1"
    text = " ".join(body)
    places = [v for v in ("N", "M") if f"({v}" in text] + ['"a"']
    numbers = [v for v in ("V", "W") if f" {v})" in text]
    if level > 0 and draw(st.booleans()):
        inner = st.sampled_from([*numbers, "_", "2"])
        body.append(
            f"notin {draw(st.sampled_from(RELATIONS[:level]))}"
            f"({draw(st.sampled_from(places))}, {draw(inner)})"
        )
    if len(numbers) == 2 and draw(st.booleans()):
        body.append(f"V {draw(st.sampled_from(['==', '!=', '<', '>=']))} W")
    elif len(places) == 3 and draw(st.booleans()):
        body.append("N != M")
    values = [*numbers, "2"]
    if timing and numbers:
        values.append(f"{numbers[0]} - 1")
    if counts and numbers:
        values = [f"{f}<{numbers[0]}>" for f in ("count", "min", "max", "sum")]
    where = draw(st.sampled_from(places if timing != "@async" else [*places, QUOTED]))
    return f"{head}({where}, {draw(st.sampled_from(values))}){timing} :- {', '.join(body)};"


QUOTED = '"b"'


def follows(lineage: Lineage, schedule: FaultSet) -> set[str]:
    """Everything in a lineage that holds when exactly these faults fire (least fixpoint)."""
    graph = lineage.graph
    missing = {n: graph.in_degree(n) for n, a in graph.nodes(data=True) if a["kind"] == "firing"}
    waiting = [n for n, count in missing.items() if not count]
    for n, a in graph.nodes(data=True):
        unexplained = a["kind"] == "fact" and a["absent"] and not graph.in_degree(n)
        if unexplained or (a["kind"] == "leaf" and lineage.leaf_holds(n, schedule)):
            waiting.append(n)
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found.add(node)
        for after in graph.successors(node):
            if after in missing:
                missing[after] -= 1
                if missing[after]:
                    continue
            waiting.append(after)
    return found
