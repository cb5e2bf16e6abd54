"""One round of one node: run the rules over the facts, and record what each call read and wrote.

A round of a node is a pure function of the facts that it begins with, so that its result can be
remembered and used again in every run in which the node sees the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Literal

from bettong.lineage.errors import BettongError
from bettong.lineage.protocols.protocol import (
    OTHERS,
    Declared,
    Message,
    Protocol,
    ProtocolError,
    Relation,
    Rule,
    Timer,
    failed,
)

Arguments = tuple[Any, ...]
Fact = tuple[str, Arguments]
"""Relation and arguments, at a node that the context tells."""

TICKING, CANCEL, DISCARD = ".ticking", ".cancel", ".discard"
Effect = Literal["add", "next", "send"]
_VERBS = {"ticking": "start", "cancel": "cancel", "discard": "discard"}


@dataclass(frozen=True, slots=True)
class Read:
    """A question that a call asked.

    Attributes:
        relation: which facts.
        pattern: arguments; Ellipsis matches anything.
        matches: the facts found.
        every: the call looked at each of them, and at their number; else one was enough.
    """

    relation: str
    pattern: Arguments
    matches: tuple[Arguments, ...]
    every: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """What a call did, after its first ``after`` reads."""

    effect: Effect
    fact: Fact
    after: int
    to: str = ""


@dataclass(slots=True)
class Call:
    """One call of a rule."""

    rule: str
    triggers: tuple[Fact, ...]
    reads: list[Read] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)


def matches(pattern: Arguments, row: Arguments) -> bool:
    """Whether a row fits a pattern, in which Ellipsis stands for anything."""
    return len(pattern) == len(row) and all(
        p is ... or p == r for p, r in zip(pattern, row, strict=True)
    )


@dataclass(slots=True)
class LocalStep:
    """What one round of one node came to.

    Attributes:
        begun: facts with which the round began (kept, given, or received).
        facts: facts that held in the round.
        kept: facts with which the next round begins, messages aside.
        sent: messages by receiver; the arguments do not name the sender yet.
        calls: calls of rules, in order.
    """

    begun: frozenset[Fact]
    facts: frozenset[Fact]
    kept: frozenset[Fact]
    sent: dict[str, tuple[Fact, ...]]
    calls: tuple[Call, ...]
    by_rule: dict[str, list[Call]] = field(default_factory=dict)
    producers: dict[tuple[Effect, str, Fact], list[tuple[Call, int]]] = field(default_factory=dict)
    rows: dict[str, list[Arguments]] = field(default_factory=dict)

    def index(self) -> None:
        """Prepare ``by_rule``, ``producers`` and ``rows`` for those who ask why."""
        if self.by_rule or self.rows:
            return
        for call in self.calls:
            self.by_rule.setdefault(call.rule, []).append(call)
            for write in call.writes:
                key = (write.effect, write.to, write.fact)
                self.producers.setdefault(key, []).append((call, write.after))
        for name, arguments in sorted(self.facts, key=repr):
            self.rows.setdefault(name, []).append(arguments)


class View:
    """A relation as a rule sees it through ``me``."""

    __slots__ = ("_name", "_node", "_relation", "_rows")

    def __init__(self, node: Node, name: str, relation: Relation) -> None:
        self._node = node
        self._name = name
        self._relation = relation
        self._rows: dict[Arguments, None] = {}

    def _arguments(self, arguments: Arguments, columns: int, what: str) -> Arguments:
        if len(arguments) != columns:
            names = ", ".join(self._relation.columns[-columns:] if columns else ())
            raise ProtocolError(
                f"rule {self._node.call.rule}: {what} of {self._name} takes ({names}), "
                f"not {arguments!r}"
            )
        return arguments

    def _find(self, pattern: Arguments, every: bool) -> list[Arguments]:
        width = len(self._relation.columns)
        self._arguments(pattern, width, "a pattern")
        if ... in pattern:
            found = [row for row in self._rows if matches(pattern, row)]
        else:
            found = [pattern] if pattern in self._rows else []
        self._node.close(self._name)
        self._node.call.reads.append(Read(self._name, pattern, tuple(found), every))
        return found

    def holds(self, *pattern: Any) -> bool:
        """Whether there is a fact with these arguments; ``...`` stands for any."""
        return bool(self._find(pattern, every=False))

    def rows(self, *pattern: Any) -> list[Arguments]:
        """All facts that fit the pattern (all facts at all, without one), in order."""
        everything = (...,) * len(self._relation.columns)
        return sorted(self._find(pattern or everything, every=True), key=repr)

    def count(self, *pattern: Any) -> int:
        """How many facts fit the pattern."""
        return len(self.rows(*pattern))

    def add(self, *arguments: Any) -> None:
        """From this round on (State), or in this round only (Event)."""
        self._arguments(arguments, len(self._relation.columns), "a fact")
        if isinstance(self._relation, Timer):
            raise ProtocolError(f"start the timer {self._name} instead of adding to it")
        if arguments not in self._rows:
            self._node.open(self._name)
            self._rows[arguments] = None
        self._node.wrote("add", (self._name, arguments))

    def next(self, *arguments: Any) -> None:
        """From the next round on (State), or in the next round only (Event)."""
        self._arguments(arguments, len(self._relation.columns), "a fact")
        self._node.wrote("next", (self._name, arguments))

    def discard(self, *arguments: Any) -> None:
        """No longer from the next round on."""
        self._arguments(arguments, len(self._relation.columns), "a fact")
        if not self._relation.keep:
            raise ProtocolError(f"{self._name} is not kept, so that nothing can be discarded")
        self._node.wrote("add", (self._name + DISCARD, arguments))

    def send(self, to: str, *arguments: Any) -> None:
        """Send a message; it arrives in the next round unless it is lost. To oneself it never
        is."""
        if not isinstance(self._relation, Message):
            raise ProtocolError(f"{self._name} is not a Message and cannot be sent")
        self._arguments(arguments, len(self._relation.columns) - 1, "a message")
        self._node.wrote("send", (self._name, arguments), to)

    def start(self, id: Any, rounds: int) -> None:
        """Start a timer that times out ``rounds - 1`` rounds from now."""
        if not isinstance(self._relation, Timer) or rounds < 2:
            raise ProtocolError(f"{self._name}.start needs a Timer and at least 2 rounds")
        self._node.wrote("next", (self._name + TICKING, (id, rounds - 1)))

    def cancel(self, id: Any) -> None:
        """Stop the timers of this id that are ticking, one started in this round apart."""
        if not isinstance(self._relation, Timer):
            raise ProtocolError(f"{self._name} is not a Timer and cannot be cancelled")
        self._node.wrote("add", (self._name + CANCEL, (id,)))


class Node:
    """A node in one round, as its rules see it.

    Attributes:
        name: its name.
    """

    __slots__ = ("_closed", "_receivers", "_views", "call", "name")

    def __init__(
        self, name: str, relations: Mapping[str, Relation], receivers: frozenset[str]
    ) -> None:
        self.name = name
        self.call = Call("", ())
        self._receivers = receivers
        self._closed: dict[str, str] = {}
        self._views = {key: View(self, key, relation) for key, relation in relations.items()}

    def __getattr__(self, name: str) -> View:
        try:
            return self._views[name]
        except KeyError:
            known = ", ".join(self._views)
            raise ProtocolError(
                f"rule {self.call.rule} uses me.{name}, but the relations are: {known}"
            ) from None

    def close(self, relation: str) -> None:
        """The call in hand has read a relation."""
        self._closed.setdefault(relation, self.call.rule)

    def open(self, relation: str) -> None:
        """The call in hand adds to a relation, which no rule must have read yet."""
        reader = self._closed.get(relation)
        if reader is not None:
            raise ProtocolError(
                f"rule {self.call.rule} adds to {relation}, which {reader} has already read in "
                f"this round: move {self.call.rule} up, or add it for the next round"
            )

    def wrote(self, effect: Effect, fact: Fact, to: str = "") -> None:
        """The call in hand has done something."""
        if to and to not in self._receivers:
            raise ProtocolError(f"rule {self.call.rule} sends {fact[0]} to {to!r}: no such node")
        hash(fact)  # a list, which may change, is no argument: the error names the line
        self.call.writes.append(Write(effect, fact, len(self.call.reads), to))

    def _rows(self, relation: str) -> list[Arguments]:
        """Facts of a relation now, without leaving a trace."""
        return list(self._views[relation]._rows)

    def _put(self, facts: Iterable[Fact]) -> None:
        """Add facts that no rule derived."""
        for name, arguments in facts:
            self._views[name]._rows[arguments] = None

    def _facts(self) -> Iterator[Fact]:
        """All facts now."""
        for name, view in self._views.items():
            for row in view._rows:
                yield name, row


@dataclass(frozen=True)
class LocalRules:
    """The rules of a protocol, ready to run for any node and round."""

    protocol: Protocol
    declared: Declared

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        return self.declared.of_kind("rule")

    @cached_property
    def _nodes(self) -> frozenset[str]:
        return frozenset(self.protocol.nodes)

    @cached_property
    def discarding(self) -> frozenset[str]:
        """Relations from which some rule may discard facts."""
        kept = (n for n, r in self.declared.relations.items() if r.keep)
        return frozenset(n for n in kept if any(r.may("discard", n) for r in self._rules))

    def run(self, name: str, begun: frozenset[Fact]) -> LocalStep:
        """One round of a node that begins with these facts. Raises ProtocolError."""
        node = Node(name, self.declared.relations, self._nodes)
        ordered = sorted(begun, key=repr)
        node._put(f for f in ordered if not f[0].endswith(TICKING))
        calls: list[Call] = []
        ticking = [f for f in ordered if f[0].endswith(TICKING)]
        for fact in ticking:
            relation, (id, left) = fact
            if left == 1:
                timer = relation.removesuffix(TICKING)
                node._put([(timer, (id,))])
                write = Write("add", (timer, (id,)), 0)
                calls.append(Call("timeout", (fact,), writes=[write]))
        for rule in self._rules:
            for relation in rule.relations:
                node.call = Call(rule.name, ())
                node.close(relation)
            others = [(n,) for n in self.protocol.others(name)]
            choices = (others if r == OTHERS else node._rows(r) for r in rule.relations)
            for rows in product(*choices):
                triggers = zip(rule.relations, rows, strict=True)
                node.call = Call(rule.name, tuple(t for t in triggers if t[0] != OTHERS))
                try:
                    rule.function(self.protocol, node, *(value for row in rows for value in row))
                except BettongError:
                    raise
                except Exception as e:
                    raise failed(f"rule {rule.name}", e) from e
                _check_shown(rule, node.call)
                calls.append(node.call)
        facts = frozenset(node._facts())
        extra = {
            w.fact
            for c in calls
            for w in c.writes
            if w.effect == "add" and w.fact[0].endswith((DISCARD, CANCEL))
        }
        return LocalStep(
            begun,
            facts | frozenset(ticking) | extra,
            frozenset(self._kept(facts, ticking, extra, calls)),
            _sent(calls),
            tuple(calls),
        )

    def _kept(
        self, facts: frozenset[Fact], ticking: list[Fact], extra: set[Fact], calls: list[Call]
    ) -> Iterator[Fact]:
        for name, row in facts:
            if self.declared.relations[name].keep and (name + DISCARD, row) not in extra:
                yield name, row
        for relation, (id, left) in ticking:
            if left > 1 and (relation.removesuffix(TICKING) + CANCEL, (id,)) not in extra:
                yield relation, (id, left - 1)
        for call in calls:
            yield from (w.fact for w in call.writes if w.effect == "next")

    def durable(self, kept: frozenset[Fact]) -> frozenset[Fact]:
        """What a node still knows of these facts after a restart."""
        return frozenset(
            (name, row)
            for name, row in kept
            if (relation := self.declared.relations.get(name)) is not None
            and relation.keep
            and relation.durable
        )


def _check_shown(rule: Rule, call: Call) -> None:
    """Why a fact is absent is read from what the code of rules shows: it has to show all."""
    for write in call.writes:
        relation, _, suffix = write.fact[0].partition(".")
        verb = _VERBS.get(suffix, write.effect)
        if not rule.may(verb, relation) and (verb != "add" or relation not in rule.relations):
            raise ProtocolError(
                f"rule {rule.name}: that it does me.{relation}.{verb}(…) cannot be seen in its "
                f"code: write that in the rule, or in a method of the protocol that it calls"
            )


def _sent(calls: list[Call]) -> dict[str, tuple[Fact, ...]]:
    sent: dict[str, dict[Fact, None]] = {}
    for call in calls:
        for write in call.writes:
            if write.effect == "send":
                sent.setdefault(write.to, {})[write.fact] = None
    return {to: tuple(facts) for to, facts in sent.items()}
