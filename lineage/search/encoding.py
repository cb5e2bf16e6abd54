"""Lineage as clauses: Tseitin's encoding, one-sided (Plaisted and Greenbaum 1986).

A fact fails only if of each of its firings some premise does, a leaf only by its faults. A firing
has one head, so that it needs no variable of its own: there are twice as many of them as of all
else. Crashes of one node share a chain of variables "has crashed by round t", so that one crash
explains many losses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from bettong.lineage.faults import Fault
from bettong.lineage.graph import FACT, FIRING, Lineage
from bettong.lineage.search.formula import Formula
from bettong.lineage.search.lineage_table import FirstSight
from bettong.lineage.search.modes import Switches

BATCH = 5000
"""So many clauses are given to the solver at a time."""


class _Written:
    """Variables of nodes, and of which of them all that led to them is written down."""

    def __init__(self, variable: Callable[[], int]) -> None:
        self._variable = variable
        self._variables: dict[str, int] = {}
        self._nodes: set[str] = set()

    def __contains__(self, id: str) -> bool:
        return id in self._nodes

    def add(self, id: str) -> None:
        """This one is being written down."""
        self._nodes.add(id)

    def of(self, id: str) -> int:
        """The variable of a node."""
        found = self._variables.get(id)
        if found is None:
            found = self._variables[id] = self._variable()
        return found

    def missing(self) -> list[str]:
        """What has a variable and is not written down."""
        return [id for id in self._variables if id not in self._nodes]


class Encoding:
    """What led to the goals, of all lineages so far.

    They are kept as one graph, in which each firing is once. Of it that is written down which led
    to a goal; what a run has shown aside of that is, when another run shows that it led there.

    Attributes:
        has_absences: of that which led to a goal, something was that another thing was not there.
    """

    def __init__(self, formula: Formula, switches: Switches, goals: Collection[str]) -> None:
        self.has_absences = False
        self._formula = formula
        self._switches = switches
        self._goals = goals
        self._nodes: dict[str, Mapping[str, Any]] = {}
        self._faults: dict[str, Fault] = {}
        self._firings: dict[str, dict[str, tuple[str, ...]]] = {}
        self._fails = _Written(formula.new)
        self._arrives = _Written(formula.new)
        self._chains: dict[tuple[str, ...], int] = {}
        self._first_sight = FirstSight()

    def extend(self, lineage: Lineage) -> list[Fault]:
        """Take in more lineage: what it adds to that of the goals and of all that led to them.
        What led to none of them is put aside until it does. Returns the faults that are new."""
        fresh: list[Fault] = []
        firings = self._merge(lineage)
        goals = [id for id in self._goals if id in self._nodes]
        self._write(self._closure(self._fails, firings, goals, partial(self._failing, fresh)))
        lost = self._arrives.missing()
        self._write(self._closure(self._arrives, firings, lost, partial(self._arriving, fresh)))
        return fresh

    def failing(self, id: str) -> int:
        """A variable without which this does not fail."""
        return self._fails.of(id)

    def _merge(self, lineage: Lineage) -> list[tuple[str, tuple[str, ...]]]:
        """Take in the nodes of a lineage; returns head and premises of each firing that is new."""
        nodes, faults = self._first_sight.of(lineage)
        for fault in faults:
            self._faults.setdefault(fault.id, fault)
        firings = []
        for node in nodes:
            if node.attributes["kind"] != FIRING:
                self._nodes.setdefault(node.id, node.attributes)
                continue
            known = self._firings.setdefault(node.head, {})
            if node.id not in known:
                known[node.id] = node.premises
                firings.append((node.head, node.premises))
        return firings

    def _closure(
        self,
        written: _Written,
        firings: Iterable[tuple[str, tuple[str, ...]]],
        ids: Iterable[str],
        own: Callable[[str], Iterable[list[int]]],
    ) -> Iterator[list[int]]:
        """Clauses of those new firings whose head is written down already, of these nodes, and of
        all that led to either, each once; ``own`` gives those of a node itself."""
        of = written.of
        todo = list(ids)
        for head, premises in firings:
            if head in written:
                yield [-of(head), *map(of, premises)]
                todo += premises
        while todo:
            id = todo.pop()
            if id in written:
                continue
            written.add(id)
            yield from own(id)
            for premises in self._firings.get(id, {}).values():
                yield [-of(id), *map(of, premises)]
                todo += premises

    def _write(self, clauses: Iterator[list[int]]) -> None:
        while some := list(islice(clauses, BATCH)):
            self._formula.clauses(some)

    def _failing(self, fresh: list[Fault], id: str) -> Iterator[list[int]]:
        """When a node fails, as far as it does not hang on its firings."""
        node, fails = self._nodes[id], self._fails.of(id)
        if node["kind"] != FACT:
            faults = [self._faults[fault] for fault in node["faults"]]
            yield from self._leaf(fails, faults, node["lost"], fresh)
        elif id not in self._firings:
            yield [-fails]
        elif node["absent"]:
            self.has_absences = True
            switch = self._switches.further if node["further"] else self._switches.absences
            yield [-fails, switch, self._arrives.of(id)]

    def _arriving(self, fresh: list[Fault], id: str) -> Iterator[list[int]]:
        """When a node fails because something that was lost is not."""
        node, arrives = self._nodes[id], self._arrives.of(id)
        if node["kind"] != FACT and node["lost"]:
            for fault in node["faults"]:
                yield [-arrives, -self._formula.fault(self._faults[fault], fresh)]
        elif node["kind"] != FACT or id not in self._firings:
            yield [-arrives]

    def _leaf(
        self, fails: int, faults: list[Fault], lost: bool, fresh: list[Fault]
    ) -> list[list[int]]:
        variables = [self._formula.fault(f, fresh) for f in faults]
        if lost:
            return [[-fails, -v] for v in variables]
        alone = [v for v, f in zip(variables, faults, strict=True) if not f.group]
        grouped: dict[str, list[str]] = {}
        for fault in faults:
            if fault.group:
                grouped.setdefault(fault.group, []).append(fault.id)
        return [[-fails, *alone, *(self._chain(tuple(ids)) for ids in grouped.values())]]

    def _chain(self, ids: tuple[str, ...]) -> int:
        faults = self._formula.faults
        if len(ids) == 1:
            return faults[ids[0]]
        if ids not in self._chains:
            self._chains[ids] = some = self._formula.new()
            self._formula.clause(-some, self._chain(ids[:-1]), faults[ids[-1]])
        return self._chains[ids]
