"""Everything that may happen within a failure specification, and all ways in which it may.

One pass over the rounds derives every fact that some schedule of the specification may make true
(``notin`` counts as met unless the fact is certain), with all its candidate derivations, and tells
the facts that hold under every schedule. What a run shows can then be explained exactly, absences
included: a fact is absent because each of its candidates fails, for one of that candidate's own
reasons. This is the grounding that answer-set solvers begin with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bettong.lineage.dedalus import aggregates
from bettong.lineage.dedalus.candidates import Candidate, Group, Key
from bettong.lineage.dedalus.evaluation import CompiledStratum, RuleSet, Tables, close
from bettong.lineage.dedalus.joins import CompiledRule, Match
from bettong.lineage.dedalus.leaves import Leaf, LeafBuilder
from bettong.lineage.dedalus.lowering import Aggregation, tick_relation
from bettong.lineage.dedalus.names import CLOCK, CRASH
from bettong.lineage.dedalus.tables import Row
from bettong.lineage.dedalus.worlds import Fact, Rounds, place
from bettong.lineage.errors import UsageError
from bettong.lineage.protocols.failure_spec import FailureSpec

MAX_CANDIDATES = 300_000


@dataclass(slots=True)
class _Round:
    time: int
    tables: Tables
    certain: Tables
    keys: set[Key] = field(default_factory=set)


class Universe:
    """The facts possible within a failure specification.

    Attributes:
        candidates: for each possible fact that is not certain, its candidate derivations.
        certain: facts that hold under every schedule.
        groups: for each fact that aggregations may make, the groups of which they may.
        leaves: deliveries and lives.
    """

    def __init__(self, rounds: Rounds, spec: FailureSpec, *, crash_time: bool) -> None:
        """``crash_time``: rules look at the round of a crash, not only at whose it is."""
        self.spec = spec
        self.leaves = LeafBuilder(spec)
        self.candidates: dict[Key, dict[Candidate, None]] = {}
        self.certain: set[Key] = set()
        self.groups: dict[Key, list[Group]] = {}
        self._rounds = rounds
        self._crash_time = crash_time
        self._stops = spec.crashes > 0 and spec.crash_model != "send-stop"
        self._size = 0
        self._arriving: dict[int, list[tuple[Key, Candidate]]] = {}
        self._tables: dict[int, Tables] = {}
        for time in range(1, spec.eot + 1):
            self._ground(time)

    def possible(self, relation: str, time: int) -> Iterable[Row]:
        """Rows that a relation may have in a round."""
        table = self._tables[time].get(relation)
        return table.rows if table is not None else ()

    # -- one round ---------------------------------------------------------------------------

    def _ground(self, time: int) -> None:
        last = time == self.spec.eot
        rules = self._rounds.views if last else self._rounds.rules
        now = _Round(time, rules.empty(), rules.empty())
        self._tables[time] = now.tables
        self._begin(now)
        for compiled in rules.strata:
            self._settle(now, compiled.stratum.relations)
            for aggregation in compiled.aggregations:
                self._aggregate(now, aggregation)
            self._derive(now, compiled)
        if not last:
            self._go_out(now, rules)
            self._remember(now)

    def _begin(self, now: _Round) -> None:
        spec, time = self.spec, now.time
        for relation, row in self._rounds.given.get(time, ()):
            if relation in now.tables:
                leaves = self._running(place((relation, row)), time)
                self._add(now, Key(relation, row, time), "given", leaves=leaves)
        for key, candidate in self._arriving.pop(time, ()):
            if key.kept or key.relation in now.tables:
                self._put(now, key, candidate)
        for key in list(now.keys):
            if key.kept and self._holds_always(key):
                self._make_certain(now, key)
        if CRASH in now.tables and spec.crashes:
            for node in spec.nodes:
                for at in range(1, spec.eot if self._crash_time else 2):
                    leaf = (
                        self.leaves.crash(node, at)
                        if self._crash_time
                        else self.leaves.crashed(node)
                    )
                    for seen in self._rounds.nodes:
                        key = Key(CRASH, (seen, node, at), time)
                        self._add(now, key, "crash", leaves=[leaf])

    def _derive(self, now: _Round, compiled: CompiledStratum) -> None:
        members = compiled.stratum.relations if compiled.stratum.recursive else frozenset()
        found: list[tuple[Key, Candidate]] = []

        def run(rule: CompiledRule, delta: tuple[int, list[Row]] | None) -> Iterator[Row]:
            for match in rule.matches(now.tables, now.certain, delta):
                key = Key(rule.rule.relation, match.row, now.time)
                found.append((key, self._candidate(now, rule, match, members)))
                yield match.row

        close(compiled, now.tables, now.time, run)
        for key, candidate in found:
            self._put(now, key, candidate)
        self._settle(now, compiled.stratum.relations)

    def _candidate(
        self,
        now: _Round,
        rule: CompiledRule,
        match: Match,
        members: frozenset[str] = frozenset(),
    ) -> Candidate:
        read = [
            Key(relation, row, now.time)
            for relation, row in zip(rule.positive, match.read, strict=True)
        ]
        absent = {
            Key(relation, row, now.time): None
            for (relation, columns), key in zip(rule.negated, match.missed, strict=True)
            for row in now.tables[relation].matching(columns, key)
        }
        present = tuple(dict.fromkeys(k for k in read if k not in self.certain))
        return Candidate(
            rule.rule.label,
            present,
            tuple(absent),
            (),
            frozenset(k for k in present if k.relation in members),
        )

    def _add(
        self,
        now: _Round,
        key: Key,
        rule: str,
        present: Iterable[Key] = (),
        leaves: Iterable[Leaf] = (),
    ) -> None:
        uncertain = tuple(k for k in present if k not in self.certain)
        self._put(now, key, Candidate(rule, uncertain).with_leaves(leaves))

    def _put(self, now: _Round, key: Key, candidate: Candidate) -> None:
        if not key.kept and key.relation in now.tables:
            now.tables[key.relation].add(key.row)
        now.keys.add(key)
        if key in self.certain:
            return
        known = self.candidates.setdefault(key, {})
        if candidate not in known:
            known[candidate] = None
            self._size += 1
            if self._size > MAX_CANDIDATES:
                raise UsageError(
                    f"more than {MAX_CANDIDATES:,} derivations are possible within "
                    f"{self.spec.words()}: take a smaller EOT"
                )

    def _settle(self, now: _Round, relations: Iterable[str]) -> None:
        """Find out which facts of finished relations are certain."""
        waiting = [
            Key(relation, row, now.time)
            for relation in relations
            if relation in now.tables
            for row in now.tables[relation].rows
        ]
        while waiting:
            settled = False
            left = []
            for key in waiting:
                if key in self.certain or self._holds_always(key):
                    self._make_certain(now, key)
                    settled = True
                else:
                    left.append(key)
            if not settled:
                return
            waiting = left

    def _holds_always(self, key: Key) -> bool:
        return any(
            not c.absent and not c.leaves and all(k in self.certain for k in c.present)
            for c in self.candidates.get(key, ())
        )

    def _make_certain(self, now: _Round, key: Key) -> None:
        self.certain.add(key)
        self.candidates.pop(key, None)
        if not key.kept:
            now.certain[key.relation].add(key.row)

    def _aggregate(self, now: _Round, aggregation: Aggregation) -> None:
        rows = now.tables[aggregation.source].rows
        for group, some in aggregates.groups(aggregation, rows).items():
            members = tuple(Key(aggregation.source, row, now.time) for row in some)
            surely = [k.row for k in members if k in self.certain]
            maybe = [k.row for k in members if k not in self.certain]
            for made in aggregates.outcomes(aggregation, surely, maybe):
                key = Key(aggregation.relation, aggregates.head(aggregation, group, made), now.time)
                now.tables[key.relation].add(key.row)
                now.keys.add(key)
                if not maybe:
                    self._make_certain(now, key)
                elif key not in self.certain:
                    self.candidates.setdefault(key, {})
                    self.groups.setdefault(key, []).append(Group(aggregation, group, members))

    # -- from round to round -----------------------------------------------------------------

    def _go_out(self, now: _Round, rules: RuleSet) -> None:
        time = now.time
        for rule in rules.inductive:
            if rule.rule.active(time):
                for match in rule.matches(now.tables, now.certain):
                    if match.location is None or match.location in self._rounds.nodes:
                        leaves = self._running(match.location, time)
                        candidate = self._candidate(now, rule, match).with_leaves(leaves)
                        self._keep(Key(rule.rule.relation, match.row, time + 1), candidate)
        for rule in rules.messages:
            if rule.rule.active(time):
                for match in rule.matches(now.tables, now.certain):
                    a, b = match.location, match.row[0]
                    if a in self._rounds.nodes and b in self._rounds.nodes:
                        sent = self._candidate(now, rule, match)
                        self._send(str(a), str(b), time, (rule.rule.relation, match.row), sent)
        if self._rounds.clock:
            for a in self._rounds.nodes:
                for b in self._rounds.nodes:
                    self._send(a, b, time, (CLOCK, (a, b, time)), Candidate("clock", ()))

    def _send(self, a: str, b: str, time: int, fact: Fact, sent: Candidate) -> None:
        relation, row = fact
        running = self._running(a, time) if a == b else ()
        soon = (*running, self.leaves.delivery(a, b, time, time + 1))
        self._arrive(Key(relation, row, time + 1), sent.with_leaves(soon))
        if a != b and self.leaves.disordering(a, b, time) and time + 2 <= self.spec.eot:
            late = (self.leaves.delivery(a, b, time, time + 2), self.leaves.late(a, b, time))
            self._arrive(Key(relation, row, time + 2), sent.with_leaves(late))

    def _arrive(self, key: Key, candidate: Candidate) -> None:
        self._arriving.setdefault(key.time, []).append((key, candidate))

    def _keep(self, key: Key, candidate: Candidate) -> None:
        candidate = candidate.with_leaves(self._memory(key))
        if not self._stops:
            self._arrive(key, candidate)
            return
        kept = key._replace(kept=True)
        self._arrive(kept, candidate)
        self._arrive(key, Candidate("kept", (kept,)))

    def _memory(self, key: Key) -> tuple[Leaf, ...]:
        node = place((key.relation, key.row))
        if key.relation in self._rounds.volatile and node in self._rounds.nodes:
            return (self.leaves.remembering(str(node), key.time),)
        return ()

    def _remember(self, now: _Round) -> None:
        """What stays as it is: facts of rounds past, and facts of nodes that stand still."""
        for relation, tick in self._rounds.ticks:
            name = tick_relation(relation, tick)
            if now.time >= tick and name in now.tables:
                for row in now.tables[name].rows:
                    key = Key(name, row, now.time)
                    present = () if key in self.certain else (key,)
                    self._arrive(key._replace(time=now.time + 1), Candidate("past", present))
        if not self._stops:
            return
        for key in list(now.keys):
            node = place((key.relation, key.row))
            if key.kept and node in self._rounds.nodes:
                leaf = self.leaves.stopped(str(node), now.time)
                if leaf.faults:
                    present = () if key in self.certain else (key,)
                    self._keep(
                        Key(key.relation, key.row, now.time + 1),
                        Candidate("stays", present, (), (leaf,)),
                    )

    def _running(self, node: object, time: int) -> tuple[Leaf, ...]:
        if node in self._rounds.nodes:
            return (self.leaves.running(str(node), time),)
        return ()
