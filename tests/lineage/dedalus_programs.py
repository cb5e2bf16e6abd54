"""Random small Dedalus programs, and what a lineage says about other schedules."""

from __future__ import annotations

from hypothesis import strategies as st

from bettong.lineage.faults import Schedule
from bettong.lineage.graph import Lineage

RELATIONS = ("p", "q", "r", "s")
NODES = ("a", "b")


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of a program over (node, number) relations; it may not be stratifiable."""
    lines = [
        f'{relation}("{draw(st.sampled_from(NODES))}", {draw(st.integers(1, 2))})'
        f"@{draw(st.integers(1, 2))};"
        for relation in RELATIONS
        for _ in range(draw(st.integers(1, 2)))
    ]
    lines += [draw(rules()) for _ in range(draw(st.integers(2, 6)))]
    lines += ["pre(N, V) :- p(N, V);"]
    return "\n".join([*lines, draw(st.sampled_from(GOALS))]) + "\n"


GOALS = (
    "post(N, V) :- q(N, V);",
    "post(N, V) :- p(N, V), notin q(N, V);",
    "post(N, V) :- p(N, V), notin crash(N, N, _);",
    "post(N, V) :- q(N, V), p(M, V), N != M;",
    'post("a", count<V>) :- q(_, V);',
    'post("a", max<V>) :- r(_, V);',
    "post(N, V) :- q(N, V)@2;",
)


@st.composite
def rules(draw: st.DrawFn) -> str:
    """A safe rule."""
    place = st.sampled_from(["N", "N", "M", '"a"', "_"])
    number = st.sampled_from(["V", "V", "W", "1", "_"])
    first = draw(st.sampled_from(["N", '"b"']))
    body = [f"{draw(st.sampled_from(RELATIONS))}({first}, {draw(number)})"]
    for _ in range(draw(st.integers(0, 2))):
        body.append(f"{draw(st.sampled_from(RELATIONS))}({draw(place)}, {draw(number)})")
    if draw(st.integers(0, 5)) == 0:
        body[-1] += "@1"
    text = " ".join(body)
    places = [v for v in ("N", "M") if f"({v}" in text] + ['"a"']
    numbers = [v for v in ("V", "W") if f" {v})" in text]
    if draw(st.booleans()):
        inner = st.sampled_from([*numbers, "_", "2"])
        body.append(
            f"notin {draw(st.sampled_from(RELATIONS))}"
            f"({draw(st.sampled_from(places))}, {draw(inner)})"
        )
    if len(numbers) == 2 and draw(st.booleans()):
        body.append(f"V {draw(st.sampled_from(['==', '!=', '<', '>=']))} W")
    elif len(places) == 3 and draw(st.booleans()):
        body.append("N != M")
    timing = draw(st.sampled_from(["", "", "@next", "@async"]))
    values = [*numbers, "2"]
    if timing and numbers:
        values += [f"{numbers[0]} - 1", f"count<{numbers[0]}>", f"min<{numbers[0]}>"]
    elif numbers:
        values += [f"max<{numbers[0]}>", f"sum<{numbers[0]}>"]
    head = draw(st.sampled_from(RELATIONS))
    where = draw(st.sampled_from(places if timing != "async" else [*places, '"b"']))
    return f"{head}({where}, {draw(st.sampled_from(values))}){timing} :- {', '.join(body)};"


def follows(lineage: Lineage, schedule: Schedule) -> set[str]:
    """Everything in a lineage that holds when exactly these faults strike (least fixpoint)."""
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
