"""Pictures of protocol runs in synchronous rounds, from what a result shows of them.

The form is ``details["pictures"]`` of a protocol's result: nodes, rounds, messages with the round
in which each was sent and arrived (or null), crashes, and a lineage graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx

from bettong.reports.lineage_cut import Box, Lineage
from bettong.reports.spacetime import Arrow, Diagram, Fault, Mark

MAX_BOXES = 60


def rounds_diagram(picture: Mapping[str, Any]) -> Diagram:
    """A space-time diagram with two rows for each round: what is sent, what has arrived."""
    nodes = tuple(str(n) for n in picture["nodes"])
    rounds = int(picture["rounds"])
    arrows, marks = [], []
    labels: dict[tuple[str, int], list[str]] = {}
    for message in picture.get("messages", ()):
        source, target = str(message["sender"]), str(message["receiver"])
        sent, arrives = int(message["sent"]), message.get("arrives")
        lost = arrives is None
        row = 2 * (sent - 1)
        end = row + 2 if lost else 2 * (int(arrives) - 1)
        arrows.append(Arrow(source, target, row, end, lost, False, "plain"))
        names = labels.setdefault((source, row), [])
        if str(message.get("name", "")) not in names:
            names.append(str(message.get("name", "")))
    crashes = {str(c["node"]): int(c["round"]) for c in picture.get("crashes", ())}
    for node in nodes:
        for time in range(1, rounds + 1):
            row = 2 * (time - 1)
            down = node in crashes and time >= crashes[node]
            message = ", ".join(labels.get((node, row), ()))
            label = f"{time} {message}".strip()
            marks.append(Mark(node, row, row, label, "plain", "never" if down else "done", 1))
    faults = tuple(
        Fault(node, 2 * (time - 1), f"{node} crashes in round {time}")
        for node, time in crashes.items()
        if node in nodes
    )
    return Diagram(nodes, 2 * rounds, tuple(marks), tuple(arrows), faults)


def recorded_lineage(value: Mapping[str, Any]) -> Lineage | None:
    """A lineage graph in the form of results; None when it has no nodes or is not acyclic."""
    reported = {str(n["id"]): n for n in list(value.get("nodes", ()))[:MAX_BOXES]}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(reported)
    graph.add_edges_from(
        (str(a), str(b))
        for a, b in value.get("edges", ())
        if str(a) in reported and str(b) in reported
    )
    if not reported or not nx.is_directed_acyclic_graph(graph):
        return None
    cut = frozenset(name for name, n in reported.items() if n.get("cut"))
    boxes = []
    for depth, names in enumerate(nx.topological_generations(graph)):
        for place, name in enumerate(sorted(names)):
            kind = str(reported[name].get("kind", "fact"))
            label = str(reported[name].get("label") or name)
            if name not in cut:
                boxes.append(Box(name, kind, depth, place, "plain", label=label))
            elif kind == "leaf":
                boxes.append(Box(name, kind, depth, place, "fault", "✕ ", "prevented", label))
            else:
                boxes.append(Box(name, kind, depth, place, "cut", "— ", "does not hold", label))
    return Lineage(tuple(boxes), tuple(nx.transitive_reduction(graph).edges), cut)
