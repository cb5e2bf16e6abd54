"""Fault hypotheses: the smallest sets of faults that break every known way to a goal.

The AND/OR lineage is a formula (:mod:`~bettong.lineage.search.encoding`,
:mod:`~bettong.lineage.search.preconditions`), whose smallest solutions within the bounds are the
hypotheses (:mod:`~bettong.lineage.search.limits`, :mod:`~bettong.lineage.search.pairs`,
:mod:`~bettong.lineage.search.minimum`).
Everything is incremental: more lineage only adds clauses, so that no work is done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter

from bettong.lineage.faults import Bounds, Fault, FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.search.encoding import Encoding
from bettong.lineage.search.excluded import Excluded
from bettong.lineage.search.formula import Formula
from bettong.lineage.search.limits import Limits
from bettong.lineage.search.minimum import CoreGuided, Minimum
from bettong.lineage.search.modes import LATE, MODES, WIDEST, Mode, Switches
from bettong.lineage.search.pairs import Pairs
from bettong.lineage.search.preconditions import Preconditions

_PAIR = 2


class Hypotheses:
    """Minimal fault sets that falsify at least one goal of a growing lineage, smallest first.

    The goals are those of the first lineage given. ``seconds`` is the time taken by everything
    here: writing formulas down, solving them, choosing among solutions. Whatever looks for sets
    raises BudgetSpentError once ``spent`` says that the time is up and none was found yet.
    """

    def __init__(
        self, lineage: Lineage, bounds: Bounds, spent: Callable[[], bool] = lambda: False
    ) -> None:
        self.seconds = 0.0
        self._formula = Formula(spent)
        self._switches = Switches.new(self._formula.new)
        self._limits = Limits(self._formula, bounds)
        self._excluded = Excluded(self._formula, self._limits)
        self._pairs = self._tables(bounds)
        self._minimum = Minimum(self._formula, self._limits)
        self._searches = {mode: self._search(mode) for mode in MODES}
        goals = dict(lineage.goals)
        self._encoding = Encoding(self._formula, self._switches, goals)
        self._preconditions = Preconditions(
            self._formula, self._switches, goals, self._encoding.failing
        )
        self.extend(lineage)
        with self._timed():
            self._preconditions.ask(lineage)

    def __enter__(self) -> Hypotheses:
        return self

    def __exit__(self, *_: object) -> None:
        self._formula.close()

    @property
    def solver_seconds(self) -> float:
        """Of ``seconds``, what the SAT solver itself took."""
        return self._formula.seconds

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = perf_counter()
        try:
            yield
        finally:
            self.seconds += perf_counter() - began

    # what is known

    def extend(self, lineage: Lineage) -> None:
        """Take in more lineage: what it adds to that of the goals and of all that led to them.
        What led to none of them is put aside until it does."""
        with self._timed():
            fresh = self._encoding.extend(lineage)
            if fresh:
                self._register(fresh)
            self._preconditions.take_as_met(lineage)

    def _register(self, fresh: list[Fault]) -> None:
        """Take in new faults. Bounds are not given to the solver before a set exceeds them."""
        for fault in fresh:
            self._limits.take_in(fault)
        self._formula.go_beyond()
        self._excluded.block_met()
        if self._limits.most > _PAIR:
            self._pairs.clear()
        for search in self._searches.values():
            search.over = False  # together with the new ones, what was tried may break a goal

    def exclude_supersets(self, schedule: FaultSet) -> None:
        """Put up no set any more that contains these faults: they break the goal already."""
        self._excluded.add_supersets(schedule)

    def exclude(self, schedule: FaultSet) -> None:
        """Do not put up exactly this set again; its supersets may still come."""
        self._excluded.add(schedule)

    # search

    def smallest(self, mode: Mode = "present") -> FaultSet | None:
        """A smallest fault set within the bounds that falsifies a goal as far as is known, or
        None when there is none."""
        late, mode = mode in LATE, mode if self._modes_differ else WIDEST
        with self._timed():
            if mode in self._pairs:
                return self._pairs[mode].smallest(late=late)
            search = self._searches[mode]
            search.take_in(self._formula)
            found = None if search.over else self._minimum.of(search, late=late)
            search.over = found is None
        return found

    @property
    def _modes_differ(self) -> bool:
        """Whether anything known hangs on the mode. In the lineage of a real system nothing does,
        and that no set is left has to be shown but once."""
        return self._encoding.has_absences or self._preconditions.exist

    def extending(self, schedule: FaultSet, mode: Mode) -> FaultSet | None:
        """The same with this set and one fault more, or None."""
        with self._timed():
            inside, outside = self._parted(schedule)
            search = self._search(mode, *inside)
            search.avoid(outside)
            known = len(inside) == len(schedule)
            found = self._minimum.of(search, late=mode in LATE) if known else None
        return found if found is not None and len(found) == len(schedule) + 1 else None

    def admits(self, schedule: FaultSet, mode: Mode = "present") -> bool:
        """Whether exactly this set, within the bounds, falsifies a goal as far as is known, and is
        not excluded."""
        mode = mode if self._modes_differ else WIDEST
        with self._timed():
            faults = self._formula.faults
            known = [faults[fault] for fault in sorted(schedule & faults.keys())]
            if len(known) < len(schedule) or not self._limits.allow(known):
                return False
            if mode in self._pairs:
                return self._pairs[mode].admits(known)
            inside, outside = self._parted(schedule)
            return self._formula.holds(*self._fixed(mode), *inside, *(-v for v in outside))

    def within(self, schedule: FaultSet, mode: Mode) -> FaultSet | None:
        """The same among the proper subsets of a set."""
        with self._timed():
            inside, outside = self._parted(schedule)
            switch = self._formula.new()
            self._formula.clause(-switch, *(-v for v in inside))
            search = CoreGuided([*self._fixed(mode), *(-v for v in outside), switch])
            search.avoid(inside)
            found = self._minimum.of(search)
        return found

    def _search(self, mode: Mode, *fixed: int) -> CoreGuided:
        return CoreGuided([*self._fixed(mode), *fixed])

    def _fixed(self, mode: Mode) -> list[int]:
        return [*self._switches.of(mode), self._excluded.forbidden]

    def _tables(self, bounds: Bounds) -> dict[Mode, Pairs]:
        tried, formula = self._excluded, self._formula
        return {
            mode: Pairs(formula, bounds, [-tried.forbidden, *self._switches.of(mode)], tried.met)
            for mode in MODES
        }

    def _parted(self, schedule: FaultSet) -> tuple[list[int], list[int]]:
        """The variables of the known faults within a set, and of the others."""
        faults = self._formula.faults.items()
        inside = [v for f, v in faults if f in schedule]
        return inside, [v for f, v in faults if f not in schedule]


def minimal(
    sets: Iterable[FaultSet],
    hides: Callable[[FaultSet, FaultSet], bool] = lambda less, more: True,
) -> list[FaultSet]:
    """Those sets of which no proper subset is among them, smallest first, in a fixed order.

    ``hides``: says of a subset and a set whether it stands for it; each does by default.
    """
    found: list[FaultSet] = []
    for candidate in sorted(set(sets), key=lambda s: (len(s), sorted(s))):
        if not any(other <= candidate and hides(other, candidate) for other in found):
            found.append(candidate)
    return found
