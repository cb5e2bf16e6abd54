"""The bully algorithm for electing a coordinator (Garcia-Molina, *Elections in a Distributed
Computing System*, 1982)."""

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

Goal = tuple[int]


class Bully(Protocol):
    """Every node notices in round 1 that there is no coordinator; the highest name bullies.

    What is asked is termination: an election ends with a coordinator, whatever is lost. (That
    there is only one is promised for reliable, synchronous links only.)
    """

    nodes = ("a", "b", "c")
    bounds = (10, 9, 1)
    number = 1

    notice = Event("election")
    electing = State("election")
    timer = Timer("election")
    challenge = Message("election")
    answer = Message("election", keep=True)
    coordinates = State("election")
    victory = Message("election")
    follows = State("coordinator", "election")

    def given(self) -> Iterable[Given]:
        """All notice at the same time."""
        for node in self.nodes:
            yield Given(node, "notice", (self.number,))

    def higher(self, name: str) -> tuple[str, ...]:
        """The nodes with a higher name."""
        return tuple(n for n in self.nodes if n > name)

    @rule("notice")
    def hold(self, me: Node, election: int) -> None:
        """Hold an election: challenge everyone higher; who is the highest has won."""
        me.electing.add(election)
        me.timer.start(election, 3)
        for node in self.higher(me.name):
            me.challenge.send(node, election)

    @rule("challenge")
    def respond(self, me: Node, lower: str, election: int) -> None:
        """Silence a lower node, and hold an election oneself unless that is done."""
        me.answer.send(lower, election)
        if not me.electing.holds(election):
            me.notice.next(election)

    @rule("timer")
    def win(self, me: Node, election: int) -> None:
        """Nobody higher has answered: this node is the coordinator."""
        if not me.answer.holds(..., election):
            me.coordinates.add(election)

    @rule("notice")
    def win_at_once(self, me: Node, election: int) -> None:
        """The highest node need not wait."""
        if not self.higher(me.name):
            me.coordinates.add(election)

    @rule("coordinates", "others")
    def announce(self, me: Node, election: int, other: str) -> None:
        """Tell everyone."""
        me.victory.send(other, election)

    @rule("victory")
    def follow(self, me: Node, coordinator: str, election: int) -> None:
        """Follow the coordinator."""
        me.follows.add(coordinator, election)

    @precondition("electing")
    def election_is_held(self, world: World, node: str, election: int) -> Iterator[Goal]:
        """An election is held."""
        yield (election,)

    @postcondition("coordinates")
    def someone_coordinates(self, world: World, node: str, election: int) -> Iterator[Goal]:
        """It has ended with a coordinator."""
        yield (election,)
