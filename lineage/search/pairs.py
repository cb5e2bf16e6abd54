"""Hypotheses of up to two faults: all of them at once, ruled out many at a time.

Where no more than two faults may happen together, all sets there may be are a table of bits. One
of them is asked for with every fault decided, which the solver answers by propagation alone. A set
that breaks no goal leaves a core: the faults of which one would have to happen beside it. It rules
out each set that has none of these, so that a few thousand questions settle a million sets
(implicit hitting sets: Reiter 1987; Davies and Bacchus 2011). The formula only grows, so that what
is ruled out stays so, also beside faults that become known later.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from itertools import islice

from bettong.lineage.faults import CRASH, Bounds, Fault, FaultSet
from bettong.lineage.search.formula import Formula

_Sort = tuple[str, str]


class Pairs:
    """The sets of up to two known faults that may break a goal and were not tried.

    Faults are counted from 0 in the order in which they became known; bit n of a number is the
    n-th.

    Args:
        fixed: literals that hold in all of these sets; with them, no set that was tried is
            forbidden.
        tried: the variables of each of these; more are added while this is used.
    """

    def __init__(
        self,
        formula: Formula,
        bounds: Bounds,
        fixed: Sequence[int],
        tried: Sequence[frozenset[int]],
    ) -> None:
        self._formula = formula
        self._bounds = bounds
        self._fixed = tuple(fixed)
        self._tried = tried
        self._known_tried = 0
        self._variables: list[int] = []
        self._number: dict[int, int] = {}
        self._of_sort: dict[_Sort, int] = {}
        self._of_group: dict[str, int] = {}
        self._by_time: list[tuple[int, int]] = []
        self._turn = 0
        self._last_turn: dict[str, int] = {}
        self._none = True
        self._alone = 0
        self._beside: list[int] = []
        self._cores: list[int] = []
        self._cores_with: list[int] = []

    def smallest(self, *, late: bool) -> FaultSet | None:
        """A set that breaks a goal as far as is known, one of the smallest; None when there is
        none. The later a crash, the less it takes with it, and the later any fault, the
        less time is left for repair: groups take turns, and of one the latest is chosen; with
        ``late`` it is the latest of all.

        Raises BudgetSpentError when the time is up before it is known.
        """
        self._take_in()
        while (chosen := self._latest() if late else self._next()) is not None:
            if self._breaks(chosen):
                return self._formula.set_of(self._variables[n] for n in chosen)
        return None

    def admits(self, variables: Sequence[int]) -> bool:
        """Whether exactly this set, within the bounds, breaks a goal as far as is known, and was
        not tried."""
        self._take_in()
        chosen = [self._number[v] for v in variables]
        return self._has(chosen) and self._breaks(chosen)

    # what there may be

    def _take_in(self) -> None:
        """Add the faults that became known, and leave out what was tried since."""
        first = len(self._variables)
        for variable, fault in islice(self._formula.known.items(), first, None):
            self._add(variable, fault)
        for number in range(first, len(self._variables)):
            for other in _bits(self._beside[number]):
                self._beside[other] |= 1 << number
        for variables in islice(self._tried, self._known_tried, None):
            if len(variables) <= 2:
                self._leave_out([self._number[v] for v in variables])
        self._known_tried = len(self._tried)

    def _add(self, variable: int, fault: Fault) -> None:
        number = self._number[variable] = len(self._variables)
        beside = 0
        sort = self._sort(fault)
        for other, those in self._of_sort.items():
            if self._bounds.allow(Fault("", kind, place=place) for kind, place in (sort, other)):
                beside |= those
        if fault.group:
            beside &= ~self._of_group.get(fault.group, 0)
            self._of_group[fault.group] = self._of_group.get(fault.group, 0) | 1 << number
        self._of_sort[sort] = self._of_sort.get(sort, 0) | 1 << number
        for core in self._cores:
            beside &= core
        for given in self._cores_with:
            beside &= ~(1 << given)
        if not self._cores and self._bounds.allow([fault]):
            self._alone |= 1 << number
        self._variables.append(variable)
        self._beside.append(beside)
        insort(self._by_time, (fault.time, number))

    def _sort(self, fault: Fault) -> _Sort:
        """What of a fault bounds go by."""
        by_place = fault.kind == CRASH or fault.kind in self._bounds.followed
        return fault.kind, fault.place if by_place and self._bounds.followed else ""

    def _leave_out(self, chosen: Sequence[int]) -> None:
        """Leave out exactly this set."""
        match chosen:
            case []:
                self._none = False
            case [one]:
                self._alone &= ~(1 << one)
            case [one, other]:
                self._beside[one] &= ~(1 << other)
                self._beside[other] &= ~(1 << one)

    def _has(self, chosen: Sequence[int]) -> bool:
        """Whether this set is not left out."""
        match chosen:
            case []:
                return self._none
            case [one]:
                return bool(self._alone >> one & 1)
            case [one, other]:
                return bool(self._beside[one] >> other & 1)
        return False

    # what is chosen

    def _latest(self) -> list[int] | None:
        """The set whose earlier fault is the latest, and the other as late as may be; None when
        none is left."""
        if self._none:
            return []
        later = 0
        for _, number in reversed(self._by_time):
            if self._alone:
                if self._alone >> number & 1:
                    return [number]
            elif beside := self._beside[number] & later:
                return [number, self._last(beside)]
            later |= 1 << number
        return None

    def _next(self) -> list[int] | None:
        """A set of groups whose turn it is; None when none is left."""
        if self._none:
            return []
        if self._alone:
            return [self._in_turn(self._alone)]
        rows = sum(1 << n for n, beside in enumerate(self._beside) if beside)
        if not rows:
            return None
        number = self._in_turn(rows)
        return [number, self._in_turn(self._beside[number])]

    def _in_turn(self, among: int) -> int:
        """The latest of the group that was chosen from least of all lately."""
        by_group: dict[str, int] = {}
        for number in _bits(among):
            fault = self._fault(number)
            group = fault.group or fault.id
            by_group[group] = by_group.get(group, 0) | 1 << number
        group = min(by_group, key=lambda g: self._last_turn.get(g, 0))
        self._turn += 1
        self._last_turn[group] = self._turn
        return self._last(by_group[group])

    def _last(self, among: int) -> int:
        return max(_bits(among), key=lambda n: (self._fault(n).time, n))

    def _fault(self, number: int) -> Fault:
        return self._formula.known[self._variables[number]]

    # what is ruled out

    def _breaks(self, chosen: Sequence[int]) -> bool:
        """Whether exactly this set breaks a goal as far as is known; if not, it is left out, and
        with it all that do not for the same reason."""
        inside = [self._variables[n] for n in chosen]
        outside = [-v for v in self._variables if v not in inside]
        if self._formula.holds(*self._fixed, *outside, *inside):
            return True
        core = set(self._formula.core()).difference(self._fixed)
        given = [n for n in chosen if self._variables[n] in core]
        if core <= {*outside, *inside} and len(given) < 2:
            missing = sum(1 << self._number[-v] for v in core if v < 0)
            self._rule_out(missing, given)
        self._leave_out(chosen)
        return False

    def _rule_out(self, missing: int, given: Sequence[int]) -> None:
        """Leave out all sets without any of the missing, of those that have the given one."""
        if not given:
            self._cores.append(missing)
            self._none = False
            self._alone &= missing
            for number in range(len(self._beside)):
                if not missing >> number & 1:
                    self._beside[number] &= missing
            return
        (one,) = given
        self._cores_with.append(one)
        self._alone &= ~(1 << one)
        for other in _bits(self._beside[one] & ~missing):
            self._leave_out([one, other])


def _bits(number: int) -> Iterator[int]:
    """The bits that are set, lowest first."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
