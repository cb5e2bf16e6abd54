"""Fault sets that are not put up again."""

from __future__ import annotations

from bettong.lineage.faults import FaultSet
from bettong.lineage.search.formula import Formula


class Excluded:
    """Sets that have been tried, and those that break a goal already."""

    def __init__(self, formula: Formula) -> None:
        self._formula = formula
        self._sets: set[FaultSet] = set()
        self._unmet: list[FaultSet] = []

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
                differs = [v if f not in schedule else -v for f, v in faults.items()]
                self._formula.clause(*differs, self._formula.beyond)
            else:
                unmet.append(schedule)
        self._unmet = unmet
