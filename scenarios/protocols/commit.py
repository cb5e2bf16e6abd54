"""Atomic commitment: two-phase commit with its repairs, and three-phase commit.

Gray and Reuter, *Transaction Processing*, ch. 10; Bernstein, Hadzilacos, Goodman, *Concurrency
Control and Recovery in Database Systems*, ch. 7 (cooperative termination, three-phase commit).
One transaction; every agent is able to commit it. Whoever has decided tells its peers again and
again.
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

Goal = tuple[str, str]
COMMIT, ABORT = "commit", "abort"


class Commitment(Protocol):
    """A coordinator, three agents, and what it means to have decided."""

    nodes = ("a", "b", "C", "d")
    coordinator = "C"
    agents = ("a", "b", "d")
    xact = "hello"

    begin = Event("xact")
    decide = Message("xact", "decision")
    decided = State("xact", "decision")
    prepared = State("coordinator", "xact")
    running = State("xact")
    timer = Timer("xact")

    def given(self) -> Iterable[Given]:
        """The coordinator begins in round 1."""
        yield Given(self.coordinator, "begin", (self.xact,))

    def peers(self, name: str) -> tuple[str, ...]:
        """Whom a node tells: the coordinator its agents, an agent the other agents."""
        return tuple(n for n in self.agents if n != name)

    @precondition("prepared")
    def someone_prepared(
        self, world: World, node: str, coordinator: str, xact: str
    ) -> Iterator[Goal]:
        """Some agent is prepared."""
        yield "termination", xact

    @postcondition("decided", "decided")
    def two_nodes_decide(
        self, world: World, one: str, xact: str, _: str, other: str, same: str, __: str
    ) -> Iterator[Goal]:
        """Two different nodes have decided."""
        if one != other and xact == same:
            yield "termination", xact

    @precondition("decided")
    def someone_decided(self, world: World, node: str, xact: str, decision: str) -> Iterator[Goal]:
        """Some node has decided."""
        yield "decide", xact

    @postcondition("decided")
    def nobody_disagrees(self, world: World, node: str, xact: str, decision: str) -> Iterator[Goal]:
        """A node has decided, and no node otherwise."""
        if not world.decided.holds(..., xact, ABORT if decision == COMMIT else COMMIT):
            yield "decide", xact


class TwoPhaseCommit(Commitment):
    """The coordinator asks until it has decided; without all votes it never does."""

    bounds = (6, 0, 1)
    prepare = Message("xact")
    vote = Message("xact", keep=True)
    missing_vote = Event("xact")

    @rule("begin")
    def run(self, me: Node, xact: str) -> None:
        """The transaction is under way."""
        me.running.add(xact)

    @rule("prepare")
    def be_prepared(self, me: Node, coordinator: str, xact: str) -> None:
        """An agent votes yes and is bound by it."""
        me.prepared.add(coordinator, xact)
        me.vote.send(coordinator, xact)

    @rule("decide")
    def learn(self, me: Node, sender: str, xact: str, decision: str) -> None:
        """Take over a decision."""
        me.decided.add(xact, decision)

    @rule("running")
    def count_votes(self, me: Node, xact: str) -> None:
        """Some agent has not voted yet."""
        if not all(me.vote.holds(agent, xact) for agent in self.peers(me.name)):
            me.missing_vote.add(xact)

    @rule("vote")
    def commit(self, me: Node, agent: str, xact: str) -> None:
        """All have voted yes."""
        if not me.missing_vote.holds(xact):
            me.decided.next(xact, COMMIT)

    @rule("running")
    def ask(self, me: Node, xact: str) -> None:
        """Ask every agent, and go on until there is a decision."""
        for agent in self.peers(me.name):
            me.prepare.send(agent, xact)
        if me.decided.holds(xact, ...):
            me.running.discard(xact)

    @rule("decided")
    def tell(self, me: Node, xact: str, decision: str) -> None:
        """Tell the peers what is decided."""
        for peer in self.peers(me.name):
            me.decide.send(peer, xact, decision)


class TwoPhaseCommitTimeout(TwoPhaseCommit):
    """The coordinator aborts when votes are missing four rounds after the beginning."""

    @rule("begin")
    def set_timer(self, me: Node, xact: str) -> None:
        """Give the agents time."""
        me.timer.start(xact, 4)

    @rule("timer")
    def give_up(self, me: Node, xact: str) -> None:
        """Abort."""
        if me.missing_vote.holds(xact):
            me.decided.next(xact, ABORT)


class TwoPhaseCommitCooperative(TwoPhaseCommitTimeout):
    """Cooperative termination: an agent that waits in vain for the decision asks everyone.

    Who has decided answers; who is not prepared aborts, and answers that; who is prepared too
    cannot help.
    """

    bounds = (8, 0, 1)
    request = Message("xact")

    def peers(self, name: str) -> tuple[str, ...]:
        """Agents tell and ask the coordinator too."""
        return self.others(name)

    @rule("prepare")
    def watch(self, me: Node, coordinator: str, xact: str) -> None:
        """An agent waits so long for the decision."""
        me.timer.start(xact, 4)

    @rule("request")
    def refuse(self, me: Node, sender: str, xact: str) -> None:
        """Not prepared: abort."""
        if not me.prepared.holds(..., xact):
            me.decided.add(xact, ABORT)

    @rule("request", "decided")
    def answer(self, me: Node, sender: str, xact: str, known: str, decision: str) -> None:
        """Answer with the decision."""
        if xact == known:
            me.decide.send(sender, xact, decision)

    @rule("timer")
    def enquire(self, me: Node, xact: str) -> None:
        """Ask everyone for the decision."""
        if not me.decided.holds(xact, ...):
            for peer in self.peers(me.name):
                me.request.send(peer, xact)


class _Optimist(Commitment):
    @postcondition()
    def coordinator_is_gone(self, world: World) -> Iterator[Goal]:
        """Anything goes when the coordinator goes."""
        if world.crashed(self.coordinator):
            yield "termination", self.xact


class TwoPhaseCommitOptimist(_Optimist, TwoPhaseCommit):
    """Two-phase commit; blocking is excused when the coordinator crashes."""


class TwoPhaseCommitTimeoutOptimist(_Optimist, TwoPhaseCommitTimeout):
    """Two-phase commit with timeout; blocking is excused when the coordinator crashes."""


class ThreePhaseCommit(Commitment):
    """Three-phase commit (Skeen 1981): nobody commits before all are known to be ready for it.

    An agent that waits in vain aborts before it is precommitted and commits afterwards; the
    coordinator aborts when acknowledgements are missing.
    """

    bounds = (8, 0, 1)
    can_commit = Message("xact")
    vote = Message("xact")
    votes = State("agent", "xact")
    missing_vote = Event("xact")
    precommit = Message("xact")
    precommitted = State("coordinator", "xact")
    ack = Message("xact")
    missing_ack = Event("xact")
    committed = State("xact")
    aborted = State("xact")
    decided = Event("xact", "decision")  # type: ignore[assignment]

    @rule("begin")
    def propose(self, me: Node, xact: str) -> None:
        """The coordinator asks every agent, once."""
        me.running.add(xact)
        me.timer.start(xact, 5)
        for agent in self.peers(me.name):
            me.can_commit.send(agent, xact)

    @rule("can_commit")
    def be_prepared(self, me: Node, coordinator: str, xact: str) -> None:
        """An agent votes yes and is bound by it."""
        me.prepared.add(coordinator, xact)
        me.vote.send(coordinator, xact)
        me.timer.start(xact, 4)

    @rule("vote")
    def record(self, me: Node, agent: str, xact: str) -> None:
        """Keep the votes."""
        me.votes.add(agent, xact)

    @rule("running")
    def count(self, me: Node, xact: str) -> None:
        """What is missing, of votes ever and of acknowledgements now."""
        if not all(me.votes.holds(agent, xact) for agent in self.peers(me.name)):
            me.missing_vote.add(xact)
        if not all(me.ack.holds(agent, xact) for agent in self.peers(me.name)):
            me.missing_ack.add(xact)

    @rule("vote")
    def authorize(self, me: Node, agent: str, xact: str) -> None:
        """All have voted yes: precommit."""
        if not me.missing_vote.holds(xact) and not me.aborted.holds(xact):
            for peer in self.peers(me.name):
                me.precommit.send(peer, xact)

    @rule("precommit")
    def be_precommitted(self, me: Node, coordinator: str, xact: str) -> None:
        """From now on an agent commits when in doubt."""
        me.precommitted.add(coordinator, xact)
        if me.prepared.holds(coordinator, xact):
            me.ack.send(coordinator, xact)
            me.timer.cancel(xact)
            me.timer.start(xact, 4)

    @rule("ack")
    def commit(self, me: Node, agent: str, xact: str) -> None:
        """All have acknowledged."""
        if not me.missing_ack.holds(xact) and not me.aborted.holds(xact):
            me.committed.next(xact)

    @rule("timer", "precommitted")
    def commit_in_doubt(self, me: Node, xact: str, coordinator: str, same: str) -> None:
        """The decision does not come, and all are ready: commit."""
        if xact == same and not me.aborted.holds(xact):
            me.committed.add(xact)

    @rule("timer")
    def abort_in_doubt(self, me: Node, xact: str) -> None:
        """Nobody is known to be ready: abort. So does the coordinator without acknowledgements."""
        if me.name == self.coordinator:
            give_up = me.missing_ack.holds(xact)
        else:
            give_up = not me.precommitted.holds(..., xact)
        if give_up and not me.committed.holds(xact):
            me.aborted.next(xact)

    @rule("decide")
    def learn(self, me: Node, sender: str, xact: str, decision: str) -> None:
        """Take over a decision."""
        if decision == COMMIT:
            me.committed.add(xact)
        else:
            me.aborted.add(xact)

    @rule("committed")
    def be_committed(self, me: Node, xact: str) -> None:
        """Committed; but an abort has the last word."""
        me.decided.add(xact, COMMIT)
        if me.aborted.holds(xact):
            me.committed.discard(xact)

    @rule("aborted")
    def be_aborted(self, me: Node, xact: str) -> None:
        """Aborted."""
        me.decided.add(xact, ABORT)

    @rule("decided")
    def tell(self, me: Node, xact: str, decision: str) -> None:
        """Tell the peers what is decided."""
        for peer in self.peers(me.name):
            me.decide.send(peer, xact, decision)

    @rule("running")
    def finish(self, me: Node, xact: str) -> None:
        """With a decision the transaction is no longer under way."""
        if me.decided.holds(xact, ...):
            me.running.discard(xact)
