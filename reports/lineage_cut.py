"""The lineage of an outcome in the good run, and where the faults cut it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import networkx as nx

from bettong.lineage.trace import TraceEvent
from bettong.reports.steps import carried, faulted_steps, input_of

MAX_BOXES = 32


@dataclass(frozen=True, slots=True)
class Box:
    """One step (or fact) of the lineage.

    Attributes:
        step: its id, unique in the graph.
        node: where it was taken, or what kind of fact it is.
        depth: how many steps of its longest chain of causes are shown, for the row.
        place: its place in the row.
        look: ``fault`` where a fault fires, ``cut`` when the faulted run lacks it, ``again``
            when that run took it more often.
        mark: a sign for those who do not see colours.
    """

    step: str
    node: str
    depth: int
    place: int
    look: Literal["plain", "fault", "cut", "again"]
    mark: str = ""
    note: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Steps, edges from cause to effect, and the steps that the faulted run lacks."""

    boxes: tuple[Box, ...]
    edges: tuple[tuple[str, str], ...]
    cut: frozenset[str]


def lineage_of(
    good: Sequence[TraceEvent],
    bad: Sequence[TraceEvent],
    faults: Collection[str],
    messages: Collection[str],
) -> Lineage | None:
    """The causes of the last step that carried a witness, and of the steps that faults hit
    (one that only keeps a thing from being done again is no cause of it), up to MAX_BOXES.

    None when the good run says nothing of the messages.
    """
    ended = {e.step: e for e in good if e.phase == "after"}
    done = {e.step: ended[e.step] for e in good if e.step in ended}  # in the order begun
    wanted = [m for m in map(input_of, messages) if m]
    goals = [s for s, e in done.items() if any(carried(e, *m) for m in wanted)]
    faulted = {step for fault in faults for step, _ in faulted_steps(fault)}
    targets = [*goals[-1:], *(s for s in done if s in faulted)]
    if not targets:
        return None
    times = Counter(e.step for e in bad if e.phase == "after")
    graph = nx.transitive_reduction(_ancestry(done, targets, faulted))
    cut = frozenset(s for s in graph if s not in times)
    boxes = []
    for depth, steps in enumerate(nx.topological_generations(graph)):
        for place, step in enumerate(sorted(steps)):
            event = done[step]
            if step in faulted:
                boxes.append(Box(step, event.node, depth, place, "fault", "✕ ", "a fault is here"))
            elif step in cut:
                boxes.append(
                    Box(step, event.node, depth, place, "cut", "— ", "not in the faulted run")
                )
            elif times[step] > 1:
                note = f"{times[step]} times in the faulted run"
                boxes.append(Box(step, event.node, depth, place, "again", f"{times[step]}x ", note))
            else:
                boxes.append(Box(step, event.node, depth, place, "plain"))
    return Lineage(tuple(boxes), tuple(graph.edges), cut)


def _ancestry(
    done: dict[str, TraceEvent], targets: list[str], faulted: set[str]
) -> nx.DiGraph[str]:
    """The targets' causes, nearest first; edges that would close a circle are left out."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(targets)
    waiting = list(dict.fromkeys(targets))
    while waiting and len(graph) < MAX_BOXES:
        step = waiting.pop(0)
        causes = _causes(done, step)
        for cause in sorted(causes, key=lambda c: c not in faulted)[:6]:
            if cause in graph and nx.has_path(graph, step, cause):
                continue
            if cause not in graph:
                waiting.append(cause)
            graph.add_edge(cause, step)
    return graph


def _causes(done: dict[str, TraceEvent], step: str) -> list[str]:
    """A request is answered by a step that it causes: what waited for the request waited for
    that answer, so the answer stands between the two and the circle is opened."""
    found: dict[str, None] = {}
    for cause in done[step].causes:
        if cause not in done or cause == step or _answers(done, cause, step):
            continue
        replies = [r for r in done[cause].causes if r != step and _answers(done, r, cause)]
        served = _answers(done, step, cause)
        found |= dict.fromkeys([cause] if served or not replies else replies)
    return list(found)


def _answers(done: dict[str, TraceEvent], reply: str, request: str) -> bool:
    link = done[request].link
    return (
        reply in done
        and request in done[reply].causes
        and link is not None
        and link.endswith(f"->{done[reply].node}")
    )
