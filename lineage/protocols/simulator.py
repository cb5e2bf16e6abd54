"""The simulator of plain-Python protocols.

What a node does in a round depends only on what it begins the round with. The simulator gives
every such beginning a number and works each out once; a run is then a walk over numbers. Nothing
is carried from one run to the next but these pure results.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from bettong.lineage.errors import BettongError
from bettong.lineage.faults import CLEAN, FaultSet
from bettong.lineage.protocols.constants import Constants
from bettong.lineage.protocols.failure_spec import FailureSpec, Link, RoundFaults
from bettong.lineage.protocols.lineage_builder import LineageBuilder
from bettong.lineage.protocols.local import Fact, LocalRules, LocalStep, Node
from bettong.lineage.protocols.protocol import Given, Protocol, ProtocolError, declared, failed
from bettong.lineage.protocols.rounds import Judged, Message, Play, World
from bettong.lineage.protocols.world import World as EveryNode
from bettong.lineage.protocols.world import judged

Arrivals = tuple[tuple[int, int], ...]
"""Pairs of a sender's number and the number of what it sent, sorted."""

REMEMBERED = 500_000
_TAKEN = frozenset(dir(Node)) | frozenset(dir(EveryNode)) | frozenset(dir(Protocol))


class _World(NamedTuple):
    kept: tuple[int, ...]
    due: tuple[Arrivals, ...]
    late: tuple[Arrivals, ...]


class _Step(NamedTuple):
    local: LocalStep
    kept: int
    sent: tuple[tuple[int, int], ...]
    view: int


class Simulation:
    """A protocol as a :class:`bettong.lineage.protocols.rounds.RoundProgram`."""

    def __init__(self, protocol: Protocol, name: str = "") -> None:
        self.protocol = protocol
        self.declared = declared(protocol)
        named = {name for rule in self.declared.rules for name, _ in rule.uses}
        taken = sorted(_TAKEN & named & self.declared.relations.keys())
        if taken:
            raise ProtocolError(
                f"{type(protocol).__name__}: a relation cannot be called {taken[0]}, as something "
                "of every node, world or protocol is: choose another name"
            )
        self.nodes = tuple(protocol.nodes)
        if not self.nodes:
            raise ProtocolError(f"{type(protocol).__name__} names no nodes")
        self.rules = LocalRules(protocol, self.declared)
        self._constants = Constants(protocol, self.declared)
        self._name = name or type(protocol).__name__
        self._number = {n: i for i, n in enumerate(self.nodes)}
        self._known: dict[Hashable, int] = {frozenset(): 0}
        self._values: list[Any] = [frozenset()]
        self._steps: dict[tuple[int, int, int, Arrivals], _Step] = {}
        self._judged: dict[tuple[tuple[int, ...], frozenset[str]], Judged] = {}
        self._durable: dict[int, int] = {}
        self._given = self._read_given()
        self._steady = False

    @property
    def name(self) -> str:
        """Name of the protocol."""
        return self._name

    def _read_given(self) -> dict[tuple[int, int], int]:
        facts: dict[tuple[int, int], set[Fact]] = {}
        try:
            for given in self.protocol.given():
                self._expect_given(given)
                place = (self._number[given.node], given.round)
                facts.setdefault(place, set()).add((given.relation, given.arguments))
        except BettongError:
            raise
        except Exception as e:
            raise failed(f"{self._name}.given, which yields Given(…)", e) from e
        return {place: self._intern(frozenset(some)) for place, some in facts.items()}

    def _expect_given(self, given: Given) -> None:
        """Raise ProtocolError for a fact that could never hold."""
        relation = self.declared.relations.get(given.relation)
        what = f"{self._name} is given {given.relation}{given.arguments} at {given.node}"
        if relation is None:
            raise ProtocolError(f"{what}: no such relation")
        if given.node not in self._number:
            nodes = ", ".join(self.nodes) or "none"
            raise ProtocolError(f"{what}: no such node; the protocol's nodes (--nodes) are {nodes}")
        if not isinstance(given.arguments, tuple) or len(given.arguments) != len(relation.columns):
            raise ProtocolError(
                f"{what}, but its columns are {', '.join(relation.columns)}: give a tuple of them"
            )
        if given.round < 1:
            raise ProtocolError(f"{what} in round {given.round}, but the first round is 1")

    def _intern(self, value: Hashable) -> int:
        number = self._known.get(value)
        if number is None:
            number = self._known[value] = len(self._values)
            self._values.append(value)
        return number

    def _local(self, node: int, kept: int, given: int, arrivals: Arrivals) -> _Step:
        key = (node, kept, given, arrivals)
        found = self._steps.get(key)
        if found is not None:
            return found
        received = frozenset(
            (name, (self.nodes[sender], *arguments))
            for sender, batch in arrivals
            for name, arguments in self._values[batch]
        )
        begun = self._values[kept] | self._values[given] | received
        local = self.rules.run(self.nodes[node], begun)
        self._constants.expect_unchanged(f"{self._name}: {self.nodes[node]}")
        sent = sorted((self._number[to], self._intern(facts)) for to, facts in local.sent.items())
        step = _Step(local, self._intern(local.kept), tuple(sent), self._intern(local.facts))
        if len(self._steps) > REMEMBERED:
            self._steps.clear()
        self._steps[key] = step
        return step

    def _after_restart(self, kept: int) -> int:
        if kept not in self._durable:
            self._durable[kept] = self._intern(self.rules.durable(self._values[kept]))
        return self._durable[kept]

    def _round(self, world: _World, time: int, faults: RoundFaults) -> list[_Step]:
        steps = []
        given = self._given
        calm = not (faults.stopped or faults.restarted)
        for i, kept in enumerate(world.kept):
            if calm:
                steps.append(self._local(i, kept, given.get((i, time), 0), world.due[i]))
                continue
            if self.nodes[i] in faults.restarted:
                kept = self._after_restart(kept)
            if self.nodes[i] in faults.stopped:
                still = self._local(i, kept, 0, ())
                steps.append(_Step(still.local, kept, (), still.view))
            else:
                steps.append(self._local(i, kept, given.get((i, time), 0), world.due[i]))
        return steps

    def start(self) -> World:
        """The world at the start of round 1."""
        nothing: tuple[Arrivals, ...] = ((),) * len(self.nodes)
        return _World((0,) * len(self.nodes), nothing, nothing)

    def step(self, world: World, time: int, faults: RoundFaults) -> World:
        """The world at the start of round ``time + 1``."""
        return self._deliver(world, self._round(world, time, faults), faults)  # type: ignore[arg-type]

    def _deliver(self, world: _World, steps: list[_Step], faults: RoundFaults) -> _World:
        due: list[list[tuple[int, int]]] = [list(a) for a in world.late]
        late: list[list[tuple[int, int]]] = [[] for _ in self.nodes]
        troubled = bool(faults.lost or faults.delayed or faults.duplicated)
        for i, step in enumerate(steps):
            for to, batch in step.sent:
                if troubled and to != i:
                    link = (self.nodes[i], self.nodes[to])
                    if link in faults.lost:
                        continue
                    if link in faults.delayed or link in faults.duplicated:
                        late[to].append((i, batch))
                    if link in faults.delayed:
                        continue
                due[to].append((i, batch))
        return _World(
            tuple(step.kept for step in steps),
            tuple(tuple(sorted(set(a))) if len(a) > 1 else tuple(a) for a in due),
            tuple(tuple(sorted(a)) for a in late),
        )

    def links(self, world: World, time: int, faults: RoundFaults) -> list[Link]:
        """Links between different nodes on which something is sent in this round."""
        return [
            (self.nodes[i], self.nodes[to])
            for i, step in enumerate(self._round(world, time, faults))  # type: ignore[arg-type]
            for to, _ in step.sent
            if to != i
        ]

    def judge(self, world: World, eot: int, faults: RoundFaults, crashed: frozenset[str]) -> Judged:
        """The goals that hold in the last round."""
        return self._judge(self._round(world, eot, faults), crashed)  # type: ignore[arg-type]

    def _judge(self, steps: list[_Step], crashed: frozenset[str]) -> Judged:
        key = (tuple(step.view for step in steps), crashed)
        found = self._judged.get(key)
        if found is None:
            views = {n: s.local for n, s in zip(self.nodes, steps, strict=True)}
            found = judged(self.protocol, self.declared, views, crashed)
            self._constants.expect_unchanged(f"{self._name}: a condition")
            if len(self._judged) > REMEMBERED:
                self._judged.clear()
            self._judged[key] = found
        return found

    def play(
        self,
        spec: FailureSpec,
        schedule: FaultSet,
        *,
        lineage: bool = True,
        explain: frozenset[str] = frozenset(),
    ) -> Play:
        """Run the protocol under a schedule."""
        if not self._steady:
            self._expect_steady(spec)
        rounds = spec.rounds(schedule)
        crashed = frozenset(spec.crash_times(schedule))
        history = self._history(rounds)
        found = self._judge(history[-1], crashed)
        if not lineage:
            return Play(found)
        locals_ = [
            {n: s.local for n, s in zip(self.nodes, steps, strict=True)} for steps in history
        ]
        builder = LineageBuilder(self.rules, spec, rounds, crashed, locals_)
        return Play(
            found,
            tuple(self._messages(spec, rounds, locals_)),
            builder.build_lineage(explain - found.pre),
            _held(locals_),
        )

    def _history(self, rounds: Sequence[RoundFaults]) -> list[list[_Step]]:
        """What every node did in each round."""
        world: _World = self.start()  # type: ignore[assignment]
        history: list[list[_Step]] = []
        for time, faults in enumerate(rounds, 1):
            history.append(self._round(world, time, faults))
            if time < len(rounds):
                world = self._deliver(world, history[-1], faults)
        return history

    def _expect_steady(self, spec: FailureSpec) -> None:
        """Raise ProtocolError when two clean runs, each worked out anew, differ: what is remembered
        of a round would then answer for others."""
        calm = spec.rounds(CLEAN)
        one, other = (Simulation(self.protocol, self._name)._history(calm) for _ in range(2))
        for time, (now, again) in enumerate(zip(one, other, strict=True), 1):
            for node, a, b in zip(self.nodes, now, again, strict=True):
                if (a.local.facts, a.local.sent) != (b.local.facts, b.local.sent):
                    raise ProtocolError(
                        f"{self._name}: in round {time} {node} does not do the same in two clean "
                        "runs: let rules rest on their arguments and on what me tells alone, not "
                        "on chance, a clock, or what they keep on self or elsewhere"
                    )
        self._steady = True

    def _messages(
        self,
        spec: FailureSpec,
        rounds: tuple[RoundFaults, ...],
        steps: list[dict[str, LocalStep]],
    ) -> list[Message]:
        found = []
        for time, now in enumerate(steps[:-1], 1):
            faults, after = rounds[time - 1], rounds[time]
            for sender, step in now.items():
                if sender in faults.stopped:
                    continue
                for receiver, facts in step.sent.items():
                    if receiver == sender:
                        continue
                    link = (sender, receiver)
                    lost = link in faults.lost or receiver in after.stopped
                    arrives = time + 2 if link in faults.delayed else time + 1
                    found += [
                        Message(
                            name,
                            sender,
                            receiver,
                            time,
                            None if lost or arrives > spec.eot else arrives,
                            content,
                        )
                        for name, content in facts
                    ]
        return found


def _held(steps: list[dict[str, LocalStep]]) -> dict[str, dict[str, list[int]]]:
    held: dict[str, dict[str, list[int]]] = {}
    for time, now in enumerate(steps, 1):
        for node, step in now.items():
            for name, arguments in sorted(step.facts, key=repr):
                if "." not in name:
                    fact = f"{name}({','.join(str(a) for a in arguments)})"
                    held.setdefault(node, {}).setdefault(fact, []).append(time)
    return held
