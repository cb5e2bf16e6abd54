"""The order in which relations are filled within a round, and what depends on what.

A relation may depend on another's absence, or on an aggregate of it, only when that other one can
be finished first: the program must be stratifiable. ``@next`` and ``@async`` rules reach into later
rounds and restrict nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import networkx as nx

from bettong.lineage.dedalus.errors import DedalusError
from bettong.lineage.dedalus.lowering import Aggregation, Lowered, PlainRule
from bettong.lineage.dedalus.syntax import Position


class _Edge(NamedTuple):
    source: str
    target: str
    strict: str  # why source must be finished first: "" when it need not be
    position: Position


@dataclass(frozen=True, slots=True)
class Stratum:
    """Relations that are filled together.

    Attributes:
        relations: those that depend on each other, or a single one.
        rules: deductive rules that fill them.
        aggregations: aggregations that fill them.
        recursive: whether a rule reads what the stratum fills.
    """

    relations: frozenset[str]
    rules: tuple[PlainRule, ...]
    aggregations: tuple[Aggregation, ...]
    recursive: bool


def stratify(lowered: Lowered) -> tuple[Stratum, ...]:
    """Strata in the order in which they are filled; raises DedalusError when there is none."""
    edges = list(_edges(lowered))
    graph = nx.DiGraph()
    graph.add_nodes_from(lowered.columns)
    graph.add_edges_from((e.source, e.target) for e in edges)
    condensed = nx.condensation(graph)
    place = condensed.graph["mapping"]
    for edge in edges:
        if edge.strict and place[edge.source] == place[edge.target]:
            raise _not_stratifiable(graph, edge)
    rules: dict[str, list[PlainRule]] = {}
    for rule in lowered.rules:
        if rule.timing == "now":
            rules.setdefault(rule.relation, []).append(rule)
    aggregations: dict[str, list[Aggregation]] = {}
    for aggregation in lowered.aggregations:
        aggregations.setdefault(aggregation.relation, []).append(aggregation)
    strata = []
    for number in nx.topological_sort(condensed):
        members = sorted(condensed.nodes[number]["members"])
        strata.append(
            Stratum(
                frozenset(members),
                tuple(r for m in members for r in rules.get(m, ())),
                tuple(a for m in members for a in aggregations.get(m, ())),
                len(members) > 1 or graph.has_edge(members[0], members[0]),
            )
        )
    return tuple(strata)


def _edges(lowered: Lowered) -> Iterator[_Edge]:
    for rule in lowered.rules:
        if rule.timing == "now":
            for term in rule.reads:
                strict = "notin" if term.negated else ""
                where = term.predicate.position
                yield _Edge(term.predicate.relation, rule.relation, strict, where)
    for agg in lowered.aggregations:
        yield _Edge(agg.source, agg.relation, "an aggregate", agg.position)


def _not_stratifiable(graph: nx.DiGraph, edge: _Edge) -> DedalusError:
    back = nx.shortest_path(graph, edge.target, edge.source)
    circle = " -> ".join(n.split("#")[0] for n in [edge.source, *back])
    return DedalusError(
        edge.position,
        f"not stratifiable: {edge.target.split('#')[0]} depends on itself through {edge.strict} "
        f"in the same round ({circle}); expected @next or @async on one of these rules",
    )


def needed_for(lowered: Lowered, goals: Iterable[str], *, within_round: bool) -> frozenset[str]:
    """Relations on which the goals depend, themselves included.

    ``within_round`` follows deductive rules only.
    """
    above: dict[str, set[str]] = {}
    for edge in _edges(lowered):
        above.setdefault(edge.target, set()).add(edge.source)
    if not within_round:
        for rule in lowered.rules:
            for term in rule.reads:
                above.setdefault(rule.relation, set()).add(term.predicate.relation)
    found: set[str] = set()
    waiting = list(goals)
    while waiting:
        relation = waiting.pop()
        if relation not in found:
            found.add(relation)
            waiting += above.get(relation, ())
    return frozenset(found)
