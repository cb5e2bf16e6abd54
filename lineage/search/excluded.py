"""Fault sets that are not put up again."""

from __future__ import annotations

from bettong.lineage.faults import FaultSet
from bettong.lineage.search.formula import Formula
from bettong.lineage.search.limits import Limits


class Excluded:
    """Sets that have been tried, and those that break a goal already.

    Attributes:
        forbidden: where this literal holds, none of those that were tried is a solution.
        met: the variables of these, as far as all of their faults are known.
    """

    def __init__(self, formula: Formula, limits: Limits) -> None:
        self._formula = formula
        self._limits = limits
        self._sets: set[FaultSet] = set()
        self._unmet: list[FaultSet] = []
        self.forbidden = formula.new()
        self.met: list[frozenset[int]] = []

    def add(self, schedule: FaultSet) -> None:
        """Exactly this set."""
        if schedule not in self._sets:
            self._sets.add(schedule)
            self._unmet.append(schedule)
            self.block_met()

    def add_supersets(self, schedule: FaultSet) -> None:
        """Each set that contains these faults."""
        faults = self._formula.faults
        if schedule <= faults.keys():
            self._formula.clause(*(-faults[f] for f in schedule))

    def block_met(self) -> None:
        """Block the sets all of whose faults are known by now. One with a fault that is not is
        never put up, and what is known of it is another set."""
        faults = self._formula.faults
        unmet = []
        for schedule in self._unmet:
            if schedule <= faults.keys():
                self._block([faults[fault] for fault in schedule])
            else:
                unmet.append(schedule)
        self._unmet = unmet

    def _block(self, variables: list[int]) -> None:
        """Only with another fault, and without one where none may come beside these. The fewer
        faults a clause names, the more it tells the solver."""
        self.met.append(frozenset(variables))
        without = [-self.forbidden, *(-v for v in variables)]
        if self._limits.full(variables):
            self._formula.clause(*without)
        else:
            beside = self._limits.beside(variables)
            self._formula.clause(*without, *beside, self._formula.beyond)
