"""The simulator: what nodes keep, what crashes take, protocols that are not written properly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import count
from typing import Any

import pytest

from bettong.lineage.faults import CLEAN
from bettong.lineage.protocols.failure_spec import CrashModel, FailureSpec
from bettong.lineage.protocols.local import Node
from bettong.lineage.protocols.protocol import (
    Event,
    Given,
    Message,
    Protocol,
    ProtocolError,
    State,
    Timer,
    postcondition,
    precondition,
    rule,
)
from bettong.lineage.protocols.simulator import Simulation
from bettong.lineage.protocols.world import World


class Small(Protocol):
    """One node with all kinds of facts, one that counts what it hears."""

    nodes = ("a", "b")
    begin = Event("x")
    disk = State("x")
    memory = State("x", durable=False)
    timer = Timer("x")
    rang = Event("x")
    hello = Message("x")
    heard = State("sender", "x")

    def given(self) -> Iterable[Given]:
        """It begins in round 1."""
        yield Given("a", "begin", (1,))

    @rule("begin")
    def start(self, me: Node, x: int) -> None:
        """Remember in both ways."""
        me.disk.add(x)
        me.memory.add(x)
        me.timer.start(x, 3)

    @rule("disk")
    def send(self, me: Node, x: int) -> None:
        """Once, because it is discarded."""
        me.hello.send("b", x)
        me.disk.discard(x)

    @rule("timer")
    def ring(self, me: Node, x: int) -> None:
        """The timer."""
        me.rang.add(x)

    @rule("hello")
    def hear(self, me: Node, sender: str, x: int) -> None:
        """What comes."""
        me.heard.add(sender, x)

    @precondition("heard")
    def pre(self, world: World, node: str, sender: str, x: int) -> Iterator[Any]:
        """Nothing special."""
        yield (x,)

    @postcondition("heard")
    def post(self, world: World, node: str, sender: str, x: int) -> Iterator[Any]:
        """Nothing special."""
        yield (x,)


def held(*faults: str, model: CrashModel = "send-stop", **bounds: int) -> dict[str, list[int]]:
    spec = FailureSpec(("a", "b"), 6, bounds.pop("eff", 3), 1, model, **bounds)
    play = Simulation(Small()).play(spec, frozenset(faults))
    return {f"{n}.{f}": t for n, facts in play.facts.items() for f, t in facts.items()}


def test_a_clean_run() -> None:
    assert held() == {
        "a.begin(1)": [1],
        "a.disk(1)": [1],
        "a.memory(1)": [1, 2, 3, 4, 5, 6],
        "a.rang(1)": [3],
        "a.timer(1)": [3],
        "b.hello(a,1)": [2],
        "b.heard(a,1)": [2, 3, 4, 5, 6],
    }


def test_a_loss() -> None:
    assert "b.heard(a,1)" not in held("O(a,b,1)")


def test_send_stop_goes_on_computing() -> None:
    assert held("C(a,2)") == held()
    found = held("C(a,1)")
    assert "b.heard(a,1)" not in found
    assert found["a.rang(1)"] == [3]


def test_full_stop_freezes() -> None:
    found = held("C(a,2)", model="full-stop")
    assert "a.rang(1)" not in found
    assert found["a.memory(1)"] == [1, 2, 3, 4, 5, 6]
    assert "b.heard(a,1)" not in held("C(b,2)", model="full-stop")


def test_restart_takes_what_is_volatile() -> None:
    found = held("C(a,3)", model="restart")
    assert found["a.memory(1)"] == [1, 2]
    assert "a.rang(1)" not in found
    assert held("C(b,4)", model="restart")["b.heard(a,1)"] == [2, 3, 4, 5, 6]
    assert "b.heard(a,1)" not in held("C(b,2)", model="restart")
    assert "b.heard(a,1)" not in held("C(b,1)", model="restart", down_for=2)


def test_duplicates_and_delays() -> None:
    assert held("D(a,b,1)", duplicates=1)["b.hello(a,1)"] == [2, 3]
    assert held("L(a,b,1)", delays=1)["b.hello(a,1)"] == [3]
    assert "b.hello(a,1)" not in held("L(a,b,1)", "O(a,b,1)", delays=1)


def variant(**members: Any) -> Protocol:
    cls: Any = type("Variant", (Small,), members)
    return cls()


def bad_column(self: Any, me: Node, x: int) -> None:
    me.disk.add(x, x)


def bad_relation(self: Any, me: Node, x: int) -> None:
    me.disc.add(x)


def bad_receiver(self: Any, me: Node, x: int) -> None:
    me.hello.send("z", x)


def bad_verb(self: Any, me: Node, x: int) -> None:
    me.disk.send("b", x)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (bad_column, "a fact of disk takes"),
        (bad_relation, "the relations are"),
        (bad_receiver, "no such node"),
        (bad_verb, "is not a Message"),
    ],
)
def test_a_rule_that_is_wrong_is_named(function: Any, says: str) -> None:
    protocol = variant(extra=rule("begin")(function))
    with pytest.raises(ProtocolError, match=says):
        Simulation(protocol).play(FailureSpec(("a", "b"), 3), frozenset())


def add_memory(self: Any, me: Node, x: int) -> None:
    me.memory.add(x)


def add_disk(self: Any, me: Node, x: int) -> None:
    me.disk.add(x)


def test_rules_that_wait_for_one_another_are_named() -> None:
    protocol = variant(one=rule("disk")(add_memory), two=rule("memory")(add_disk))
    with pytest.raises(ProtocolError, match="wait for one another"):
        Simulation(protocol)


def test_a_rule_for_an_unknown_relation_is_named() -> None:
    with pytest.raises(ProtocolError, match="names the relation 'disc'"):
        Simulation(variant(extra=rule("disc")(add_disk)))


def test_a_given_fact_that_does_not_fit_is_named() -> None:
    def given(self: Any) -> list[Given]:
        return [Given("a", "begin", (1, 2))]

    with pytest.raises(ProtocolError, match="its columns are x"):
        Simulation(variant(given=given))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Given("a", "begin", (1,), 0), "in round 0, but the first round is 1"),
        (Given("a", "begin", [1]), "give a tuple"),  # type: ignore[arg-type]
        (Given("a", "begin", ([1],)), "unhashable type"),
        (("a", "begin", (1,)), "which yields Given"),
    ],
)
def test_a_given_fact_that_could_never_hold_is_named(given: Any, says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        Simulation(variant(given=lambda self: [given]))


def fails(self: Any, me: Node, x: int) -> None:
    raise ValueError("boom")


def sends_a_list(self: Any, me: Node, x: int) -> None:
    me.hello.send("b", [x])


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (fails, r"rule extra: ValueError: boom \(.*test_simulator\.py:\d+: raise ValueError"),
        (sends_a_list, r"rule extra: TypeError: unhashable type: 'list' \(.*me\.hello\.send"),
        (lambda self, me: None, "rule extra: TypeError: .* takes 2 positional arguments but 3"),
    ],
)
def test_an_error_in_a_rule_is_the_authors_and_names_the_line(function: Any, says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        Simulation(variant(extra=rule("begin")(function))).play(FailureSpec(("a", "b"), 3), CLEAN)


def test_a_condition_that_yields_nothing_at_all_is_named() -> None:
    def post(self: Any, world: World, node: str, x: int) -> None:
        return None

    protocol = variant(post=postcondition("begin")(post))
    with pytest.raises(ProtocolError, match="postcondition post, which yields goals"):
        Simulation(protocol).play(FailureSpec(("a", "b"), 1), CLEAN)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda *_: "done", "precondition asked returns text: yield its goals"),
        (lambda *_: [True], "a condition yields True, which names no goal"),
        (lambda *_: [None], "a condition yields None, which names no goal"),
    ],
)
def test_what_names_no_goal_is_none(answer: Any, says: str) -> None:
    asked = precondition("begin")(lambda *arguments: answer(*arguments))
    with pytest.raises(ProtocolError, match=says):
        Simulation(variant(asked=asked)).play(FailureSpec(("a", "b"), 1), CLEAN)


def test_a_relation_is_not_called_like_what_every_node_has() -> None:
    def adds(self: Any, me: Any, x: int) -> None:
        me.name.add(x)

    with pytest.raises(ProtocolError, match="cannot be called name"):
        Simulation(variant(name=State("x"), extra=rule("begin")(adds)))


@pytest.mark.parametrize("ask", [lambda me: me.rows("hello"), lambda me: list(me.facts())])
def test_a_node_is_asked_for_facts_in_no_way_that_leaves_no_trace(ask: Any) -> None:
    def asks(self: Any, me: Node, x: int) -> None:
        if not ask(me):
            me.disk.add(x)

    protocol = variant(extra=rule("begin")(asks))
    with pytest.raises(ProtocolError, match=r"uses me\.(rows|facts), but the relations are"):
        Simulation(protocol).play(FailureSpec(("a", "b"), 3), CLEAN)


def keeps_on_self(self: Any, me: Node, x: int) -> None:
    self.calls = getattr(self, "calls", 0) + 1
    me.hello.send("b", self.calls)


def tells_by_self(self: Any, me: Node, x: int) -> None:
    self.told = x
    if self.told:
        me.hello.send("b", x)


def tells_by_its_module(self: Any, me: Node, x: int) -> None:
    TOLD.add(x)


def tells_by_a_class(self: Any, me: Node, x: int) -> None:
    Told.last = x


def asks_a_clock(self: Any, me: Node, x: int) -> None:
    me.hello.send("b", next(NUMBERS))


TOLD: set[int] = set()
NUMBERS = count()


class Told:
    last = 0


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (keeps_on_self, r"self\.calls"),
        (tells_by_self, r"self\.told"),
        (tells_by_its_module, "TOLD of test_simulator"),
        (tells_by_a_class, "Told of test_simulator"),
    ],
)
def test_what_every_node_would_know_without_a_message_is_refused(function: Any, what: str) -> None:
    TOLD.clear()
    Told.last = 0
    protocol = variant(extra=rule("begin")(function))
    with pytest.raises(ProtocolError, match=f"a has changed {what}, which every node"):
        Simulation(protocol).play(FailureSpec(("a", "b"), 3), CLEAN)


def test_what_is_worked_out_once_and_for_all_is_a_constant() -> None:
    def most(self: Any) -> int:
        return len(self.nodes) // 2 + 1

    def counts(self: Any, me: Node, x: int) -> None:
        me.hello.send("b", self.most)

    protocol = variant(extra=rule("begin")(counts), most=cached_property(most))
    messages = Simulation(protocol).play(FailureSpec(("a", "b"), 3), CLEAN).messages
    assert (2,) in {m.content for m in messages}


def test_what_a_rule_keeps_outside_its_facts_is_not_remembered_for_other_runs() -> None:
    protocol = variant(extra=rule("begin")(asks_a_clock))
    with pytest.raises(ProtocolError, match="in round 1 a does not do the same in two clean runs"):
        Simulation(protocol).play(FailureSpec(("a", "b"), 3), CLEAN)
