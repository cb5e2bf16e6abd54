"""What does to nodes and links what faults ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bettong.harness.faults import kinds as f


@dataclass(frozen=True, slots=True)
class InjectionOutcome:
    """What a fault has done: whether it struck anything, None where nobody can tell."""

    fired: bool | None
    evidence: str


class Actuator(Protocol):
    """Does to nodes and links what a fault asks. Every call returns when its effect is in force
    and tells the evidence for it. A fault that cannot be put in force raises BettongError."""

    def crash(self, node: str) -> tuple[int, InjectionOutcome]:
        """Kill a node: its incarnation that is dead now, and whether it lived until then."""

    def restart(self, node: str) -> None:
        """Start a node again; where it stands still, another one beside it."""

    def pause(self, node: str) -> str: ...
    def resume(self, node: str) -> str: ...
    def arm(self, fault: f.LinkFault | f.Cut) -> str: ...
    def heal(self, fault: f.LinkFault | f.Cut, step_failed: bool) -> InjectionOutcome:
        """Mend the link. When the step did not fail, as it waits for no reply, first wait until
        the fault has struck what the step has sent."""
