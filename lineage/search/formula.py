"""A growing formula with its SAT solver, in which each known fault is a variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from time import perf_counter

from pysat.card import ITotalizer
from pysat.solvers import Solver

from bettong.lineage.faults import Fault, FaultSet
from bettong.lineage.search.executor import BudgetSpentError

_SLICE = 2000
"""After so many conflicts, a second or two, the solver looks whether its time is up."""


class Formula:
    """Clauses are only added, so that the solver does no work twice.

    Args:
        spent: whether the time that solving may take is up.

    Attributes:
        faults: the variable of each known fault, by its id, in the order in which they became
            known.
        known: the fault of each of these variables, in the same order.
        beyond: a variable that stands for all faults that are not known yet.
        seconds: what the solver took.
    """

    def __init__(self, spent: Callable[[], bool]) -> None:
        self._solver = Solver(name="glucose4")
        self._spent = spent
        self._top = 0
        self.seconds = 0.0
        self.faults: dict[str, int] = {}
        self.known: dict[int, Fault] = {}
        self.beyond, self._within = self.new(), 0

    def close(self) -> None:
        """Give back what the solver holds."""
        self._solver.delete()

    def new(self) -> int:
        """A new variable."""
        self._top += 1
        return self._top

    def clause(self, *literals: int) -> None:
        """One of these literals holds."""
        self._solver.add_clause(literals)

    def clauses(self, clauses: Sequence[Sequence[int]]) -> None:
        """The same for each of many."""
        self._solver.append_formula(clauses)

    # faults

    def fault(self, fault: Fault, fresh: list[Fault]) -> int:
        """The variable of a fault, which is added to ``fresh`` when it was not known."""
        found = self.faults.get(fault.id)
        if found is None:
            found = self.faults[fault.id] = self.new()
            self.known[found] = fault
            fresh.append(fault)
        return found

    def go_beyond(self) -> None:
        """What differs from an excluded set by a fault that became known later is another set:
        the new ones and another such variable take the place of ``beyond``."""
        fresh = list(islice(self.known, self._within, None))
        if fresh:
            before, self.beyond = self.beyond, self.new()
            self.clause(-before, *fresh, self.beyond)
            self._within = len(self.known)

    def set_of(self, variables: Iterable[int]) -> FaultSet:
        """The ids of these variables' faults."""
        return frozenset(self.known[v].id for v in variables)

    # solving

    def holds(self, *assumptions: int) -> bool:
        """Whether there is a set, of known faults, under these assumptions; raises
        BudgetSpentError when the time is up before that is known."""
        while (found := self._solve(assumptions, _SLICE)) is None:
            if self._spent():
                raise BudgetSpentError("the time was up while the solver looked for fault sets")
        return found

    def fails(self, *assumptions: int, conflicts: int) -> bool:
        """Whether it is seen, within so many conflicts, that there is none."""
        return self._solve(assumptions, conflicts) is False

    def _solve(self, assumptions: tuple[int, ...], conflicts: int) -> bool | None:
        """None when the conflicts did not do. Other threads, which serve the steps of runs that
        are under way, go on meanwhile: only a solver that expects to be interrupted lets them."""
        began = perf_counter()
        self._solver.conf_budget(conflicts)
        found: bool | None = self._solver.solve_limited(
            assumptions=[-self.beyond, *assumptions], expect_interrupt=True
        )
        self.seconds += perf_counter() - began
        return found

    def chosen(self) -> list[int]:
        """The variables of the faults in the set that was found last."""
        model = self._solver.get_model() or ()
        return [v for v in self.known if v <= len(model) and model[v - 1] > 0]

    def core(self) -> list[int]:
        """Assumptions that cannot hold together, when none was found."""
        return list(self._solver.get_core() or ())

    # counting

    def total(self, literals: list[int]) -> ITotalizer:
        """Outputs that say how many of these literals hold, of two."""
        total = ITotalizer(literals, ubound=2, top_id=self._top)
        self._top = max(self._top, total.top_id)
        self.clauses(total.cnf.clauses)
        return total

    def widen(self, total: ITotalizer, bound: int) -> None:
        """Have outputs up to this bound."""
        total.increase(ubound=bound + 1, top_id=self._top)
        self._top = max(self._top, total.top_id)
        self.clauses(total.cnf.clauses[-total.nof_new :])
