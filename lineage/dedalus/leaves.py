"""What no rule derives, deliveries and nodes' lives, with the faults that decide it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bettong.lineage.faults import Fault, FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.protocols import rounds
from bettong.lineage.protocols.failure_spec import FailureSpec, crash, delay, duplication


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A leaf of the lineage, before it is part of one.

    Attributes:
        id: its id in a lineage.
        faults: those that decide it.
        lost: it holds only while one of them fires, instead of while none does.
        opposite: the id of the leaf that holds when this one does not.
    """

    id: str
    faults: tuple[Fault, ...]
    lost: bool
    opposite: str

    def holds(self, schedule: FaultSet) -> bool:
        """Whether it holds when exactly these faults fire."""
        return any(f.id in schedule for f in self.faults) == self.lost

    def put(self, lineage: Lineage) -> str:
        """Add it to a lineage; returns its id."""
        return lineage.leaf(self.id, self.faults, lost=self.lost)

    def put_opposite(self, lineage: Lineage) -> str:
        """Add the leaf that holds when this one does not; returns its id."""
        return lineage.leaf(self.opposite, self.faults, lost=not self.lost)


class LeafBuilder:
    """The leaves of a failure specification; ids and faults are those of the simulator's."""

    def __init__(self, spec: FailureSpec) -> None:
        self._spec = spec
        self._made = Lineage()
        self._known: dict[str, Leaf] = {}

    def delivery(self, sender: str, receiver: str, sent: int, arrives: int) -> Leaf:
        """What was sent in round ``sent`` arrived."""
        late = "" if arrives == sent + 1 else f" late@{arrives}"
        return self._leaf(
            rounds.delivery(self._made, self._spec, sender, receiver, sent, arrives),
            f"lost {sender}->{receiver}@{sent}{late}",
        )

    def running(self, node: str, time: int) -> Leaf:
        """The node computes in this round."""
        id = rounds.running(self._made, self._spec, node, time)
        return self._leaf(id, f"{node} stopped@{time}")

    def stopped(self, node: str, time: int) -> Leaf:
        """The node stands still in this round."""
        running = self.running(node, time)
        return self._own(running.opposite, running.faults, running.id)

    def remembering(self, node: str, time: int) -> Leaf:
        """The node's volatile facts live on into this round."""
        id = rounds.remembering(self._made, self._spec, node, time)
        return self._leaf(id, f"{node} forgets@{time}")

    def crashed(self, node: str) -> Leaf:
        """The node is one that crashes in this run."""
        id = rounds.crashed(self._made, self._spec, node)
        return self._leaf(id, f"alive {node}")

    def crash(self, node: str, time: int) -> Leaf:
        """The node crashes in this round."""
        return self._own(f"{node} crashes@{time}", [crash(node, time)], f"{node} lives@{time}")

    def disordering(self, sender: str, receiver: str, sent: int) -> list[Fault]:
        """Faults, any of which makes what is sent in this round arrive two rounds later."""
        found: list[Fault] = []
        if sent < self._spec.eff:
            kinds: list[tuple[int, Callable[[str, str, int], Fault]]] = [
                (self._spec.delays, delay),
                (self._spec.duplicates, duplication),
            ]
            found += [make(sender, receiver, sent) for most, make in kinds if most]
        return found

    def late(self, sender: str, receiver: str, sent: int) -> Leaf:
        """What was sent in this round arrives two rounds later (too)."""
        return self._own(
            f"late {sender}->{receiver}@{sent}",
            self.disordering(sender, receiver, sent),
            f"in time {sender}->{receiver}@{sent}",
        )

    def _leaf(self, id: str, opposite: str) -> Leaf:
        found = self._known.get(id)
        if found is None:
            attributes = self._made.attributes(id)
            faults = tuple(self._made.faults[f] for f in attributes["faults"])
            found = self._known[id] = Leaf(id, faults, attributes["lost"], opposite)
        return found

    def _own(self, id: str, faults: Iterable[Fault], opposite: str) -> Leaf:
        self._made.leaf(id, faults, lost=True)
        return self._leaf(id, opposite)
