"""What is asked of a goal's precondition: nobody misses an outcome that nobody asked for."""

from __future__ import annotations

from collections.abc import Callable

from bettong.lineage.graph import FACT, FIRING, Lineage
from bettong.lineage.search.formula import Formula
from bettong.lineage.search.modes import Switches


class Preconditions:
    """Goals with their preconditions: one of them is chosen, and fails.

    ``failing``: the variable without which a fact, firing or leaf does not fail.

    Attributes:
        exist: whether any goal has one.
    """

    def __init__(
        self,
        formula: Formula,
        switches: Switches,
        goals: dict[str, str | None],
        failing: Callable[[str], int],
    ) -> None:
        self.exist = any(given is not None for given in goals.values())
        self._formula = formula
        self._switches = switches
        self._goals = goals
        self._failing = failing
        self._chosen = {goal: formula.new() for goal in goals}
        formula.clause(*self._chosen.values())
        self._pinned: set[tuple[str, str, bool]] = set()

    def take_as_met(self, lineage: Lineage) -> None:
        """Where the precondition is given, what it reads cannot fail; where it is kept, nothing
        that led to it can."""
        if not self.exist:
            return
        pred = lineage.graph.pred
        nodes = lineage.graph.nodes
        for goal, given in self._goals.items():
            if given is None or given not in lineage.graph:
                continue
            direct = dict.fromkeys(p for firing in pred[given] for p in pred[firing])
            for id in lineage.back_from(direct, lambda cause: nodes[cause].get("absent", False)):
                if id in direct:
                    self._pin(goal, id, direct=True)
                self._pin(goal, id, direct=False)

    def _pin(self, goal: str, id: str, *, direct: bool) -> None:
        if (goal, id, direct) not in self._pinned:
            self._pinned.add((goal, id, direct))
            switch = self._switches.given if direct else self._switches.kept
            self._formula.clause(-self._chosen[goal], -switch, -self._failing(id))

    def ask(self, lineage: Lineage) -> None:
        """A goal fails only if it is chosen; when asked, its precondition keeps a way to hold."""
        holds: dict[str, int] = {}
        for goal, given in self._goals.items():
            some = self._chosen[goal]
            self._formula.clause(-some, self._failing(goal))
            if given is not None and given in lineage.graph:
                holding = self._holding(lineage, given, holds)
                self._formula.clause(-some, -self._switches.asked, holding)

    def _holding(self, lineage: Lineage, goal: str, holds: dict[str, int]) -> int:
        """A variable that implies that the fact holds in a way that this lineage knows."""
        clause, faults = self._formula.clause, self._formula.faults
        todo = [goal]
        holds.setdefault(goal, self._formula.new())
        while todo:
            id = todo.pop()
            attributes = lineage.graph.nodes[id]
            causes = [] if attributes.get("absent") else list(lineage.graph.pred[id])
            for cause in causes:
                if cause not in holds:
                    holds[cause] = self._formula.new()
                    todo.append(cause)
            own = holds[id]
            if attributes["kind"] == FIRING:
                for cause in causes:
                    clause(-own, holds[cause])
            elif attributes["kind"] == FACT:
                if causes:
                    clause(-own, *(holds[c] for c in causes))
            else:
                given = self._formula.new()
                clause(-own, given, *(holds[c] for c in causes))
                known = [faults[f] for f in attributes["faults"] if f in faults]
                if attributes["lost"]:
                    clause(-given, *known)
                else:
                    for fault in known:
                        clause(-given, -fault)
        return holds[goal]
