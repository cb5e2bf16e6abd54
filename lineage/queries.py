"""Questions to a lineage graph: supports, cones, and where a bad run parts from a good one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import networkx as nx
from pysat.solvers import Solver

from bettong.lineage.faults import FaultSet
from bettong.lineage.graph import FACT, FIRING, LEAF, Lineage


def _derived(graph: nx.DiGraph, leaf_holds: Callable[[str], bool]) -> dict[str, int]:
    """Everything that holds given the leaves that do, with its place in an order in which causes
    come before effects: the least solution, so that facts that support only one another do not
    hold. A fact without firings is given."""
    waiting: dict[str, int] = {}
    queue: deque[str] = deque()
    for id, attributes in graph.nodes(data=True):
        causes = len(graph.pred[id])
        if attributes["kind"] == FIRING and causes:
            waiting[id] = causes
        elif leaf_holds(id) if attributes["kind"] == LEAF else not causes:
            queue.append(id)
    order = {id: n for n, id in enumerate(queue)}
    while queue:
        for effect in graph.succ[queue.popleft()]:
            if effect in order:
                continue
            if effect in waiting:
                waiting[effect] -= 1
                if waiting[effect]:
                    continue
            order[effect] = len(order)
            queue.append(effect)
    return order


def holding(lineage: Lineage, schedule: FaultSet = frozenset()) -> set[str]:
    """Every node that holds when exactly these faults fire, as far as this lineage knows."""
    return set(_derived(lineage.graph, lambda leaf: lineage.leaf_holds(leaf, schedule)))


def cone(lineage: Lineage, goal: str) -> nx.DiGraph:
    """The causal cone of a node: all that leads to it, and itself; raises LineageError."""
    lineage.attributes(goal)
    return lineage.graph.subgraph(nx.ancestors(lineage.graph, goal) | {goal}).copy()


def support(lineage: Lineage, goal: str, schedule: FaultSet = frozenset()) -> frozenset[str] | None:
    """Leaves of one way in which a goal holds under these faults, the one derived first; None
    when there is none. It need not be a smallest one. Raises LineageError."""
    lineage.attributes(goal)

    def given(leaf: str) -> bool:
        return lineage.leaf_holds(leaf, schedule)

    order = _derived(lineage.graph, given)
    if goal not in order:
        return None
    leaves: set[str] = set()
    todo, seen = [goal], {goal}
    while todo:
        id = todo.pop()
        causes = [c for c in lineage.graph.pred[id] if c in order]
        kind = lineage.graph.nodes[id]["kind"]
        if kind == LEAF and given(id):
            leaves.add(id)
            continue
        if kind != FIRING and causes:
            causes = [min(causes, key=lambda c: order[c])]
        for cause in causes:
            if cause not in seen:
                seen.add(cause)
                todo.append(cause)
    return frozenset(leaves)


def supports(lineage: Lineage, goal: str) -> Iterator[frozenset[str]]:
    """All minimal supports of a goal: sets of leaves that suffice, none containing another.

    Leaves that cannot fail are taken for granted. Lazily, in no particular order; there can be
    exponentially many. A SAT solver proposes leaves by the AND/OR graph; whether they suffice is
    decided by deriving the goal from them, so that circles are harmless. Raises LineageError.
    """
    part = cone(lineage, goal)
    leaves = {
        id: n
        for n, id in enumerate(
            (i for i, a in part.nodes(data=True) if a["kind"] == LEAF and a["faults"]), 1
        )
    }

    def suffice(chosen: set[str]) -> bool:
        return goal in _derived(part, lambda leaf: leaf not in leaves or leaf in chosen)

    with Solver(name="glucose4") as solver:
        _encode(part, leaves, goal, solver)
        while solver.solve():
            model = set(solver.get_model() or ())
            chosen = {id for id, v in leaves.items() if v in model}
            if not suffice(chosen):
                solver.add_clause([v for id, v in leaves.items() if id not in chosen])
                continue
            for leaf in sorted(chosen):
                if suffice(chosen - {leaf}):
                    chosen.discard(leaf)
            yield frozenset(chosen)
            if not chosen:
                return
            solver.add_clause([-leaves[id] for id in chosen])


def _encode(part: nx.DiGraph, leaves: dict[str, int], goal: str, solver: Solver) -> None:
    """``leaves``: variables that say that a leaf is given; it holds as well when it is derived."""
    variables = {id: n for n, id in enumerate(part.nodes, len(leaves) + 1)}
    for id, attributes in part.nodes(data=True):
        causes = [variables[c] for c in part.pred[id]]
        if attributes["kind"] == FIRING:
            for cause in causes:
                solver.add_clause([-variables[id], cause])
        elif id in leaves:
            solver.add_clause([-variables[id], leaves[id], *causes])
        elif causes and attributes["kind"] == FACT:
            solver.add_clause([-variables[id], *causes])
    solver.add_clause([variables[goal]])


def frontier(lineage: Lineage, goal: str, schedule: FaultSet, most: int = 12) -> list[str]:
    """Firings of a good run's lineage of a goal that do not happen under these faults, nearest
    the goal first, at most so many; none when the goal still holds. Raises LineageError.

    Where a bad run parts from a good one (Oldenburg, Zhu, Ramasubramanian, Alvaro, *Fixed It For
    You: Protocol Repair Using Lineage Graphs*, CIDR 2019).
    """
    lineage.attributes(goal)
    held = holding(lineage, schedule)
    found: list[str] = []
    queue, seen = deque([] if goal in held else [goal]), {goal}
    while queue and len(found) < most:
        for cause in lineage.graph.pred[queue.popleft()]:
            if cause in held or cause in seen:
                continue
            seen.add(cause)
            queue.append(cause)
            if lineage.graph.nodes[cause]["kind"] == FIRING:
                found.append(cause)
    return found[:most]
