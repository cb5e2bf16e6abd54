"""Protocols as plain Python: how a protocol is written down.

A protocol is a class. Its attributes declare what a node knows and sends, its methods are rules::

    class Ack(Protocol):
        nodes = ("a", "b", "c")
        rbcast = Message("payload")
        ack = Message("payload", keep=True)
        log = State("payload")

        @rule("rbcast")
        def deliver(self, me, sender, payload):
            me.log.add(payload)
            me.ack.send(sender, payload)

        @rule("log")
        def relay(self, me, payload):
            for peer in self.peers(me):
                ...

In each round every node runs the rules. A rule runs once for each fact of the relation that it
names (for each combination, when it names several), after all rules that could add to what it
reads, and otherwise from top to bottom. What a call reads is why it writes what it writes: that
is the lineage. A call must therefore learn about facts from its arguments and from ``me`` only;
constants of the protocol are free. Naming ``others`` among the relations runs the rule once for
each other node.

Rounds, losses and crashes are those of :mod:`bettong.lineage.protocols.failure_spec`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from bettong.lineage.errors import BettongError
from bettong.lineage.protocols.rule_code import ANYTHING, uses
from bettong.lineage.user_code import in_one_line

Function = TypeVar("Function", bound=Callable[..., Any])
RuleKind = Literal["rule", "pre", "post"]
OTHERS = "others"
READING = ("holds", "rows", "count")


class ProtocolError(BettongError):
    """A protocol that is not written down properly."""


def failed(what: str, error: Exception) -> ProtocolError:
    """What is said of an error in the code of a protocol: where it was, and in which line."""
    return ProtocolError(f"{what}: {in_one_line(error)}")


@dataclass(frozen=True, slots=True, init=False)
class Relation:
    """Facts of one kind.

    Attributes:
        columns: names of their arguments, for people and for the check of their number.
        keep: a fact holds in all later rounds too, until it is discarded.
        durable: kept facts survive a restart of their node.
    """

    columns: tuple[str, ...]
    keep: bool
    durable: bool

    def __init__(self, *columns: str, keep: bool, durable: bool = True) -> None:
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "keep", keep)
        object.__setattr__(self, "durable", durable)


class State(Relation):
    """What a node knows until it discards it."""

    def __init__(self, *columns: str, durable: bool = True) -> None:
        Relation.__init__(self, *columns, keep=True, durable=durable)


class Event(Relation):
    """What is true at a node in one round only."""

    def __init__(self, *columns: str) -> None:
        Relation.__init__(self, *columns, keep=False)


class Message(Relation):
    """What one node sends another; at the receiver its first argument is the sender."""

    def __init__(self, *columns: str, keep: bool = False, durable: bool = True) -> None:
        Relation.__init__(self, "sender", *columns, keep=keep, durable=durable)


class Timer(Relation):
    """Logical timers of a node. ``start(id, rounds)`` times out ``rounds - 1`` rounds later,
    unless ``cancel(id)`` comes before; rules see the ids that time out in this round."""

    def __init__(self, column: str = "id") -> None:
        Relation.__init__(self, column, keep=False)


@dataclass(frozen=True, slots=True)
class Given:
    """A fact that comes from outside in one round: a client's request, the first configuration."""

    node: str
    relation: str
    arguments: tuple[Any, ...]
    round: int = 1


@dataclass(frozen=True, slots=True)
class Rule:
    """A method of a protocol.

    Attributes:
        name: the method's.
        kind: what it is for.
        relations: it runs for the facts of these.
        function: the method.
        uses: pairs of a relation and a verb that its code shows; see :meth:`may`.
    """

    name: str
    kind: RuleKind
    relations: tuple[str, ...]
    function: Callable[..., Any]
    uses: frozenset[tuple[str, str]]

    def may(self, verb: str, relation: str) -> bool:
        """Whether it could do this to the relation, as far as its code tells."""
        if verb == "add" and relation in self.relations:
            return False
        ways = {(relation, verb), (relation, "*"), ANYTHING}
        return not ways.isdisjoint(self.uses)

    def reads(self, relation: str) -> bool:
        """Whether its code shows that it looks at the relation."""
        return relation in self.relations or any((relation, v) in self.uses for v in READING)


def _mark(kind: RuleKind, relations: tuple[str, ...]) -> Callable[[Function], Function]:
    def mark(function: Function) -> Function:
        function.__dict__["bettong_rule"] = (kind, relations)
        return function

    return mark


def rule(*relations: str) -> Callable[[Function], Function]:
    """A rule of every node: called with the protocol, the node and the arguments of one fact of
    each relation named (with no relation: once in every round)."""
    return _mark("rule", relations)


def precondition(*relations: str) -> Callable[[Function], Function]:
    """What must hold in the last round for a postcondition to be asked for.

    Called with the protocol, the world and, for each relation named, the node and the arguments
    of one fact of any node; a generator of goals (tuples of text and numbers).
    """
    return _mark("pre", relations)


def postcondition(*relations: str) -> Callable[[Function], Function]:
    """What must hold in the last round, goal by goal; called like a precondition."""
    return _mark("post", relations)


class Protocol:
    """Base of all protocols.

    Attributes:
        nodes: names of the nodes, unless the user gives others.
        bounds: EOT, EFF and crashes that show the protocol at its most interesting.
    """

    nodes: ClassVar[tuple[str, ...]] = ()
    bounds: ClassVar[tuple[int, int, int]] = (6, 3, 1)

    def given(self) -> Iterable[Given]:
        """Facts that come from outside."""
        return ()

    def others(self, name: str) -> tuple[str, ...]:
        """Every node but this one."""
        return tuple(n for n in self.nodes if n != name)


@dataclass(frozen=True, slots=True)
class Declared:
    """The relations and rules of a protocol class, in order."""

    relations: dict[str, Relation]
    rules: tuple[Rule, ...]

    def of_kind(self, kind: RuleKind) -> tuple[Rule, ...]:
        """Rules of one kind, from top to bottom."""
        return tuple(r for r in self.rules if r.kind == kind)


def declared(protocol: Protocol) -> Declared:
    """Read a protocol's class; base classes come first, an overriding method takes the place of
    the one it overrides. Raises ProtocolError when a rule names an unknown relation."""
    cls = type(protocol)
    relations: dict[str, Relation] = {}
    order: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Relation):
                relations[name] = value
            elif hasattr(value, "bettong_rule"):
                order[name] = None
    rules = []
    for name in order:
        function = getattr(cls, name)
        if not hasattr(function, "bettong_rule"):
            continue
        kind, named = function.bettong_rule
        for relation in named:
            if relation not in relations and (kind, relation) != ("rule", OTHERS):
                known = ", ".join(relations) or "none"
                raise ProtocolError(
                    f"{cls.__name__}.{name} names the relation {relation!r}, "
                    f"but the protocol has: {known}"
                )
        rules.append(Rule(name, kind, named, function, uses(function, protocol, Relation)))
    for kind in ("pre", "post"):
        if not any(r.kind == kind for r in rules):
            raise ProtocolError(
                f"{cls.__name__} has no @{kind}condition: nothing could be violated"
            )
    return Declared(relations, _stratified(cls, tuple(relations), rules))


def _stratified(cls: type, relations: tuple[str, ...], rules: list[Rule]) -> tuple[Rule, ...]:
    """The rules in an order in which every relation is complete before it is read; raises
    ProtocolError when there is none."""
    adding = {r: [x for x in rules if (r, "add") in x.uses and x.kind == "rule"] for r in relations}
    before = {
        rule.name: {x.name for r in relations if rule.reads(r) for x in adding[r]} for rule in rules
    }
    ordered: list[Rule] = []
    waiting = list(rules)
    done: set[str] = set()
    while waiting:
        ready = next((r for r in waiting if before[r.name] <= done), None)
        if ready is None:
            names = ", ".join(r.name for r in waiting)
            raise ProtocolError(
                f"{cls.__name__}: {names} wait for one another within a round (each adds what "
                f"another reads): add something for the next round instead (.next)"
            )
        waiting.remove(ready)
        ordered.append(ready)
        done.add(ready.name)
    return tuple(ordered)
