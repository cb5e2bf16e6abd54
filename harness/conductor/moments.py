"""When the wait of a batch ends, in logical time: how far each stream has come by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bettong.engine.batch.planning import NEVER
from bettong.harness.faults.step_ids import StepId

Moment = Mapping[str, int]
"""For each stream how many messages of it have come."""


class Moments:
    """Answers drivers that ask when the wait of a batch ends.

    Time goes on: a driver that asks again for the same batch, such as one that was started since,
    is told the next moment.

    Args:
        moments: at the n-th ends the wait of batch n; later waits do not end.
    """

    def __init__(self, moments: Sequence[Moment]) -> None:
        self._moments = moments

    def answer(self, step: str, occurrence: int) -> Moment | str | None:
        """The answer to a step; None when it does not ask."""
        id = StepId.parse(step)
        if not id.is_wait or id.batch is None or not self._moments:
            return None
        place = id.batch + occurrence - 1
        return self._moments[place] if place < len(self._moments) else NEVER
