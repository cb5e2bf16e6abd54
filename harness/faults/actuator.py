"""What does to nodes and links what faults ask for, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from bettong.engine.storage.durability import Keep

Direction = Literal["both", "forward", "backward"]


@dataclass(frozen=True, slots=True)
class InjectionOutcome:
    """What a fault has done: whether it hit anything, None where nobody can know."""

    fired: bool | None
    evidence: str


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What a fault does to the bytes of a link, as a toxic of Toxiproxy.

    Attributes:
        toxic: the toxic's type, e.g. ``latency``.
        attributes: the toxic's own, in its units.
        of_reply: it hits what comes back, not what is asked.
        loses: what it hits is lost. A client that asks again by itself within one step loses
            it once, and not until the step has ended.
        strands: the connections that it hits stay open and silent for good, where a repeater stands
            before them; elsewhere they are closed when it ends.
    """

    toxic: str
    attributes: Mapping[str, int] = field(default_factory=dict)
    of_reply: bool = False
    loses: bool = False
    strands: bool = False


class LinkActuator(Protocol):
    """Does to links what faults ask. What is in force is known by the fault's id; every call
    returns the evidence for it, and raises BettongError when nothing can be put in force."""

    def disturb(self, fault: str, link: str, disturbance: Disturbance) -> str: ...
    def partition(
        self, fault: str, left: tuple[str, ...], right: tuple[str, ...], direction: Direction
    ) -> str: ...
    def repeat(self, fault: str, link: str) -> str:
        """What is asked on the link from now on is delivered a second time when this is healed."""

    def heal(self, fault: str, step_failed: bool) -> InjectionOutcome:
        """End it. When the step did not fail, as it waits for no reply, first wait until the fault
        has hit what the step has sent."""


class Actuator(LinkActuator, Protocol):
    """Does to nodes and links what faults ask. Every call returns when its effect is in force and
    gives the evidence for it. A fault that cannot be put in force raises BettongError."""

    def crash(self, node: str) -> tuple[int, InjectionOutcome]:
        """Kill a node: its incarnation that is dead now, and whether it lived until then."""

    def cut_power(self, node: str, keep: Keep) -> tuple[int, InjectionOutcome]:
        """Kill a node, and take from its disk what is not durable: the incarnation that is dead
        now, and what was lost."""

    def stop(self, node: str) -> tuple[int, InjectionOutcome]:
        """Ask a node to end, and kill it if it does not: its incarnation that is dead now, and
        whether it lived until then."""

    def restart(self, node: str) -> None:
        """Start a node again; where it stands still, another one beside it."""

    def pause(self, node: str) -> InjectionOutcome:
        """Stop a node where it stands: whether it ran until then."""

    def resume(self, node: str) -> str: ...


class RunActuator(LinkActuator, Protocol):
    """The actuator as the faults of one run use it, at one of its steps: processes that must not
    go on do not, and nodes that are to come back do so while the run goes on."""

    @property
    def node(self) -> str:
        """The node that takes the step."""

    @property
    def link(self) -> str | None:
        """The link that the step's request travels on."""

    def crash(self, node: str, restart: bool) -> InjectionOutcome: ...
    def stop(self, node: str) -> InjectionOutcome:
        """Ask a node to end, and kill it if it does not; it comes back."""

    def cut_power(self, node: str, keep: Keep) -> InjectionOutcome:
        """Kill a node and take from its disk what is not durable; it comes back."""

    def pause(self, node: str, replace: bool) -> InjectionOutcome:
        """Stop a node where it stands; ``replace``: a supervisor starts another one meanwhile, if
        it ran until then."""

    def resume(self, node: str) -> str: ...
