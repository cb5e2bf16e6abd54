"""Why a run's goals hold, or are not asked for: its lineage, read off the universe.

A fact that holds is explained by each of its candidates that hold in this run. A fact that does not
is explained by the failure of every candidate: one of its present premises is absent, one of its
absent ones is present, or a delivery failed. Facts that hold under every schedule are leaves
without faults; facts that are not possible need no explanation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bettong.lineage.dedalus import aggregates
from bettong.lineage.dedalus.candidates import Candidate, Group, Key
from bettong.lineage.dedalus.evaluation import Tables
from bettong.lineage.dedalus.syntax import Value
from bettong.lineage.dedalus.universe import Universe
from bettong.lineage.dedalus.worlds import Facts
from bettong.lineage.faults import FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.protocols.rounds import Judged, as_text


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run showed.

    Attributes:
        tables: item ``t - 1``: the facts of round t.
        kept: item ``t - 1``: what @next rules, or a standstill, brought into round t.
        schedule: the faults that fired.
    """

    tables: tuple[Tables, ...]
    kept: tuple[Facts, ...]
    schedule: FaultSet

    def holds(self, key: Key) -> bool:
        """Whether a fact held."""
        if key.kept:
            return (key.relation, key.row) in self.kept[key.time - 1]
        return key.row in self.tables[key.time - 1][key.relation].rows

    def rank(self, key: Key) -> int:
        """A fact's rank in its round: it was derived from lower ones."""
        return self.tables[key.time - 1][key.relation].rows[key.row]


class Explainer:
    """Builds the lineage of one run."""

    def __init__(self, universe: Universe, seen: Seen) -> None:
        self._universe = universe
        self._seen = seen
        self._lineage = Lineage()
        self._todo: list[Callable[[], None]] = []
        self._known: dict[tuple[Key, bool], str] = {}

    def explain(self, judged: Judged, goals: frozenset[str]) -> Lineage:
        """The lineage of the goals that hold, and of preconditions, met or not, of ``goals``."""
        post = self._rows("post")
        for goal in sorted(judged.post):
            self._goal(f"post({goal})", post[goal])
        pre = self._rows("pre")
        for goal in sorted(goals):
            if goal in judged.pre:
                self._goal(f"pre({goal})", pre[goal])
            else:
                id = self._lineage.fact(f"!pre({goal})", absent=True)
                if goal in pre:
                    self._lineage.firing(id, [self._absent(k) for k in pre[goal]], "vacuous")
        while self._todo:
            self._todo.pop()()
        return self._lineage

    def _rows(self, relation: str) -> dict[str, list[Key]]:
        eot = self._universe.spec.eot
        found: dict[str, list[Key]] = {}
        for row in self._universe.possible(relation, eot):
            found.setdefault(as_text(row), []).append(Key(relation, row, eot))
        return found

    def _goal(self, id: str, keys: list[Key]) -> None:
        """A goal holds by whatever makes one of these facts hold."""
        for key in keys:
            if key in self._universe.certain:
                self._lineage.firing(id, [self._present(key)], "always")
            elif self._seen.holds(key):
                self._derive(key, id)

    # -- what holds --------------------------------------------------------------------------

    def _present(self, key: Key) -> str:
        id = self._known.get((key, True))
        if id is None:
            id = self._known[key, True] = str(key)
            if key in self._universe.certain:
                self._lineage.leaf(id)
            else:
                self._lineage.fact(id)
                self._todo.append(lambda: self._derive(key, id))
        return id

    def _derive(self, key: Key, id: str) -> None:
        for group in self._universe.groups.get(key, ()):
            if self._outcome(group) == key.row:
                self._lineage.firing(id, self._tally(group), group.aggregation.label)
        for candidate in self._universe.candidates[key]:
            if self._fires(candidate, key):
                premises = [
                    *(self._present(k) for k in candidate.present),
                    *(self._absent(k) for k in candidate.absent),
                    *(leaf.put(self._lineage) for leaf in candidate.leaves),
                ]
                self._lineage.firing(id, premises, candidate.rule)

    def _fires(self, candidate: Candidate, key: Key) -> bool:
        seen = self._seen
        return (
            all(leaf.holds(seen.schedule) for leaf in candidate.leaves)
            and all(map(seen.holds, candidate.present))
            and not any(map(seen.holds, candidate.absent))
            # what a recursive rule derives from a later fact is no reason for an earlier one
            and all(self._before(k, key) for k in candidate.inner)
        )

    def _before(self, one: Key, other: Key) -> bool:
        return self._seen.rank(one) < self._seen.rank(other)

    # -- what does not -----------------------------------------------------------------------

    def _absent(self, key: Key) -> str:
        id = self._known.get((key, False))
        if id is None:
            id = self._known[key, False] = self._lineage.fact(f"!{key}", absent=True)
            self._todo.append(lambda: self._refute(key, id))
        return id

    def _refute(self, key: Key, id: str) -> None:
        premises: dict[str, None] = {}
        together = [key]
        for member in together:
            for group in self._universe.groups.get(member, ()):
                premises.update(dict.fromkeys(self._tally(group)))
            for candidate in self._universe.candidates[member]:
                reason = self._reason(candidate, member, together)
                if reason is not None:
                    premises[reason] = None
        if premises:
            self._lineage.firing(id, premises, "absent")

    def _reason(self, candidate: Candidate, head: Key, together: list[Key]) -> str | None:
        """Why a candidate fails, or None when it is for want of facts that are absent together.

        Facts that could only be derived from one another are all absent when each candidate
        from outside their circle fails: ``together`` is such a circle, which may grow here.
        """
        seen = self._seen
        inner = [k for k in candidate.inner if not seen.holds(k)]
        if any(k in together for k in inner):
            return None
        reasons: list[Callable[[], str]] = [
            *(
                (lambda k=k: self._absent(k))
                for k in candidate.present
                if k not in candidate.inner and not seen.holds(k)
            ),
            *((lambda k=k: self._present(k)) for k in candidate.absent if seen.holds(k)),
            *(
                (lambda leaf=leaf: leaf.put_opposite(self._lineage))
                for leaf in candidate.leaves
                if not leaf.holds(seen.schedule)
            ),
        ]
        if not reasons:
            together.append(inner[0])
            return None
        if len(reasons) == 1:
            return reasons[0]()
        id = self._lineage.fact(f"!{head} by {self._number(head, candidate)}", absent=True)
        for reason in reasons:
            self._lineage.firing(id, [reason()], "fails")
        return id

    def _number(self, head: Key, candidate: Candidate) -> str:
        return f"{candidate.rule} #{list(self._universe.candidates[head]).index(candidate)}"

    # -- aggregates --------------------------------------------------------------------------

    def _outcome(self, group: Group) -> tuple[Value, ...] | None:
        rows = [k.row for k in group.members if self._seen.holds(k)]
        if not rows:
            return None
        made = aggregates.outcome(group.aggregation, rows)
        return aggregates.head(group.aggregation, group.group, made)

    def _tally(self, group: Group) -> list[str]:
        """Facts that make the group's outcome what it is in this run."""
        there = [k for k in group.members if self._seen.holds(k)]
        others = [k for k in group.members if not self._seen.holds(k)]
        best = aggregates.deciding(group.aggregation, [k.row for k in there])
        if best is not None:
            there = [k for k in there if k.row == best]
            others = [k for k in others if aggregates.beats(group.aggregation, k.row, best)]
        return [*map(self._present, there), *map(self._absent, others)]
