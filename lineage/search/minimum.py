"""Sets of the smallest size, by core-guided search (OLL: Andres et al. 2012; Morgado, Dodaro,
Marques-Silva 2014): each unsatisfiable core says that one more fault is needed.

Once as many are needed as there may be at all, any set will do: the bounds alone are asked for, as
clauses. That none is left is shown in a tenth of the time then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice

from pysat.card import ITotalizer

from bettong.lineage.faults import FaultSet
from bettong.lineage.search.formula import Formula
from bettong.lineage.search.limits import Limits

POLISHED = 2000
"""With more faults than this, the first solution is taken as it comes."""
_CONFLICTS = 200
_PARTS = 16
"""A core is trimmed by so many parts of it."""


@dataclass(slots=True)
class CoreGuided:
    """State of one search: the assumptions, and what they bound.

    Attributes:
        fixed: literals that hold in all of its sets.
        soft: literals of which as many as can be hold; of an output of a counter, the counter and
            its bound.
        known: how many of the formula's faults it has taken in.
        needed: so many faults has every set, of those known when this was shown.
        direct: no set with fewer faults than there may be is left, of those known then.
        over: there is no further set.
    """

    fixed: list[int]
    soft: dict[int, tuple[ITotalizer, int] | None] = field(default_factory=dict)
    known: int = 0
    needed: int = 0
    direct: bool = False
    over: bool = False

    def avoid(self, variables: Iterable[int]) -> None:
        """Have as few of these as can be."""
        for variable in variables:
            self.soft[-variable] = None

    def counters(self) -> list[int]:
        """The literals that bound the size of a set. Every smallest set has them all, and none of
        the faults that are still among the soft literals: with one it would be larger."""
        return [literal for literal, counter in self.soft.items() if counter is not None]

    def take_in(self, formula: Formula) -> None:
        """Have as few as can be of the faults that became known."""
        if not self.direct:
            self.avoid(islice(formula.known, self.known, None))
        self.known = len(formula.known)


class Minimum:
    """Finds smallest sets."""

    def __init__(self, formula: Formula, limits: Limits) -> None:
        self._formula = formula
        self._limits = limits

    def of(self, search: CoreGuided, *, late: bool = False) -> FaultSet | None:
        """A smallest set within the limits; None when there is none. ``late``: any fault of it may
        take the place of an earlier one."""
        formula = self._formula
        while True:
            if not self._solved(search):
                return None
            model = formula.chosen()
            if not self._limits.enforce(model):
                break
        if search.direct:
            model = self._least(search, model)
            if len(model) < self._limits.most:
                return formula.set_of(model)
        if len(formula.known) > POLISHED:
            return formula.set_of(model)
        return formula.set_of(self._latest(search, model, late))

    def _solved(self, search: CoreGuided) -> bool:
        """Whether there is a set, maybe beyond the limits, of the smallest size."""
        while not search.direct:
            if self._formula.holds(*search.fixed, *search.soft):
                return True
            core = [v for v in self._formula.core() if v in search.soft]
            if not core:
                return False
            self._relax(search, self._trimmed(search, core))
            if search.needed >= self._limits.most:
                search.direct = True
                search.soft.clear()
                self._limits.enforce_all()
        return self._formula.holds(*search.fixed)

    def _least(self, search: CoreGuided, model: list[int]) -> list[int]:
        """The same without what is not needed, now that more faults are known."""
        for variable in model:
            rest = [v for v in model if v != variable]
            if rest and self._holds_with(search, set(rest)):
                return self._least(search, rest)
        return model

    # the latest of the smallest

    def _latest(self, search: CoreGuided, model: list[int], late: bool) -> set[int]:
        """The same with faults put off as long as may be: the later a crash, the less it takes
        with it, and the later any fault, the less time is left for repair.

        A fault of a group (a crash) is moved within its group; where it is to be late, any fault
        may take the place of an earlier one.
        """
        known = self._formula.known
        chosen = set(model)
        for variable in sorted(model, key=lambda v: known[v].time):
            fault = known[variable]
            later: dict[int, list[int]] = {}
            for other, candidate in known.items():
                same = fault.group and fault.group == candidate.group
                smallest = -other not in search.soft
                if candidate.time > fault.time and (late or same) and smallest:
                    later.setdefault(candidate.time, []).append(other)
            rest = chosen - {variable}
            times = sorted(later)
            left = times[: self._reach(search, rest, later, times)]
            while left:
                moved = self._moved(search, rest, set(later[left.pop()]) - chosen)
                if moved is not None:
                    chosen = moved
                    break
                needed = self._needed()
                left = [time for time in left if not needed.isdisjoint(later[time])]
        return chosen

    def _reach(
        self,
        search: CoreGuided,
        rest: set[int],
        later: Mapping[int, list[int]],
        times: list[int],
    ) -> int:
        """How many of these times come up to the last one at which, or after which, there is
        something to choose beside the rest: found by halving, as what may be chosen from a time on
        holds what may be from a later one on. What a solution has chosen holds up to the earliest
        of it; where there is none, there is none up to the latest that would have to be free."""
        place = {v: n for n, time in enumerate(times, 1) for v in later[time] if v not in rest}
        low, high = 0, len(times)
        while low < high:
            middle = (low + high + 1) // 2
            free = {v for v, n in place.items() if n >= middle}
            if self._holds_with(search, rest, free):
                taken = (place[v] for v in free.intersection(self._formula.chosen()))
                low = min(taken, default=high)
            else:
                high = max((place[v] for v in self._needed() if v in place), default=0)
        return low

    def _moved(self, search: CoreGuided, rest: set[int], free: set[int]) -> set[int] | None:
        """The rest with one of those that are free, within the limits; or None."""
        while self._holds_with(search, rest, free):
            moved = rest | free.intersection(self._formula.chosen())
            if not self._limits.enforce(sorted(moved)):
                return moved
        return None

    def _holds_with(
        self, search: CoreGuided, chosen: set[int], free: AbstractSet[int] = frozenset()
    ) -> bool:
        """Whether there is a smallest set with all of these, any of those that are free, and no
        other."""
        decided = [v if v in chosen else -v for v in self._formula.known if v not in free]
        return self._formula.holds(*search.fixed, *search.counters(), *decided)

    # cores

    def _needed(self) -> set[int]:
        """Variables of which one would have to be free, where there was no solution: any other
        choice of those that are leaves as little."""
        return {-literal for literal in self._formula.core() if literal < 0}

    def _trimmed(self, search: CoreGuided, core: list[int]) -> list[int]:
        """A core with each part left out that is quickly seen not to be needed; the parts of a
        small one are single literals."""
        size = -(-len(core) // _PARTS)
        kept = 0
        while kept < len(core) and len(core) > 1:
            rest = core[:kept] + core[kept + size :]
            if rest and self._formula.fails(*search.fixed, *rest, conflicts=_CONFLICTS):
                needed = set(self._formula.core())
                kept = sum(v in needed for v in rest[:kept])
                core = [v for v in rest if v in needed]
            else:
                kept += size
        return core

    def _relax(self, search: CoreGuided, core: list[int]) -> None:
        search.needed += 1
        for literal in core:
            counter = search.soft.pop(literal)
            if counter is not None:
                total, bound = counter
                self._bound(search, total, bound + 1)
        if len(core) > 1:
            self._bound(search, self._formula.total([-v for v in core]), 1)

    def _bound(self, search: CoreGuided, total: ITotalizer, bound: int) -> None:
        """Assume that at most ``bound`` of the counted literals hold."""
        if bound >= len(total.lits):
            return
        if bound >= len(total.rhs):
            self._formula.widen(total, bound)
        search.soft[-total.rhs[bound]] = (total, bound)
