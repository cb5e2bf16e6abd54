"""Lineage as clauses: Tseitin's encoding, one-sided (Plaisted and Greenbaum 1986).

A fact fails only if of each of its firings some premise does, a leaf only by its faults. A firing
has one head, so that it needs no variable of its own: there are twice as many of them as of all
else. Crashes of one node share a chain of variables "has crashed by round t", so that one crash
explains many losses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from bettong.lineage.faults import Fault
from bettong.lineage.graph import FACT, FIRING, Lineage
from bettong.lineage.search.formula import Formula
from bettong.lineage.search.lineage_table import Entry, LineageTable
from bettong.lineage.search.modes import Switches

BATCH = 5000
"""So many clauses are given to the solver at a time."""


class Encoding:
    """What led to the goals, of all lineages so far."""

    def __init__(self, formula: Formula, switches: Switches, goals: Collection[str]) -> None:
        self._formula = formula
        self._switches = switches
        self._goals = goals
        self._fails: dict[str, int] = {}
        self._arrives: dict[str, int] = {}
        self._encoded: set[str] = set()
        self._arrivable: set[str] = set()
        self._aside: dict[str, list[Entry]] = {}
        self._table = LineageTable()
        self._chains: dict[tuple[str, ...], int] = {}

    def extend(self, lineage: Lineage) -> Iterator[tuple[Lineage, list[Fault]]]:
        """Take in more lineage: what it adds to that of the goals and of all that led to them.
        What led to none of them is put aside until it does. Yields each lineage that has been
        written down, this one and those that were put aside, with the faults that are new."""
        again: list[Entry] = []
        seen, fresh = self._encode(lineage, again)
        yield lineage, fresh
        pred, nodes = lineage.graph._pred, lineage.graph._node
        unseen = [id for id in nodes.keys() - seen if nodes[id]["kind"] == FACT and pred[id]]
        if unseen:
            entry = self._table.put(lineage)  # some hundred times as small
            for id in unseen:
                self._aside.setdefault(id, []).append(entry)
        while again:
            earlier = self._table.get(again.pop())
            _, fresh = self._encode(earlier, again)
            yield earlier, fresh

    def failing(self, id: str) -> int:
        """A variable without which this does not fail."""
        found = self._fails.get(id)
        if found is None:
            found = self._fails[id] = self._formula.new()
        return found

    def _arriving(self, id: str) -> int:
        """A variable that says: this fails because something that was lost is not."""
        found = self._arrives.get(id)
        if found is None:
            found = self._arrives[id] = self._formula.new()
        return found

    def _encode(self, lineage: Lineage, again: list[Entry]) -> tuple[set[str], list[Fault]]:
        """Write down what leads to a goal, or to what did; returns what was looked at and the new
        faults, and adds to ``again`` the lineages of which a part that was put aside does so
        now."""
        pred = lineage.graph._pred  # the public view is several times slower
        nodes = dict(lineage.graph.nodes(data=True))
        fresh: list[Fault] = []
        encoded, failing = self._encoded, self.failing
        known = [
            id
            for id, attributes in nodes.items()
            if (id in self._goals or id in encoded) and attributes["kind"] != FIRING
        ]
        seen: set[str] = set()
        clauses: list[list[int]] = []
        for id in lineage.back_from(known):
            seen.add(id)
            attributes = nodes[id]
            new = id not in encoded
            encoded.add(id)
            if attributes["kind"] == FACT:
                fails = failing(id)
                aside = self._aside.pop(id, [])
                again += [earlier for earlier in aside if all(earlier is not a for a in again)]
                if new and not pred[id] and not aside:
                    clauses.append([-fails])
                elif new and attributes["absent"]:
                    further = attributes["further"]
                    switch = self._switches.further if further else self._switches.absences
                    clauses.append([-fails, switch, self._arriving(id)])
                clauses += _firings(pred, id, encoded, failing)
            elif new:
                faults = [lineage.faults[f] for f in attributes["faults"]]
                clauses += self._leaf(failing(id), faults, attributes["lost"], fresh)
            if len(clauses) > BATCH:
                self._formula.clauses(clauses)
                clauses.clear()
        clauses += self._arrivals(lineage, fresh)
        self._formula.clauses(clauses)
        return seen, fresh

    def _arrivals(self, lineage: Lineage, fresh: list[Fault]) -> list[list[int]]:
        """Clauses of :meth:`_arriving` for what this lineage adds."""
        pred = lineage.graph.pred
        nodes = lineage.graph.nodes
        clauses: list[list[int]] = []
        arriving, arrivable = self._arriving, self._arrivable
        for id in lineage.back_from([id for id in nodes if id in self._arrives]):
            attributes = nodes[id]
            arrives = arriving(id)
            new = id not in arrivable
            arrivable.add(id)
            if attributes["kind"] == FACT:
                if new and not pred[id]:
                    clauses.append([-arrives])
                clauses += _firings(pred, id, arrivable, arriving)
            elif new and attributes["lost"]:
                faults = [lineage.faults[f] for f in attributes["faults"]]
                clauses += [[-arrives, -self._formula.fault(f, fresh)] for f in faults]
            elif new:
                clauses.append([-arrives])
        return clauses

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


def _firings(
    pred: Mapping[str, Iterable[str]], fact: str, known: set[str], variable: Callable[[str], int]
) -> list[list[int]]:
    """A clause for each firing of a fact that becomes known: the fact's variable holds only with
    one of a premise."""
    fresh = [firing for firing in pred[fact] if firing not in known]
    known.update(fresh)
    return [[-variable(fact), *map(variable, pred[firing])] for firing in fresh]
