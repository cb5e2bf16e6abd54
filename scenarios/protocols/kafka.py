"""Replication in Kafka 0.8, with ZooKeeper keeping the members.

The leader acknowledges a write when every *member* has it, and the membership may have shrunk to
the leader alone: then an acknowledged write dies with it (Kyle Kingsbury, *Call me maybe: Kafka*,
2013; Alvaro, Rosen, Hellerstein 2015, section 6.3).
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


class Kafka(Protocol):
    """Three replicas, of which a leads; a client C; ZooKeeper Z."""

    nodes = ("a", "b", "c", "C", "Z")
    bounds = (7, 4, 1)
    replicas = ("a", "b", "c")
    leading = "a"
    client = "C"
    zookeeper = "Z"

    begin = Event()
    beats = State()
    timer = Timer("id")
    join = Message()
    register = Message()
    clients = State("client")
    member = State("replica")
    leader = State("replica")
    tell_member = Message("replica")
    tell_leader = Message("replica")
    request = Event("data")
    write = Message("data", keep=True)
    stored = Message("data", keep=True)
    missing = Event("data")
    ack = Message("data", keep=True)

    def given(self) -> Iterable[Given]:
        """Everyone starts in round 1; the client writes in rounds 2, 3 and 4."""
        for node in (*self.replicas, self.client):
            yield Given(node, "begin", ())
        yield Given(self.zookeeper, "beats", ())
        yield Given(self.zookeeper, "leader", (self.leading,))
        yield Given(self.zookeeper, "member", (self.leading,))
        for time in (2, 3, 4):
            yield Given(self.client, "request", ("Data1",), time)

    @rule("begin")
    def introduce(self, me: Node) -> None:
        """Replicas join, the client registers; each once."""
        if me.name in self.replicas:
            me.join.send(self.zookeeper)
        else:
            me.register.send(self.zookeeper)

    @rule("join")
    def admit(self, me: Node, replica: str) -> None:
        """ZooKeeper takes in a member."""
        me.member.add(replica)

    @rule("register")
    def remember_client(self, me: Node, client: str) -> None:
        """ZooKeeper takes note of a client."""
        me.clients.add(client)

    @rule("tell_member")
    def learn_member(self, me: Node, sender: str, replica: str) -> None:
        """Take over a member."""
        me.member.add(replica)

    @rule("tell_leader")
    def learn_leader(self, me: Node, sender: str, replica: str) -> None:
        """Take over the leader."""
        me.leader.add(replica)

    @rule("beats")
    def beat(self, me: Node) -> None:
        """ZooKeeper's periodic timer."""
        me.timer.start(me.name, 2)

    @rule("timer", "member", "member")
    def members_to_members(self, me: Node, timer: str, to: str, replica: str) -> None:
        """ZooKeeper tells every member who the members are."""
        me.tell_member.send(to, replica)

    @rule("timer", "clients", "member")
    def members_to_clients(self, me: Node, timer: str, to: str, replica: str) -> None:
        """ZooKeeper tells every client who the members are."""
        me.tell_member.send(to, replica)

    @rule("timer", "member", "leader")
    def leader_to_members(self, me: Node, timer: str, to: str, replica: str) -> None:
        """ZooKeeper tells every member who leads."""
        me.tell_leader.send(to, replica)

    @rule("timer", "clients", "leader")
    def leader_to_clients(self, me: Node, timer: str, to: str, replica: str) -> None:
        """ZooKeeper tells every client who leads."""
        me.tell_leader.send(to, replica)

    @rule("request", "leader")
    def ask(self, me: Node, data: str, leader: str) -> None:
        """The client sends its write to the leader it knows."""
        me.write.send(leader, data)

    @rule("write", "member")
    def replicate(self, me: Node, origin: str, data: str, member: str) -> None:
        """The leader sends the write to every member until that one has stored it."""
        if me.leader.holds(me.name) and not me.stored.holds(member, data):
            me.write.send(member, data)

    @rule("write")
    def store(self, me: Node, origin: str, data: str) -> None:
        """A follower says that it has stored the write."""
        if not me.leader.holds(me.name):
            me.stored.send(origin, data)

    @rule("write", "member")
    def wait(self, me: Node, origin: str, data: str, member: str) -> None:
        """A member has not stored it yet."""
        if member != me.name and not me.stored.holds(member, data):
            me.missing.add(data)

    @rule("write")
    def acknowledge(self, me: Node, origin: str, data: str) -> None:
        """Every member has it: the leader tells the client."""
        if me.leader.holds(me.name) and origin != me.name and not me.missing.holds(data):
            me.ack.send(origin, data)

    @precondition("ack")
    def acknowledged(self, world: World, node: str, acker: str, data: str) -> Iterator[Goal]:
        """The write is acknowledged."""
        yield (data,)

    @postcondition("ack", "write")
    def survives(
        self, world: World, node: str, acker: str, data: str, holder: str, origin: str, same: str
    ) -> Iterator[Goal]:
        """The write is acknowledged, and a node that lives has it."""
        if data == same and not world.crashed(holder):
            yield (data,)
