"""Flux: a dataflow's operators run as pairs (Shah, Hellerstein, Brewer, *Highly Available,
Fault-Tolerant, Parallel Dataflows*, SIGMOD 2004).

Two copies of a producer feed two copies of a consumer. A producer keeps its tuples in a buffer and
its connection sends them again round by round; when its consumer does not acknowledge one for too
long, it takes over the other consumer and feeds that one too.
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
    Timer,
    postcondition,
    precondition,
    rule,
)
from bettong.lineage.protocols.world import World

Goal = tuple[str]


class Flux(Protocol):
    """A producer pair and a consumer pair; four tuples."""

    nodes = ("p1", "p2", "c1", "c2")
    bounds = (22, 21, 1)
    pairs = (("p1", "c1"), ("p2", "c2"))
    tuples = (("foo", 1), ("bar", 1), ("baz", 1), ("qux", 2))
    patience = 6

    put = Event("data")
    buffer = State("data")
    timer = Timer("data")
    taken_over = State("data")
    send = Message("data")
    ack = Message("data", keep=True)
    consumed = State("data")

    def given(self) -> Iterable[Given]:
        """Both copies of the producer produce the same tuples."""
        for producer, _ in self.pairs:
            for data, time in self.tuples:
                yield Given(producer, "put", (data,), time)

    def consumer(self, producer: str, taken_over: bool) -> str:
        """The consumer that a producer feeds, or the other one after a takeover."""
        own, other = (self.pairs, self.pairs[::-1])[producer == self.pairs[1][0]]
        return (other if taken_over else own)[1]

    @rule("put")
    def keep(self, me: Node, data: str) -> None:
        """Buffer what is produced."""
        me.buffer.add(data)
        me.timer.start(data, self.patience)

    @rule("timer")
    def take_over(self, me: Node, data: str) -> None:
        """The consumer seems dead: feed the other one too."""
        if not me.ack.holds(..., data):
            me.taken_over.add(data)

    @rule("buffer")
    def feed(self, me: Node, data: str) -> None:
        """Send to one's own consumer."""
        me.send.send(self.consumer(me.name, taken_over=False), data)

    @rule("taken_over")
    def feed_other(self, me: Node, data: str) -> None:
        """After a takeover, to the other consumer too."""
        me.send.send(self.consumer(me.name, taken_over=True), data)

    @rule("send")
    def consume(self, me: Node, producer: str, data: str) -> None:
        """A consumer takes a tuple and acknowledges it."""
        me.consumed.add(data)
        me.ack.send(producer, data)

    @precondition("buffer")
    def produced(self, world: World, node: str, data: str) -> Iterator[Goal]:
        """The tuple was produced."""
        yield (data,)

    @postcondition("consumed")
    def survives(self, world: World, node: str, data: str) -> Iterator[Goal]:
        """A consumer that lives has consumed it."""
        if not world.crashed(node):
            yield (data,)
