"""Reliable broadcast, from naive to correct.

One node broadcasts a message; every node shall log it. The five variants are those of Alvaro,
Rosen, Hellerstein, *Lineage-driven Fault Injection* (SIGMOD 2015), section 2 and 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bettong.lineage.protocols.local import Node
from bettong.lineage.protocols.protocol import (
    Event,
    Given,
    Message,
    Protocol,
    State,
    postcondition,
    precondition,
    rule,
)
from bettong.lineage.protocols.world import World

Goal = tuple[str, str]


class Broadcast(Protocol):
    """What all variants share: a log at each node, and what delivery means."""

    nodes = ("a", "b", "c")
    origin = "a"
    payload = "hello"

    log = State("payload")

    @precondition("log")
    def someone_else_has_it(self, world: World, node: str, payload: str) -> Iterator[Goal]:
        """A node that lives, other than the one who began, has logged the message."""
        if node != self.origin and not world.crashed(node):
            yield node, payload

    @postcondition("log")
    def everyone_has_it(self, world: World, node: str, payload: str) -> Iterator[Goal]:
        """A node has logged the message, and no neighbour of a holder lacks it."""
        if all(world.log.holds(other, payload) for other in self.nodes):
            yield node, payload


class Simple(Broadcast):
    """The sender sends once to each neighbour and hopes."""

    bounds = (6, 3, 0)
    bcast = Event("payload")
    rbcast = Message("payload")

    def given(self) -> Iterable[Given]:
        """The broadcast, in round 1."""
        yield Given(self.origin, "bcast", (self.payload,))

    @rule("bcast")
    def begin(self, me: Node, payload: str) -> None:
        """The one who begins has it."""
        me.log.add(payload)

    @rule("bcast", "others")
    def send(self, me: Node, payload: str, other: str) -> None:
        """Send it to all."""
        me.rbcast.send(other, payload)

    @rule("rbcast")
    def deliver(self, me: Node, sender: str, payload: str) -> None:
        """Log what arrives."""
        me.log.add(payload)


class Retry(Simple):
    """The sender sends again in every round."""

    bcast = State("payload")  # type: ignore[assignment]


class Redundant(Broadcast):
    """Every node that has the message sends it to all, in every round."""

    bcast = Event("payload")
    rbcast = Message("payload")

    def given(self) -> Iterable[Given]:
        """The broadcast, in round 1."""
        yield Given(self.origin, "bcast", (self.payload,))

    @rule("bcast")
    def begin(self, me: Node, payload: str) -> None:
        """The one who begins has it."""
        me.log.add(payload)

    @rule("rbcast")
    def deliver(self, me: Node, sender: str, payload: str) -> None:
        """Log what arrives."""
        me.log.add(payload)

    @rule("log", "others")
    def relay(self, me: Node, payload: str, other: str) -> None:
        """Send it on."""
        me.rbcast.send(other, payload)


class Classic(Broadcast):
    """Whoever receives the message relays it to all, in the round in which it came; nobody
    retries."""

    bounds = (6, 0, 2)
    bcast = Message("payload")

    def given(self) -> Iterable[Given]:
        """The broadcast, in round 1: as if the sender had heard it from itself."""
        yield Given(self.origin, "bcast", (self.origin, self.payload))

    @rule("bcast")
    def deliver(self, me: Node, sender: str, payload: str) -> None:
        """Log it, from the next round on."""
        me.log.next(payload)

    @rule("bcast", "others")
    def relay(self, me: Node, sender: str, payload: str, other: str) -> None:
        """Send it to all."""
        me.bcast.send(other, payload)


class Ack(Broadcast):
    """Every node that has the message sends it to each neighbour until that one has
    acknowledged it."""

    rbcast = Message("payload")
    ack = Message("payload", keep=True)

    def given(self) -> Iterable[Given]:
        """The broadcast, in round 1: as if the sender had heard it from itself."""
        yield Given(self.origin, "rbcast", (self.origin, self.payload))

    @rule("rbcast")
    def deliver(self, me: Node, sender: str, payload: str) -> None:
        """Log what arrives and acknowledge it."""
        me.log.add(payload)
        me.ack.send(sender, payload)

    @rule("log", "others")
    def relay(self, me: Node, payload: str, other: str) -> None:
        """Send to those who have not acknowledged."""
        if not me.ack.holds(other, payload):
            me.rbcast.send(other, payload)
