"""What a search says while it goes on: who wants to know gives it a handler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # so that those who only listen need no graph library
    from bettong.lineage.search.executor import Execution


@dataclass(frozen=True, slots=True)
class Executed:
    """A schedule was run and judged.

    Attributes:
        number: how many executions there are with it.
        from_log: the answer comes from the log of the interrupted search; nothing was run.
    """

    execution: Execution
    number: int
    from_log: bool = False


@dataclass(frozen=True, slots=True)
class Advanced:
    """How far the search has come.

    Attributes:
        executions: how many schedules were run, the clean one included.
        violations: how many of them broke a goal.
        hypotheses: how many sets of faults the lineage put up.
        pruned: how many of these were not run, because one that is equivalent to them was.
    """

    executions: int
    violations: int
    hypotheses: int = 0
    pruned: int = 0


SearchEvent = Executed | Advanced
Handler = Callable[[SearchEvent], None]


def ignore(event: SearchEvent) -> None:
    """The handler of those who do not want to know."""
