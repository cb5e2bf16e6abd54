"""Fault hypotheses: the smallest sets of faults that break every known way to a goal.

The AND/OR lineage is given to a SAT solver by Tseitin's encoding, one-sided (Plaisted and
Greenbaum 1986): a fact fails only if each of its firings does, a firing only if some premise does,
a leaf only by its faults. Crashes of one node share a chain of variables "has crashed by round t",
so that one crash explains many losses. Sets of the smallest size are found by core-guided search
(OLL: Andres et al. 2012; Morgado, Dodaro, Marques-Silva 2014): each unsatisfiable core says that
one more fault is needed. Everything is incremental: more lineage only adds clauses, so that no
work is done twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, repeat
from time import perf_counter
from typing import Literal

from pysat.card import ITotalizer
from pysat.solvers import Solver

from bettong.lineage.faults import Bounds, Fault, FaultSet
from bettong.lineage.graph import FACT, FIRING, Lineage

Mode = Literal["asked", "kept", "given", "hunt", "present", "absent"]
"""What a hypothesis may attack.

- ``asked``: what was there and led to a goal, while a known way to the goal's precondition stays.
- ``kept``: what was there and led to a goal, but nothing that led to its precondition.
- ``given``: what was there and led to a goal, its precondition taken as met.
- ``hunt``: the same, and what was not there but could be.
- ``present``: all that was there and led to a goal.
- ``absent``: everything, also that there was nothing further of a kind.

That something was not there because a message was lost counts in every mode: when it is not lost,
the thing may be there.

Only ``absent`` is exact where rules ask for absence; the others come first because what they put
up is likelier to break something.
"""

MODES: tuple[Mode, ...] = ("asked", "kept", "given", "hunt", "present", "absent")


BATCH = 5000
POLISHED = 2000
"""With more faults than this, the first solution is taken as it comes."""


@dataclass(slots=True)
class _Search:
    """State of the core-guided search in one mode: the assumptions, and what they bound."""

    fixed: list[int]
    soft: dict[int, tuple[ITotalizer, int] | None] = field(default_factory=dict)
    known: int = 0
    over: bool = False
    late: bool = False


class Hypotheses:
    """Minimal fault sets that falsify at least one goal of a growing lineage, smallest first.

    The goals are those of the first lineage given. ``seconds`` is the time taken by everything
    here: writing formulas down, solving them, choosing among solutions.
    """

    def __init__(self, lineage: Lineage, bounds: Bounds) -> None:
        self.seconds = 0.0
        self._bounds = bounds
        self._solver = Solver(name="glucose4", use_timer=True)
        self._top = 0
        self._fails: dict[str, int] = {}
        self._arrives: dict[str, int] = {}
        self._encoded: set[str] = set()
        self._arrivable: set[str] = set()
        self._aside: dict[str, list[Lineage]] = {}
        self._faults: dict[str, int] = {}
        self._known: dict[int, Fault] = {}
        self._groups: dict[str, list[int]] = {}
        self._members: dict[tuple[str, str], list[int]] = {}
        self._counters: dict[tuple[str, str], list[int]] = {}
        self._chains: dict[tuple[str, ...], int] = {}
        self._excluded: set[FaultSet] = set()
        self._unmet: list[FaultSet] = []
        self._beyond, self._within = self._new(), 0
        absences, further = self._absences, self._further = self._new(), self._new()
        asked, given = self._asked, self._given = self._new(), self._new()
        kept = self._kept = self._new()
        self._searches: dict[Mode, _Search] = {
            "asked": _Search([-absences, -further, given, asked]),
            "kept": _Search([-absences, -further, given, kept]),
            "given": _Search([-absences, -further, given]),
            "hunt": _Search([absences, -further, given], late=True),
            "present": _Search([-absences, -further]),
            "absent": _Search([absences]),
        }
        self._goals = dict(lineage.goals)
        self._chosen = {goal: self._new() for goal in self._goals}
        self._clause(*self._chosen.values())
        self._pinned: set[tuple[str, str, bool]] = set()
        self.extend(lineage)
        self._ask(lineage)

    def __enter__(self) -> Hypotheses:
        return self

    def __exit__(self, *_: object) -> None:
        self._solver.delete()

    def _new(self) -> int:
        self._top += 1
        return self._top

    def _clause(self, *literals: int) -> None:
        self._solver.add_clause(literals)

    # encoding

    def extend(self, lineage: Lineage) -> None:
        """Take in more lineage: what it adds to that of the goals and of all that led to them.
        What led to none of them is put aside until it does."""
        began = perf_counter()
        again: list[Lineage] = []
        seen = self._encode(lineage, again)
        pred, nodes = lineage.graph._pred, lineage.graph._node
        for id in nodes.keys() - seen:
            if nodes[id]["kind"] == FACT and pred[id]:
                self._aside.setdefault(id, []).append(lineage)
        while again:
            self._encode(again.pop(), again)
        self.seconds += perf_counter() - began

    def _encode(self, lineage: Lineage, again: list[Lineage]) -> set[str]:
        """Write down what leads to a goal, or to what did; returns what was looked at, and adds
        to ``again`` the lineages of which a part that was put aside does so now."""
        pred = lineage.graph._pred  # the public view is several times slower
        nodes = dict(lineage.graph.nodes(data=True))
        fresh: list[Fault] = []
        todo = [id for id in nodes if id in self._goals or id in self._encoded]
        seen = set(todo)
        clauses: list[list[int]] = []
        encoded, failing = self._encoded, self._failing
        while todo:
            id = todo.pop()
            attributes = nodes[id]
            kind = attributes["kind"]
            causes = pred[id]
            new = id not in encoded
            encoded.add(id)
            if kind == FACT:
                fails = failing(id)
                aside = self._aside.pop(id, [])
                again += [earlier for earlier in aside if all(earlier is not a for a in again)]
                if new and not causes and not aside:
                    clauses.append([-fails])
                elif new and attributes["absent"]:
                    switch = self._further if attributes["further"] else self._absences
                    clauses.append([-fails, switch, self._arriving(id)])
                # a firing has one head: whether it is known there is known by itself
                clauses += [[-fails, failing(c)] for c in causes if c not in encoded]
            elif new and kind == FIRING:
                clauses.append([-failing(id), *map(failing, causes)])
            elif new:
                faults = [lineage.faults[f] for f in attributes["faults"]]
                clauses += self._leaf(failing(id), faults, attributes["lost"], fresh)
            for cause in causes:
                if cause not in seen:
                    seen.add(cause)
                    todo.append(cause)
            if len(clauses) > BATCH:
                self._solver.append_formula(clauses)
                clauses.clear()
        clauses += self._arrivals(lineage, fresh)
        self._solver.append_formula(clauses)
        if fresh:
            self._register(fresh)
        self._take_as_met(lineage)
        return seen

    def _failing(self, id: str) -> int:
        found = self._fails.get(id)
        if found is None:
            found = self._fails[id] = self._new()
        return found

    def _arriving(self, id: str) -> int:
        """A variable that says: this fails because something that was lost is not."""
        found = self._arrives.get(id)
        if found is None:
            found = self._arrives[id] = self._new()
        return found

    def _arrivals(self, lineage: Lineage, fresh: list[Fault]) -> list[list[int]]:
        """Clauses of :meth:`_arriving` for what this lineage adds."""
        pred = lineage.graph.pred
        nodes = lineage.graph.nodes
        clauses: list[list[int]] = []
        todo = [id for id in nodes if id in self._arrives]
        seen = set(todo)
        while todo:
            id = todo.pop()
            attributes = nodes[id]
            arrives = self._arriving(id)
            causes = pred[id]
            new = id not in self._arrivable
            self._arrivable.add(id)
            if attributes["kind"] == FACT:
                if new and not causes:
                    clauses.append([-arrives])
                unknown = (c for c in causes if c not in self._arrivable)
                clauses += [[-arrives, self._arriving(c)] for c in unknown]
            elif new and attributes["kind"] == FIRING:
                clauses.append([-arrives, *map(self._arriving, causes)])
            elif new and attributes["lost"]:
                faults = [lineage.faults[f] for f in attributes["faults"]]
                clauses += [[-arrives, -self._fault(f, fresh)] for f in faults]
            elif new:
                clauses.append([-arrives])
            for cause in causes:
                if cause not in seen:
                    seen.add(cause)
                    todo.append(cause)
        return clauses

    def _leaf(
        self, fails: int, faults: list[Fault], lost: bool, fresh: list[Fault]
    ) -> list[list[int]]:
        variables = [self._fault(f, fresh) for f in faults]
        if lost:
            return [[-fails, -v] for v in variables]
        alone = [v for v, f in zip(variables, faults, strict=True) if not f.group]
        grouped: dict[str, list[str]] = {}
        for fault in faults:
            if fault.group:
                grouped.setdefault(fault.group, []).append(fault.id)
        return [[-fails, *alone, *(self._chain(tuple(ids)) for ids in grouped.values())]]

    def _chain(self, ids: tuple[str, ...]) -> int:
        if len(ids) == 1:
            return self._faults[ids[0]]
        if ids not in self._chains:
            self._chains[ids] = some = self._new()
            self._clause(-some, self._chain(ids[:-1]), self._faults[ids[-1]])
        return self._chains[ids]

    def _fault(self, fault: Fault, fresh: list[Fault]) -> int:
        found = self._faults.get(fault.id)
        if found is None:
            found = self._faults[fault.id] = self._new()
            self._known[found] = fault
            fresh.append(fault)
        return found

    def _register(self, fresh: list[Fault]) -> None:
        """Take in new faults. Bounds are not given to the solver before a set exceeds them."""
        for fault in fresh:
            variable = self._faults[fault.id]
            for limit in self._limits_of(fault):
                self._members.setdefault(limit, []).append(variable)
                if limit in self._counters:
                    self._count(limit, variable)
            if fault.group:
                self._groups.setdefault(fault.group, []).append(variable)
        self._go_beyond()
        self._block_met()
        for search in self._searches.values():
            search.over = False  # together with the new ones, what was tried may break a goal

    def _limits_of(self, fault: Fault) -> Iterator[tuple[str, str]]:
        if fault.kind in self._bounds.at_most:
            yield "kind", fault.kind
        if fault.group:
            yield "group", fault.group
        if self._bounds.total is not None:
            yield from repeat(("total", ""), self._bounds.weight(fault))

    def _most(self, limit: tuple[str, str]) -> int:
        what, name = limit
        if what == "total":
            return self._bounds.total or 0
        return self._bounds.at_most[name] if what == "kind" else 1

    def _count(self, limit: tuple[str, str], variable: int) -> None:
        """Count one more variable towards a limit (a sequential counter: Sinz 2005)."""
        most = self._most(limit)
        before = self._counters.setdefault(limit, [])
        after = [self._new() for _ in range(most)]
        if len(before) == most:
            self._clause(-variable, *([-before[-1]] if before else []))
        for n, register in enumerate(after):
            if n < len(before):
                self._clause(-before[n], register)
            if n == 0:
                self._clause(-variable, register)
            elif n <= len(before):
                self._clause(-variable, -before[n - 1], register)
        self._counters[limit] = after

    def _enforce(self, model: list[int]) -> bool:
        """Give the solver the limits that these variables exceed; whether there are any."""
        numbers = Counter(limit for v in model for limit in self._limits_of(self._known[v]))
        broken = [limit for limit, number in numbers.items() if number > self._most(limit)]
        for limit in broken:
            for variable in self._members[limit]:
                self._count(limit, variable)
        return bool(broken)

    def _take_as_met(self, lineage: Lineage) -> None:
        """Where the precondition is given, what it reads cannot fail; where it is kept, nothing
        that led to it can."""
        pred = lineage.graph.pred
        nodes = lineage.graph.nodes
        for goal, given in self._goals.items():
            if given is None or given not in lineage.graph:
                continue
            direct = dict.fromkeys(p for firing in pred[given] for p in pred[firing])
            todo = list(direct)
            seen = set(todo)
            while todo:
                id = todo.pop()
                if id in direct and (goal, id, True) not in self._pinned:
                    self._pinned.add((goal, id, True))
                    self._clause(-self._chosen[goal], -self._given, -self._failing(id))
                if (goal, id, False) not in self._pinned:
                    self._pinned.add((goal, id, False))
                    self._clause(-self._chosen[goal], -self._kept, -self._failing(id))
                for cause in pred[id]:
                    if cause not in seen and not nodes[cause].get("absent"):
                        seen.add(cause)
                        todo.append(cause)

    def _ask(self, lineage: Lineage) -> None:
        """A goal fails only if it is chosen; when asked, its precondition keeps a way to hold."""
        began = perf_counter()
        holds: dict[str, int] = {}
        for goal, given in self._goals.items():
            some = self._chosen[goal]
            self._clause(-some, self._failing(goal))
            if given is not None and given in lineage.graph:
                self._clause(-some, -self._asked, self._holding(lineage, given, holds))
        self.seconds += perf_counter() - began

    def _holding(self, lineage: Lineage, goal: str, holds: dict[str, int]) -> int:
        """A variable that implies that the fact holds in a way that this lineage knows."""
        todo = [goal]
        holds.setdefault(goal, self._new())
        while todo:
            id = todo.pop()
            attributes = lineage.graph.nodes[id]
            causes = [] if attributes.get("absent") else list(lineage.graph.pred[id])
            for cause in causes:
                if cause not in holds:
                    holds[cause] = self._new()
                    todo.append(cause)
            own = holds[id]
            if attributes["kind"] == FIRING:
                for cause in causes:
                    self._clause(-own, holds[cause])
            elif attributes["kind"] == FACT:
                if causes:
                    self._clause(-own, *(holds[c] for c in causes))
            else:
                known = [self._faults[f] for f in attributes["faults"] if f in self._faults]
                if attributes["lost"]:
                    self._clause(-own, *known)
                else:
                    for fault in known:
                        self._clause(-own, -fault)
        return holds[goal]

    # what is known

    def exclude_supersets(self, schedule: FaultSet) -> None:
        """Put up no set any more that contains these faults: they break the goal already."""
        if schedule <= self._faults.keys():
            self._clause(*(-self._faults[f] for f in schedule))

    def exclude(self, schedule: FaultSet) -> None:
        """Do not put up exactly this set again; its supersets may still come."""
        if schedule not in self._excluded:
            self._excluded.add(schedule)
            self._unmet.append(schedule)
            self._block_met()

    def _block_met(self) -> None:
        """Block the excluded sets all of whose faults are known by now. One with a fault that is
        not is never put up, and what is known of it is another set."""
        unmet = []
        for schedule in self._unmet:
            if schedule <= self._faults.keys():
                others = [v if f not in schedule else -v for f, v in self._faults.items()]
                self._clause(*others, self._beyond)
            else:
                unmet.append(schedule)
        self._unmet = unmet

    def _go_beyond(self) -> None:
        """What differs from an excluded set by a fault that became known later is another set: a
        variable stands for all faults that are not known yet, and the new ones and another
        such variable take its place."""
        fresh = list(islice(self._known, self._within, None))
        if fresh:
            before, self._beyond = self._beyond, self._new()
            self._clause(-before, *fresh, self._beyond)
            self._within = len(self._known)

    # search

    @property
    def solver_seconds(self) -> float:
        """Of ``seconds``, what the SAT solver itself took."""
        return float(self._solver.time_accum() or 0.0)

    def smallest(self, mode: Mode = "present") -> FaultSet | None:
        """A smallest fault set within the bounds that falsifies a goal as far as is known, or
        None when there is none."""
        began = perf_counter()
        search = self._searches[mode]
        for variable in islice(self._known, search.known, None):
            search.soft[-variable] = None
        search.known = len(self._known)
        found = None if search.over else self._solve(search)
        search.over = found is None
        self.seconds += perf_counter() - began
        return found

    def extending(self, schedule: FaultSet, mode: Mode) -> FaultSet | None:
        """The same with this set and one fault more, or None."""
        began = perf_counter()
        inside = [v for f, v in self._faults.items() if f in schedule]
        outside: dict[int, tuple[ITotalizer, int] | None] = {
            -v: None for f, v in self._faults.items() if f not in schedule
        }
        fixed = [*self._searches[mode].fixed, *inside]
        search = _Search(fixed, outside, late=self._searches[mode].late)
        found = self._solve(search) if len(inside) == len(schedule) else None
        self.seconds += perf_counter() - began
        return found if found is not None and len(found) == len(schedule) + 1 else None

    def admits(self, schedule: FaultSet, mode: Mode = "present") -> bool:
        """Whether exactly this set, within the bounds, falsifies a goal as far as is known."""
        began = perf_counter()
        inside = [v for f, v in self._faults.items() if f in schedule]
        found = len(inside) == len(schedule) and self._bounds.allow(self._known[v] for v in inside)
        if found:
            outside = [-v for f, v in self._faults.items() if f not in schedule]
            found = self._holds(*self._searches[mode].fixed, *inside, *outside)
        self.seconds += perf_counter() - began
        return bool(found)

    def within(self, schedule: FaultSet, mode: Mode) -> FaultSet | None:
        """The same among the proper subsets of a set."""
        began = perf_counter()
        inside = [v for f, v in self._faults.items() if f in schedule]
        outside = [-v for f, v in self._faults.items() if f not in schedule]
        switch = self._new()
        self._clause(-switch, *(-v for v in inside))
        soft: dict[int, tuple[ITotalizer, int] | None] = {-v: None for v in inside}
        search = _Search([*self._searches[mode].fixed, *outside, switch], soft)
        found = self._solve(search)
        self.seconds += perf_counter() - began
        return found

    def _holds(self, *assumptions: int) -> bool:
        """Whether there is a set, of known faults, under these assumptions."""
        return bool(self._solver.solve(assumptions=[-self._beyond, *assumptions]))

    def _solve(self, search: _Search) -> FaultSet | None:
        while True:
            while not self._holds(*search.fixed, *search.soft):
                core = [v for v in self._solver.get_core() or () if v in search.soft]
                if not core:
                    return None
                self._relax(search, self._trimmed(search, core))
            model = [v for v in self._solver.get_model() or () if v in self._known]
            if not self._enforce(model):
                break
        if len(self._known) > POLISHED:
            return frozenset(self._known[v].id for v in model)
        return self._latest(search, model)

    def _latest(self, search: _Search, model: list[int]) -> FaultSet:
        """The same with faults put off as long as may be: the later a crash, the less it takes
        with it, and the later any fault, the less time is left for repair.

        A fault of a group (a crash) is moved within its group. In a search that is for what was
        not there, any fault may take the place of an earlier one.
        """
        chosen = set(model)
        for variable in sorted(model, key=lambda v: self._known[v].time):
            fault = self._known[variable]
            later: dict[int, list[int]] = {}
            for other, candidate in self._known.items():
                same = fault.group and fault.group == candidate.group
                if candidate.time > fault.time and (search.late or same):
                    later.setdefault(candidate.time, []).append(other)
            times = sorted(later)
            for time in reversed(times[: self._reach(search, chosen - {variable}, later, times)]):
                moved = self._moved(search, chosen, variable, later[time])
                if moved is not None:
                    chosen = moved
                    break
        return frozenset(self._known[v].id for v in chosen)

    def _reach(
        self, search: _Search, rest: set[int], later: Mapping[int, list[int]], times: list[int]
    ) -> int:
        """How many of these times come up to the last one at which, or after which, there is
        something to choose beside the rest: found by halving, as what may be chosen from a time on
        holds what may be from a later one on."""
        low, high = 0, len(times)
        while low < high:
            middle = (low + high + 1) // 2
            free = {v for time in times[middle - 1 :] for v in later[time]} - rest
            decided = [v if v in rest else -v for v in self._known if v not in free]
            if self._holds(*search.fixed, *decided):
                low = middle
            else:
                high = middle - 1
        return low

    def _moved(
        self, search: _Search, chosen: set[int], variable: int, candidates: list[int]
    ) -> set[int] | None:
        """The set with one of the candidates in place of a variable, or None."""
        rest = chosen - {variable}
        free = set(candidates) - chosen
        decided = [v if v in rest else -v for v in self._known if v not in free]
        if not self._holds(*search.fixed, *decided):
            return None
        proposed = free & set(self._solver.get_model() or ())
        for other in sorted(proposed):
            if not self._bounds.allow(self._known[v] for v in rest | {other}):
                continue
            exactly = [v if v in rest or v == other else -v for v in self._known]
            if len(proposed) == 1 or self._holds(*search.fixed, *exactly):
                return rest | {other}
        return None

    def _trimmed(self, search: _Search, core: list[int]) -> list[int]:
        """A core with each literal left out that is quickly seen not to be needed."""
        for literal in tuple(core):
            if len(core) == 1 or len(self._known) > POLISHED:
                break
            rest = [v for v in core if v != literal]
            self._solver.conf_budget(200)
            if (
                self._solver.solve_limited(assumptions=[-self._beyond, *search.fixed, *rest])
                is False
            ):
                needed = set(self._solver.get_core() or ())
                core = [v for v in rest if v in needed]
                if not core:
                    break
        return core

    def _relax(self, search: _Search, core: list[int]) -> None:
        for literal in core:
            counter = search.soft.pop(literal)
            if counter is not None:
                total, bound = counter
                self._output(search, total, bound + 1)
        if len(core) > 1:
            total = ITotalizer([-v for v in core], ubound=2, top_id=self._top)
            self._top = max(self._top, total.top_id)
            self._solver.append_formula(total.cnf.clauses)
            self._output(search, total, 1)

    def _output(self, search: _Search, total: ITotalizer, bound: int) -> None:
        """Assume that at most ``bound`` of the counted literals hold."""
        if bound >= len(total.lits):
            return
        if bound >= len(total.rhs):
            total.increase(ubound=bound + 1, top_id=self._top)
            self._top = max(self._top, total.top_id)
            self._solver.append_formula(total.cnf.clauses[-total.nof_new :])
        search.soft[-total.rhs[bound]] = (total, bound)


def minimal(sets: Iterable[FaultSet]) -> list[FaultSet]:
    """Those sets of which no proper subset is among them, smallest first, in a fixed order."""
    found: list[FaultSet] = []
    for candidate in sorted(set(sets), key=lambda s: (len(s), sorted(s))):
        if not any(other <= candidate for other in found):
            found.append(candidate)
    return found
