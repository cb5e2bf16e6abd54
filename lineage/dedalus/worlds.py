"""Rounds one after the other: worlds, and how faults lead from one to the next.

Everything here is a pure function of the world, the round and the round's faults; results are
remembered, so that runs share whatever they have in common, from the failure-free prefix on.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bettong.lineage.dedalus.errors import DedalusError
from bettong.lineage.dedalus.evaluation import RuleSet, Tables
from bettong.lineage.dedalus.lowering import PlainRule, tick_relation
from bettong.lineage.dedalus.names import CLOCK, CRASH
from bettong.lineage.dedalus.tables import Row
from bettong.lineage.protocols.failure_spec import Link, RoundFaults

Fact = tuple[str, Row]
Facts = frozenset[Fact]
Crashes = frozenset[tuple[str, int]]
"""Which nodes crash in a run, and when."""

NOTHING: Facts = frozenset()
# How many results are remembered: worlds are small, the tables of a round are not.
REMEMBERED = 200_000
REMEMBERED_TABLES = 4_000


class World(NamedTuple):
    """What a round begins with.

    Attributes:
        kept: facts that @next rules gave it.
        due: facts that arrive by message.
        late: facts that will arrive one round later.
        past: facts of relations ``r@N`` from the round N on.
    """

    kept: Facts
    due: Facts
    late: Facts
    past: Facts


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What a round gives to later ones, before faults fire.

    Attributes:
        kept: what it began with that had been kept.
        next: facts of @next rules.
        located: the same with the node of the rule, or None.
        sent: facts of @async rules by link; a node's messages to itself have a link too.
        past: facts to be remembered of this round.
    """

    kept: Facts
    next: Facts
    located: tuple[tuple[str | None, Fact], ...]
    sent: Mapping[Link, Facts]
    past: Facts


def place(fact: Fact) -> object:
    """The node where a fact is: its first column, if that names one."""
    relation, row = fact
    return row[1] if relation == CLOCK else row[0]


class Rounds:
    """The rounds of a program.

    Args:
        rules: what each round must derive for the ones after it.
        views: what the last round must derive to be judged.
        given: facts from outside by round.
        volatile: relations whose facts a restart loses.
        ticks: pairs (relation, round) of which bodies read.
        clock: whether deliveries are facts of the program.
    """

    def __init__(
        self,
        rules: RuleSet,
        views: RuleSet,
        nodes: Sequence[str],
        given: Mapping[int, Sequence[Fact]],
        volatile: frozenset[str],
        ticks: frozenset[tuple[str, int]],
        clock: bool,
    ) -> None:
        self.rules = rules
        self.views = views
        self.nodes = tuple(nodes)
        self.given = given
        self.volatile = volatile
        self.ticks = ticks
        self.clock = clock
        self._tables: dict[Hashable, Tables] = {}
        self._outgoing: dict[Hashable, Outgoing] = {}
        self._worlds: dict[Hashable, World] = {}

    def start(self) -> World:
        """The world of round 1."""
        return World(NOTHING, NOTHING, NOTHING, NOTHING)

    def kept(self, world: World, faults: RoundFaults) -> Facts:
        """What is left of the kept facts where nodes restart in this round."""
        if not (faults.restarted and self.volatile):
            return world.kept
        return frozenset(
            f for f in world.kept if not (f[0] in self.volatile and place(f) in faults.restarted)
        )

    def tables(
        self, world: World, time: int, faults: RoundFaults, crashes: Crashes, *, views: bool
    ) -> Tables:
        """All facts of a round; not to be changed."""
        key = (world, time, crashes, faults.stopped, faults.restarted, views)
        found = self._tables.get(key)
        if found is None:
            if len(self._tables) > REMEMBERED_TABLES:
                self._tables.clear()
            found = self._tables[key] = self._fill(world, time, faults, crashes, views=views)
        return found

    def _fill(
        self, world: World, time: int, faults: RoundFaults, crashes: Crashes, *, views: bool
    ) -> Tables:
        chosen = self.views if views else self.rules
        tables = chosen.empty()
        arriving = [*self.given.get(time, ()), *world.due]
        if faults.stopped:
            arriving = [f for f in arriving if place(f) not in faults.stopped]
        for facts in (self.kept(world, faults), arriving, world.past):
            for relation, row in facts:
                if relation in tables:
                    tables[relation].add(row)
        if crashes and CRASH in tables:
            for node, at in sorted(crashes):
                for seen in self.nodes:
                    tables[CRASH].add((seen, node, at))
        chosen.fill(tables, time)
        return tables

    def outgoing(self, world: World, time: int, faults: RoundFaults, crashes: Crashes) -> Outgoing:
        """What the round gives to later ones."""
        key = (world, time, crashes, faults.stopped, faults.restarted)
        found = self._outgoing.get(key)
        if found is None:
            if len(self._outgoing) > REMEMBERED:
                self._outgoing.clear()
            found = self._outgoing[key] = self._go_out(world, time, faults, crashes)
        return found

    def _go_out(self, world: World, time: int, faults: RoundFaults, crashes: Crashes) -> Outgoing:
        tables = self.tables(world, time, faults, crashes, views=False)
        located: dict[tuple[str | None, Fact], None] = {}
        for rule in self.rules.inductive:
            if rule.rule.active(time):
                for node, row in rule.heads(tables):
                    if node is not None:
                        self._expect_node(node, rule.rule, f"in round {time} {{}} stays at")
                    located[node, (rule.rule.relation, row)] = None
        sent: dict[Link, set[Fact]] = {}
        for rule in self.rules.messages:
            if rule.rule.active(time):
                for node, row in rule.heads(tables):
                    self._expect_node(node, rule.rule, f"in round {time} {{}} is sent by")
                    self._expect_node(row[0], rule.rule, f"in round {time} {node} sends {{}} to")
                    link = (str(node), str(row[0]))
                    sent.setdefault(link, set()).add((rule.rule.relation, row))
        if self.clock:
            for a in self.nodes:
                for b in self.nodes:
                    sent.setdefault((a, b), set()).add((CLOCK, (a, b, time)))
        past = {
            (name, row)
            for relation, tick in self.ticks
            if tick == time and (name := tick_relation(relation, tick)) in tables
            for row in tables[name].rows
        }
        return Outgoing(
            self.kept(world, faults),
            frozenset(f for _, f in located),
            tuple(located),
            {link: frozenset(facts) for link, facts in sent.items()},
            frozenset(past),
        )

    def _expect_node(self, place: object, rule: PlainRule, what: str) -> None:
        """Raise DedalusError where a fact would be nowhere, and so be gone without a fault."""
        if place not in self.nodes:
            raise DedalusError(
                rule.position,
                f"{what.format(rule.relation.split('#')[0])} {place!r}, which is none of the nodes "
                f"{', '.join(self.nodes)}: name it with --nodes, or let the first column be a node",
            )

    def step(
        self, world: World, time: int, faults: RoundFaults, crashes: Crashes = frozenset()
    ) -> World:
        """The world of round ``time + 1``."""
        key = (world, time, faults, crashes)
        found = self._worlds.get(key)
        if found is None:
            if len(self._worlds) > REMEMBERED:
                self._worlds.clear()
            found = self._worlds[key] = self._step(world, time, faults, crashes)
        return found

    def _step(self, world: World, time: int, faults: RoundFaults, crashes: Crashes) -> World:
        out = self.outgoing(world, time, faults, crashes)
        kept = out.next
        if faults.stopped:
            running = (f for node, f in out.located if node not in faults.stopped)
            frozen = (f for f in out.kept if place(f) in faults.stopped)
            kept = frozenset([*running, *frozen])
        due: set[Fact] = set(world.late)
        late: set[Fact] = set()
        for (a, b), facts in out.sent.items():
            if a in faults.stopped:
                continue
            if a != b:
                link = (a, b)
                if link in faults.lost:
                    continue
                if link in faults.delayed or link in faults.duplicated:
                    late |= facts
                if link in faults.delayed:
                    continue
            due |= facts
        return World(
            kept, frozenset(due), frozenset(late), world.past | out.past if out.past else world.past
        )
