"""What a search knows of a run beyond the step at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import dropwhile, takewhile
from operator import itemgetter

from bettong.harness.faults.fault import PowerLoss, TakenStep
from bettong.harness.faults.point import Point, PointPhase
from bettong.harness.faults.step_ids import StepId
from bettong.harness.search.durable import NotDurable
from bettong.harness.search.occurrences import Reading
from bettong.harness.search.partitions import Between, Partitions

_OVERTAKEN: Mapping[str, tuple[str, PointPhase]] = {
    "gateway.release/STREAM/N": ("gateway.release/STREAM/N", "after"),
    "receiver.commit/batch=N": ("receiver.commit/batch=N", "after"),
    "receiver.open/epoch=N": ("receiver.commit/batch=N", "before"),
}
"""What a server does for a client, with what it does for him later that a late one of these meets:
the next of its kind, when that is done, or what was staged since, before that is committed."""


class WholeRun:
    """One run, as :class:`~bettong.harness.faults.fault.TakenSteps`.

    Args:
        within: whether faults are placed at a step.
    """

    def __init__(self, reading: Reading, within: Callable[[str], bool] = lambda _: True) -> None:
        self._reading = reading
        self._within = within
        self._partitions = Partitions(reading)

    def apart(self, step: TakenStep) -> Sequence[Between]:
        return self._partitions.apart(step)

    def tried_again(self, step: TakenStep) -> Point | None:
        return self._partitions.tried_again(step)

    def opened_next(self, step: TakenStep) -> Point | None:
        own = step.step, step.number
        before = takewhile(lambda o: (o.step, o.number) != own, self._reading.occurrences)
        opened = [(o.id.epoch or 0, o.id) for o in before if o.id.shape == "epoch=N/sink.open"]
        if not opened:
            return None
        newest, first = max(opened, key=itemgetter(0))  # of several sinks the first
        return Point(str(first.with_number("epoch", newest + 1)), "before")

    def overtaken_by(self, step: TakenStep) -> Point | None:
        id, taken = StepId.parse(step.step), self._reading.occurrences
        if id.shape not in _OVERTAKEN:
            return None
        shape, phase = _OVERTAKEN[id.shape]
        own = step.step, step.number
        later = dropwhile(lambda o: (o.step, o.number) != own, taken)
        alike = (o for o in later if o.step != step.step and o.id.shape == shape)
        same = (o for o in alike if (o.id.name, o.id.stream) == (id.name, id.stream))
        found = next(same, None)
        return None if found is None else Point(found.step, phase, found.number)

    def power_losses(self, step: TakenStep) -> Iterable[PowerLoss]:
        return self._not_durable.of(step)

    @property
    def held(self) -> Mapping[int, str]:
        """At places of the trace, a digest of what a server's disk holds, as far as it is known."""
        return self._not_durable.held

    @cached_property
    def _not_durable(self) -> NotDurable:
        return NotDurable(self._reading, self._within)
