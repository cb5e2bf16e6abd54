"""What a search knows of a run beyond the step at hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from bettong.harness.faults.fault import PowerLoss, TakenStep
from bettong.harness.faults.point import Point
from bettong.harness.search.durable import NotDurable
from bettong.harness.search.occurrences import Reading
from bettong.harness.search.partitions import Between, Partitions


class WholeRun:
    """One run, as :class:`~bettong.harness.faults.fault.TakenSteps`."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._partitions = Partitions(reading)

    def apart(self, step: TakenStep) -> Sequence[Between]:
        return self._partitions.apart(step)

    def tried_again(self, step: TakenStep) -> Point | None:
        return self._partitions.tried_again(step)

    def power_losses(self, step: TakenStep) -> Iterable[PowerLoss]:
        return self._not_durable.of(step)

    @cached_property
    def _not_durable(self) -> NotDurable:
        return NotDurable(self._reading)
