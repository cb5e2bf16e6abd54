"""The lineage graph: why each outcome of a run happened.

A directed graph (networkx) of *facts*, *firings* and *leaves*; edges run from cause to effect.
A fact holds when one of its firings does (OR), a firing when all its premises do (AND). A leaf is
given from outside, such as a message delivery or a node's life, and names the faults that falsify
it; where it has firings, one of these will do as well. Several runs of the same input merge into
one graph of alternatives, because equal facts have equal ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import networkx as nx

from bettong.lineage.errors import BettongError
from bettong.lineage.faults import Fault, FaultSet

FACT, FIRING, LEAF = "fact", "firing", "leaf"


class LineageError(BettongError):
    """A lineage graph that contradicts itself."""


class Node(NamedTuple):
    """A node of a lineage; a firing has premises and a head."""

    id: str
    attributes: dict[str, Any]
    premises: tuple[str, ...] = ()
    head: str = ""


@dataclass(slots=True)
class Lineage:
    """Facts, firings and leaves of one run, or of several.

    Node attributes in ``graph``: ``kind`` (``fact`` | ``firing`` | ``leaf``), ``label``; a fact
    has ``absent`` and ``further`` (see :meth:`fact`); a firing has ``rule``; a leaf
    has ``faults`` (ids that decide it) and ``lost`` (see :meth:`leaf`).

    Attributes:
        graph: the networkx graph, cause to effect.
        goals: ids of the facts that a violation must prevent, each on its own; for each of them
            the id of the fact without which nobody asks for it (its precondition), or None.
        faults: every fault that some leaf names, by id.
    """

    graph: nx.DiGraph = field(default_factory=nx.DiGraph)
    goals: dict[str, str | None] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)

    def fact(
        self,
        id: str,
        *,
        goal: bool = False,
        given: str | None = None,
        absent: bool = False,
        further: bool = False,
        label: str = "",
    ) -> str:
        """Add a fact, or mark a known one as a goal (asked for given another fact, if said);
        returns its id.

        An ``absent`` fact says that something was not there; with ``further``, that there was
        nothing else of a kind than what was there.
        """
        if id not in self.graph:
            self.graph.add_node(id, kind=FACT, absent=absent, further=further, label=label or id)
        elif self.graph.nodes[id]["kind"] != FACT:
            raise LineageError(f"{id} is a {self.graph.nodes[id]['kind']}, not a fact")
        if goal:
            self.goals[id] = given
        return id

    def leaf(
        self, id: str, faults: Iterable[Fault] = (), *, lost: bool = False, label: str = ""
    ) -> str:
        """Add what needs no rule: a delivery, a node's life, a given fact; returns its id.

        ``faults`` falsify it: any one of them does. With ``lost`` it is the other way round: the
        leaf says that something was *prevented*, and it holds only while at least one of
        ``faults`` fires. A leaf without faults cannot fail.
        """
        if id not in self.graph:
            ids = []
            for fault in faults:
                self.faults.setdefault(fault.id, fault)
                ids.append(fault.id)
            self.graph.add_node(id, kind=LEAF, faults=tuple(ids), lost=lost, label=label or id)
        return id

    def firing(self, head: str, premises: Iterable[str], rule: str, *, label: str = "") -> str:
        """Say that the rule derived ``head`` from these premises; returns the firing's id.

        Head and premises are added as facts when they are not known yet; a head may be a leaf. The
        id depends on nothing but the arguments, so that the same firing of two runs merges into
        one.
        """
        chosen = tuple(dict.fromkeys(premises))
        digest = blake2b("\0".join(sorted(chosen)).encode(), digest_size=8).hexdigest()
        id = f"{rule}[{digest}] {head}"
        if id in self.graph:
            return id
        if head not in self.graph:
            self.fact(head)
        elif self.graph.nodes[head]["kind"] == FIRING:
            raise LineageError(f"{head} is a firing, and nothing derives one")
        self.graph.add_node(id, kind=FIRING, rule=rule, label=label or rule)
        for premise in chosen:
            if premise not in self.graph:
                self.fact(premise)
            self.graph.add_edge(premise, id)
        self.graph.add_edge(id, head)
        return id

    def nodes(self) -> Iterator[Node]:
        """All nodes, in the order in which they were added."""
        graph = self.graph  # its public views are several times slower
        pred, succ = graph._pred, graph._succ
        for id, attributes in graph._node.items():
            if attributes["kind"] == FIRING:
                (head,) = succ[id]
                yield Node(id, attributes, tuple(pred[id]), head)
            else:
                yield Node(id, attributes)

    def merge(self, other: Lineage) -> int:
        """Add everything of another run of the same input; returns how many nodes were new."""
        known = len(self)
        self.graph.add_nodes_from(other.graph.nodes(data=True))
        self.graph.add_edges_from(other.graph.edges())
        self.goals.update(other.goals)
        self.faults.update(other.faults)
        return len(self) - known

    def firings(self, fact: str) -> Iterator[str]:
        """Firings that derive a fact."""
        yield from self.graph.predecessors(fact)

    def premises(self, firing: str) -> Iterator[str]:
        """Premises of a firing."""
        yield from self.graph.predecessors(firing)

    def back_from(
        self, ids: Iterable[str], unless: Callable[[str], bool] = lambda _: False
    ) -> Iterator[str]:
        """These facts and leaves, and all facts and leaves that led to them, each once.

        ``unless``: what is left out, with what led to nothing else.
        """
        pred = self.graph._pred  # the public view is several times slower
        todo = list(ids)
        seen = set(todo)
        while todo:
            id = todo.pop()
            yield id
            for firing in pred[id]:
                for cause in pred[firing]:
                    if cause not in seen and not unless(cause):
                        seen.add(cause)
                        todo.append(cause)

    def attributes(self, id: str) -> dict[str, Any]:
        """Attributes of a node; raises LineageError when it is not in the graph."""
        if id not in self.graph:
            raise LineageError(f"no {id} in this lineage")
        found: dict[str, Any] = self.graph.nodes[id]
        return found

    def leaf_holds(self, id: str, schedule: FaultSet) -> bool:
        """Whether a leaf is given when exactly these faults fire."""
        attributes = self.graph.nodes[id]
        faulted = not schedule.isdisjoint(attributes["faults"])
        return bool(faulted if attributes["lost"] else not faulted)

    def __len__(self) -> int:
        size: int = self.graph.number_of_nodes()
        return size
