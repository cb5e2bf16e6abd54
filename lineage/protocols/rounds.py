"""What a round-based program, in whatever language, gives the search.

Plain-Python protocols (:mod:`bettong.lineage.protocols.simulator`) and Dedalus programs
(:mod:`bettong.lineage.dedalus`) implement :class:`RoundProgram`;
:class:`bettong.lineage.protocols.executor.RoundExecutor` makes an executor of either.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from bettong.lineage.faults import FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.protocols.failure_spec import FailureSpec, RoundFaults

_AMBIGUOUS = re.compile(r"""[,;'"]|^[-+.\d]|^(True|False|None|_)$""")

World = Hashable
"""Everything that is true at the start of a round: equal worlds have equal futures."""


class Judged(NamedTuple):
    """What holds in the last round: goals of the precondition and of the postcondition.

    A goal is the text of a fact's arguments, e.g. ``"b,hello"``. A goal of ``pre`` and one of
    ``post`` with the same text belong together.
    """

    pre: frozenset[str]
    post: frozenset[str]


def as_text(values: Iterable[Any]) -> str:
    """Values joined by commas, so that different ones read differently: what could be taken for a
    number, or for several values, is quoted."""
    return ",".join(map(_one, values))


def _one(value: Any) -> str:
    text = str(value)
    if not isinstance(value, str):
        return text
    return repr(value) if _AMBIGUOUS.search(text) else text


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a run.

    Attributes:
        name: the kind of message.
        sender: node.
        receiver: node.
        sent: round.
        arrives: round, or None when it was lost.
        content: its arguments.
    """

    name: str
    sender: str
    receiver: str
    sent: int
    arrives: int | None
    content: tuple[Any, ...] = ()


@dataclass(slots=True)
class Play:
    """One simulated run.

    Attributes:
        judged: what holds in the last round.
        messages: everything sent between different nodes, lost or not, in order of rounds.
        lineage: with a fact ``post(G)`` for each goal G of the postcondition that holds, and,
            where the program can explain an absence, an absent fact ``!pre(G)`` for each goal of
            ``explain`` whose precondition does not hold; None when no lineage was asked for.
        facts: for people: ``node -> fact -> rounds in which it held``.
    """

    judged: Judged
    messages: tuple[Message, ...] = ()
    lineage: Lineage | None = None
    facts: Mapping[str, Mapping[str, list[int]]] = field(default_factory=dict)


class RoundProgram(Protocol):
    """A program that runs in synchronous rounds. Deterministic.

    A crash is known to pre- and postconditions by the nodes' names only, not by its round.
    """

    @property
    def name(self) -> str:
        """Its name, for results."""
        ...

    def play(
        self,
        spec: FailureSpec,
        schedule: FaultSet,
        *,
        lineage: bool = True,
        explain: frozenset[str] = frozenset(),
    ) -> Play:
        """Run it from round 1 to EOT under a schedule."""
        ...

    def start(self) -> World:
        """The world at the start of round 1."""
        ...

    def step(self, world: World, time: int, faults: RoundFaults) -> World:
        """The world at the start of round ``time + 1``."""
        ...

    def judge(self, world: World, eot: int, faults: RoundFaults, crashed: frozenset[str]) -> Judged:
        """What holds in round EOT, given the world at its start, the faults of that round and
        the nodes that crashed in any round."""
        ...


def delivery(
    lineage: Lineage, spec: FailureSpec, sender: str, receiver: str, sent: int, arrives: int
) -> str:
    """Leaf: what the sender sent the receiver in round ``sent`` arrived in round ``arrives``."""
    late = "" if arrives == sent + 1 else f" late@{arrives}"
    return lineage.leaf(
        f"{sender}->{receiver}@{sent}{late}", spec.losing(sender, receiver, sent, arrives)
    )


def loss(lineage: Lineage, spec: FailureSpec, sender: str, receiver: str, sent: int) -> str:
    """Leaf: what the sender sent the receiver in round ``sent`` was lost."""
    return lineage.leaf(
        f"lost {sender}->{receiver}@{sent}", spec.losing(sender, receiver, sent), lost=True
    )


def alive(lineage: Lineage, spec: FailureSpec, node: str) -> str:
    """Leaf: the node is not one that crashes in this run (``notin crash(N, N, _)``)."""
    return lineage.leaf(f"alive {node}", spec.crashing(node))


def crashed(lineage: Lineage, spec: FailureSpec, node: str) -> str:
    """Leaf: the node is one that crashes in this run."""
    return lineage.leaf(f"crashed {node}", spec.crashing(node), lost=True)


def running(lineage: Lineage, spec: FailureSpec, node: str, time: int) -> str:
    """Leaf: the node computes in this round."""
    return lineage.leaf(f"{node} runs@{time}", spec.stopping(node, time))


def remembering(lineage: Lineage, spec: FailureSpec, node: str, time: int) -> str:
    """Leaf: the node's volatile facts live on from round ``time - 1`` into ``time``."""
    return lineage.leaf(f"{node} remembers@{time}", spec.forgetting(node, time))
