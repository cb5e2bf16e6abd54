"""What is no fault and yet has to be right: a restart in good order, a batch without rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bettong.harness.sinks.rows import Input


@dataclass(frozen=True)
class Situation:
    """One of them.

    Attributes:
        id: stable, like a fault's.
        words: what happens, as a sentence.
        always: what it changes of the input.
        at_first: what it changes of the input of the first incarnation only.
        new_checkpoint: whether all is written once more with an empty checkpoint.
    """

    id: str
    words: str
    always: Mapping[str, int] = field(default_factory=dict)
    at_first: Mapping[str, int] = field(default_factory=dict)
    new_checkpoint: bool = False

    def input(self, source: Input, incarnation: int) -> Input:
        """The rows of an incarnation."""
        changed = {**self.always, **(self.at_first if incarnation == 1 else {})}
        return replace(source, **changed)


STOPPED = Situation(
    "stop(driver, after batch=1/commits)",
    "The query was stopped in good order after batch 1, and started again when there were more "
    "rows.",
    at_first={"batches": 2},
)
EMPTY = Situation("empty(batch=2)", "Batch 2 had no rows.", always={"empty": 2})
NEW_CHECKPOINT = Situation(
    "new-checkpoint",
    "When all was written, the checkpoint was lost, and the query was started again without one.",
    new_checkpoint=True,
)
SITUATIONS = (STOPPED, EMPTY)
KNOWN = {situation.id: situation for situation in (*SITUATIONS, NEW_CHECKPOINT)}
