"""What the code of a rule shows: whatever it calls, the search knows all that it may do."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, partialmethod, singledispatch, wraps
from typing import Any, ClassVar

import pytest

from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.explorer import explore
from bettong.lineage.protocols.failure_spec import FailureSpec
from bettong.lineage.protocols.local import Node
from bettong.lineage.protocols.protocol import (
    Event,
    Given,
    Message,
    Protocol,
    ProtocolError,
    State,
    postcondition,
    precondition,
    rule,
)
from bettong.lineage.protocols.simulator import Simulation
from bettong.lineage.protocols.world import World
from bettong.lineage.search.loop import search


class Silence(Protocol):
    """What b does when it has heard nothing by round 3 breaks the goal."""

    nodes = ("a", "b")
    go = Event("x")
    late = State("x")
    hello = Message("x", keep=True)
    bad = State("x")

    def given(self) -> Iterable[Given]:
        return [Given("a", "go", (1,)), Given("b", "late", (1,), 3)]

    @rule("go")
    def greet(self, me: Node, x: int) -> None:
        me.hello.send("b", x)

    def complain(self, me: Node, x: int) -> None:
        me.bad.next(x)

    @precondition("late")
    def asked(self, world: World, node: str, x: int) -> Iterator[tuple[int]]:
        yield (x,)

    @postcondition("late")
    def kept(self, world: World, node: str, x: int) -> Iterator[tuple[int]]:
        if not world.bad.holds(..., x):
            yield (x,)


def complain(me: Node, x: int) -> None:
    me.bad.next(x)


def protest(me: Node, x: int) -> None:
    me.bad.next(x)


class Complainer:
    def __init__(self, me: Node) -> None:
        self.me = me

    def complain(self, x: int) -> None:
        self.me.bad.next(x)


def unless_heard(function: Callable[..., None]) -> Callable[..., None]:
    @wraps(function)
    def wrapped(self: Protocol, me: Node, x: int) -> None:
        if not me.hello.holds("a", x):
            function(self, me, x)

    return wrapped


class ByFunction(Silence):
    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        if not me.hello.holds("a", x):
            complain(me, x)


class ByObject(Silence):
    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        if not me.hello.holds("a", x):
            Complainer(me).complain(x)


class BySuper(Silence):
    def complain(self, me: Node, x: int) -> None:
        super().complain(me, x)

    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        if not me.hello.holds("a", x):
            super().complain(me, x)


class ByName(Silence):
    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        if not me.hello.holds("a", x):
            getattr(me, "bad").next(x)  # noqa: B009


class ByStaticMethod(Silence):
    tell = staticmethod(complain)

    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        if not me.hello.holds("a", x):
            self.tell(me, x)


class ByPartial(Silence):
    tell = partial(complain)

    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        if not me.hello.holds("a", x):
            self.tell(me, x)


class ByDecorator(Silence):
    @rule("late")
    @unless_heard
    def wait(self, me: Node, x: int) -> None:
        me.bad.next(x)


class ByAnotherRule(Silence):
    never = State("x")

    @rule("never")
    def also(self, me: Node, x: int) -> None:
        me.bad.next(x)

    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        if not me.hello.holds("a", x):
            self.also(me, x)


class ByTable(Silence):
    ways: ClassVar[dict[bool, Callable[[Node, int], None]]] = {
        True: lambda me, x: None,
        False: complain,
    }

    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        self.ways[me.hello.holds("a", x)](me, x)


class ByAttribute(Silence):
    def __init__(self) -> None:
        self.ways: list[Any] = [complain, lambda me, x: None]

    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        self.ways[me.hello.count("a", x)](me, x)


class ByDefault(Silence):
    @rule("late")
    def wait(self, me: Node, x: int, tell: Callable[[Node, int], None] = complain) -> None:
        if not me.hello.holds("a", x):
            tell(me, x)


class ByKind(Silence):
    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        if not me.hello.holds("a", x):
            complain_of(x, me)


@singledispatch
def complain_of(x: object, me: Node) -> None:
    """Nothing, of most things."""


@complain_of.register
def _(x: int, me: Node) -> None:
    me.bad.next(x)


class ByMethodOfPartial(Silence):
    tell = partialmethod(lambda self, function, me, x: function(me, x), complain)

    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        if not me.hello.holds("a", x):
            self.tell(me, x)


class ByModule(Silence):
    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        here = sys.modules[__name__]
        if not me.hello.holds("a", x):
            here.protest(me, x)


@dataclass(frozen=True)
class Job:
    """What is done with it is a matter of its own."""

    number: int

    def object_to_it(self, me: Node) -> None:
        me.bad.next(self)


class ByArgument(Silence):
    def given(self) -> Iterable[Given]:
        return [Given("a", "go", (Job(1),)), Given("b", "late", (Job(1),), 3)]

    @rule("late")
    def wait(self, me: Node, x: Job) -> None:
        if not me.hello.holds("a", x):
            x.object_to_it(me)


EVERY = [ByFunction, ByObject, BySuper, ByName, ByStaticMethod, ByPartial, ByDecorator]
EVERY += [ByTable, ByAttribute, ByDefault, ByKind, ByMethodOfPartial, ByModule, ByArgument]


@pytest.mark.parametrize("protocol", [*EVERY, ByAnotherRule])
def test_what_a_helper_does_is_searched_for(protocol: type[Protocol]) -> None:
    spec = FailureSpec(protocol.nodes, 5, 2, 0)
    executor = RoundExecutor(Simulation(protocol()), spec)
    every = explore(executor, processes=1)
    assert every.minimal == [frozenset({"O(a,b,1)"})]
    assert search(executor, spec.bounds, find_all=True).minimal == every.minimal


class Hidden(Silence):
    hidden = weakref.ref(complain)

    @rule("late")
    def wait(self, me: Node, x: int) -> None:
        found: Any = self.hidden()
        found(me, x)


def test_what_cannot_be_seen_is_refused() -> None:
    spec = FailureSpec(Hidden.nodes, 5, 2, 0)
    with pytest.raises(ProtocolError, match=r"rule wait: .*me\.bad\.next"):
        RoundExecutor(Simulation(Hidden()), spec).run()
