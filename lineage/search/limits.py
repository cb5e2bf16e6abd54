"""The bounds of a search as clauses, each given to the solver when a set first exceeds it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from itertools import repeat

from bettong.lineage.faults import CRASH, Bounds, Fault
from bettong.lineage.search.formula import Formula

_Limit = tuple[str, str]
"""``kind``, ``group``, ``total`` or ``place``, and which of them. What counts towards a place are
the faults at it that a crash there may follow, and the crashes elsewhere."""


class Limits:
    """How many faults may be in one set."""

    def __init__(self, formula: Formula, bounds: Bounds) -> None:
        self._formula = formula
        self._bounds = bounds
        self._members: dict[_Limit, list[int]] = {}
        self._counters: dict[_Limit, list[int]] = {}
        self._places: dict[str, None] = {}

    def take_in(self, fault: Fault) -> None:
        """A new fault counts towards its limits."""
        if self._is_followed(fault) and fault.place not in self._places:
            self._places[fault.place] = None
            for crash in self._members.get(("kind", CRASH), ()):
                if self._bounds.apart(fault, self._formula.known[crash]):
                    self._add(("place", fault.place), crash)
        for limit in self._limits_of(fault):
            self._add(limit, self._formula.faults[fault.id])

    def _add(self, limit: _Limit, variable: int) -> None:
        self._members.setdefault(limit, []).append(variable)
        if limit in self._counters:
            self._count(limit, variable)

    @property
    def most(self) -> float:
        """How many faults may be in one set; infinite where there are faults of a kind that is not
        bounded, and no bound for all."""
        if self._bounds.total is not None:
            return self._bounds.total
        bounded = all(f.kind in self._bounds.at_most for f in self._formula.known.values())
        return sum(self._bounds.at_most.values()) if bounded else math.inf

    def allow(self, variables: Iterable[int]) -> bool:
        """Whether the faults of these variables may happen together."""
        return self._bounds.allow(self._formula.known[v] for v in variables)

    def full(self, variables: Iterable[int]) -> bool:
        """Whether no fault, known or not, may happen together with all of these."""
        known, bounds = self._formula.known, self._bounds
        weight = sum(bounds.weight(known[v]) for v in variables)
        return bounds.most is not None and weight >= bounds.most

    def beside(self, variables: Collection[int]) -> list[int]:
        """The other known faults that may each happen together with these, as far as kinds, places
        and the total go."""
        known = self._formula.known
        inside = [known[v] for v in variables]

        @cache
        def fits(kind: str, place: str) -> bool:
            return self._bounds.allow([*inside, Fault("", kind, place=place)])

        return [v for v, f in known.items() if v not in variables and fits(f.kind, f.place)]

    def enforce(self, variables: list[int]) -> bool:
        """Give the solver the limits that these variables exceed; whether there are any."""
        known = self._formula.known
        numbers = Counter(limit for v in variables for limit in self._limits_of(known[v]))
        broken = [limit for limit, number in numbers.items() if number > self._most(limit)]
        self._enforce(broken)
        return bool(broken)

    def enforce_all(self) -> None:
        """Give the solver those limits of all known faults that it does not have."""
        self._enforce([limit for limit in self._members if limit not in self._counters])

    def _enforce(self, limits: Iterable[_Limit]) -> None:
        for limit in limits:
            for variable in self._members[limit]:
                self._count(limit, variable)

    def _limits_of(self, fault: Fault) -> Iterator[_Limit]:
        if fault.kind in self._bounds.at_most:
            yield "kind", fault.kind
        if fault.group:
            yield "group", fault.group
        if self._is_followed(fault):
            yield "place", fault.place
        elif fault.kind == CRASH:
            yield from (("place", p) for p in self._places if fault.place not in ("", p))
        if self._bounds.total is not None:
            yield from repeat(("total", ""), self._bounds.weight(fault))

    def _is_followed(self, fault: Fault) -> bool:
        """Whether only a crash at its place may follow it."""
        return fault.kind in self._bounds.followed and bool(fault.place)

    def _most(self, limit: _Limit) -> int:
        what, name = limit
        if what == "total":
            return self._bounds.most or 0
        return self._bounds.at_most[name] if what == "kind" else 1

    def _count(self, limit: _Limit, variable: int) -> None:
        """Count one more variable towards a limit (a sequential counter: Sinz 2005)."""
        most = self._most(limit)
        formula = self._formula
        before = self._counters.setdefault(limit, [])
        after = [formula.new() for _ in range(most)]
        if len(before) == most:
            formula.clause(-variable, *([-before[-1]] if before else []))
        for n, register in enumerate(after):
            if n < len(before):
                formula.clause(-before[n], register)
            if n == 0:
                formula.clause(-variable, register)
            elif n <= len(before):
                formula.clause(-variable, -before[n - 1], register)
        self._counters[limit] = after
