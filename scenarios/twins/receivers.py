"""Receivers with a mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bettong.engine.receiver.ledger import Ledger, Part
from bettong.engine.receiver.server import Receiver


class _CommitsAgainLedger(Ledger):
    def is_committed(self, batch: int) -> bool:
        return False


class CommitsAgain(Receiver):
    """Does not look whether a batch was committed before."""

    ledger_class = _CommitsAgainLedger


class _CommitsLosersLedger(Ledger):
    def choose(self, batch: int, winners: Mapping[int, int]) -> list[Part]:
        super().choose(batch, winners)  # every winner is there
        return [part for staged in self.staged[batch].values() for part in staged.parts]


class CommitsLosers(Receiver):
    """Makes visible all that was staged for a batch, whoever won."""

    ledger_class = _CommitsLosersLedger


class _NumbersByArrivalLedger(Ledger):
    def __init__(self, *args: Any, **options: Any) -> None:
        self._arrived = 0
        self._seen: set[int] = set()
        super().__init__(*args, **options)

    def is_committed(self, batch: int) -> bool:
        return False  # what is there already is known by its number

    def choose(self, batch: int, winners: Mapping[int, int]) -> list[Part]:
        new: list[Part] = []
        for part in super().choose(batch, winners):
            number, self._arrived = self._arrived, self._arrived + 1
            if number not in self._seen:
                self._seen.add(number)
                new.append(part)
        return new


class NumbersByArrival(Receiver):
    """Knows outputs that it has by a number, but gives the number when they arrive, so that
    what arrives again has another one."""

    ledger_class = _NumbersByArrivalLedger
