"""What a search knows of a run beyond the step at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import takewhile
from operator import itemgetter

from bettong.harness.faults.fault import PowerLoss, TakenStep
from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.search.durable import NotDurable
from bettong.harness.search.occurrences import Reading
from bettong.harness.search.partitions import Between, Partitions


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

    def committed_next(self, step: TakenStep) -> Point | None:
        id = StepId.parse(step.step)
        if id.batch is None or id.shape != "receiver.commit/batch=N":
            return None
        following = str(id.with_number("batch", id.batch + 1))
        taken = any(o.step == following for o in self._reading.occurrences)
        return Point(following, "after") if taken else None

    def power_losses(self, step: TakenStep) -> Iterable[PowerLoss]:
        return self._not_durable.of(step)

    @cached_property
    def _not_durable(self) -> NotDurable:
        return NotDurable(self._reading, self._within)
