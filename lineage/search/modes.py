"""What a hypothesis may attack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Mode = Literal["asked", "kept", "given", "hunt", "present", "absent"]
"""What a hypothesis may attack.

- ``asked``: what was there and led to a goal, while a known way to the goal's precondition stays.
- ``kept``: what was there and led to a goal, but nothing that led to its precondition.
- ``given``: what was there and led to a goal, its precondition taken as met.
- ``hunt``: the same, and what was not there but could be.
- ``present``: all that was there and led to a goal.
- ``absent``: everything, also that there was nothing further of a kind.

That something was not there because a message was lost counts in every mode: when it is not lost,
the thing may be there.

Only ``absent`` is exact where rules ask for absence; the others come first because what they put
up is likelier to break something.
"""

MODES: tuple[Mode, ...] = ("asked", "kept", "given", "hunt", "present", "absent")

WIDEST: Mode = "absent"
"""What is a hypothesis in any mode is one in this."""

LATE: frozenset[Mode] = frozenset({"hunt"})
"""In these any fault may take the place of an earlier one."""


@dataclass(frozen=True, slots=True)
class Switches:
    """The variables by which a mode is chosen.

    Attributes:
        absences: what was not there may fail by being there.
        further: so may it that there was nothing further of a kind.
        asked: a goal's precondition keeps a known way to hold.
        given: it is taken as met.
        kept: nothing that led to it fails.
    """

    absences: int
    further: int
    asked: int
    given: int
    kept: int

    @classmethod
    def new(cls, variable: Callable[[], int]) -> Switches:
        """Five new variables."""
        return cls(variable(), variable(), variable(), variable(), variable())

    def of(self, mode: Mode) -> list[int]:
        """The literals that hold in a mode."""
        there = [-self.absences, -self.further]
        match mode:
            case "asked":
                return [*there, self.given, self.asked]
            case "kept":
                return [*there, self.given, self.kept]
            case "given":
                return [*there, self.given]
            case "hunt":
                return [self.absences, -self.further, self.given]
            case "present":
                return there
            case "absent":
                return [self.absences]
