"""Paxos for one decision (Lamport, *Paxos Made Simple*, 2001), with two proposers that compete.

Every node is proposer, acceptor and learner. A ballot is a number that belongs to one proposer.
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
NOTHING = ""


class Paxos(Protocol):
    """Two proposers, three acceptors; a proposer that is not heard tries a higher ballot."""

    nodes = ("a", "b", "c")
    bounds = (7, 6, 1)
    proposals = (("a", "peter"), ("b", "foobar"))
    patience = 4

    propose = Event("value", "ballot")
    proposing = State("value", "ballot")
    timer = Timer("ballot")
    prepare = Message("ballot")
    promised = State("ballot")
    highest = Event("ballot")
    promise = Message("ballot", "accepted_ballot", "accepted_value", keep=True)
    accept = Message("ballot", "value")
    accepted = State("ballot", "value")
    vote = Message("ballot", "value", keep=True)
    learned = State("value")

    def given(self) -> Iterable[Given]:
        """Both propose in round 1."""
        for number, (node, value) in enumerate(self.proposals, 1):
            yield Given(node, "propose", (value, number))

    @property
    def quorum(self) -> int:
        """A majority."""
        return len(self.nodes) // 2 + 1

    @rule("propose")
    def begin(self, me: Node, value: str, ballot: int) -> None:
        """Phase 1a: ask all acceptors, oneself included, for a promise."""
        me.proposing.add(value, ballot)
        me.timer.start(ballot, self.patience)
        for node in self.nodes:
            me.prepare.send(node, ballot)

    @rule("timer", "proposing")
    def try_again(self, me: Node, ballot: int, value: str, current: int) -> None:
        """Not learned in time: propose again with a higher ballot of one's own."""
        if ballot == current and not me.learned.holds(...):
            me.proposing.discard(value, ballot)
            me.propose.next(value, ballot + len(self.nodes))

    @rule("prepare")
    def know(self, me: Node, proposer: str, ballot: int) -> None:
        """The ballots that an acceptor has heard of are promised to nobody lower."""
        me.promised.add(ballot)

    @rule("accept")
    def know_too(self, me: Node, proposer: str, ballot: int, value: str) -> None:
        """An accept request is heard of as well."""
        me.promised.add(ballot)

    @rule("promised")
    def highest_ballot(self, me: Node, ballot: int) -> None:
        """The highest ballot heard of."""
        if all(other <= ballot for (other,) in me.promised.rows()):
            me.highest.add(ballot)

    @rule("accept", "highest")
    def accept_value(self, me: Node, proposer: str, ballot: int, value: str, highest: int) -> None:
        """Phase 2b: accept unless something higher is promised, and tell the learners."""
        if ballot == highest:
            me.accepted.add(ballot, value)
            for node in self.nodes:
                me.vote.send(node, ballot, value)

    @rule("prepare", "highest")
    def answer(self, me: Node, proposer: str, ballot: int, highest: int) -> None:
        """Phase 1b: promise, and tell what was accepted with the highest ballot."""
        if ballot == highest:
            last = max(me.accepted.rows(), default=(0, NOTHING))
            me.promise.send(proposer, ballot, *last)

    @rule("proposing")
    def request(self, me: Node, value: str, ballot: int) -> None:
        """Phase 2a: with a quorum of promises, ask to accept the value of the highest ballot
        accepted before, or else one's own."""
        promises = me.promise.rows(..., ballot, ..., ...)
        if len({sender for sender, *_ in promises}) >= self.quorum:
            _, before = max((number, known) for _, _, number, known in promises)
            for node in self.nodes:
                me.accept.send(node, ballot, before or value)

    @rule("vote")
    def learn(self, me: Node, acceptor: str, ballot: int, value: str) -> None:
        """A quorum has accepted the same ballot."""
        if me.vote.count(..., ballot, value) >= self.quorum:
            me.learned.add(value)

    @precondition("learned")
    def someone_learned(self, world: World, node: str, value: str) -> Iterator[Goal]:
        """Some node has learned a value."""
        yield (value,)

    @postcondition("learned")
    def nobody_learned_otherwise(self, world: World, node: str, value: str) -> Iterator[Goal]:
        """It is the only one that was learned."""
        if all(other == value for _, other in world.learned.rows()):
            yield (value,)
