"""How long a run waits for its drivers: as long as they say something."""

from __future__ import annotations

from bettong.harness.queries.run.signals import Signals

PATIENCE_S = 0.01


class Clock:
    """Six thousandths of a second later at each look; a driver takes a step before each of the
    first ``steps`` looks of those who wait for it."""

    def __init__(self, steps: int) -> None:
        self.looks = 0
        self._left = steps
        self.signals = Signals(self)

    def __call__(self) -> float:
        self.looks += 1
        seconds = 0.006 * self.looks
        if self.looks > 2 and self._left:
            left, self._left = self._left, 0
            self.signals.word()
            self._left = left - 1
        return seconds


def test_signals_come_in_their_order() -> None:
    signals = Signals()
    signals.put("crashed", 1)
    signals.put("ended", 2)
    assert [signals.next(60), signals.next(60)] == [("crashed", 1), ("ended", 2)]


def test_who_says_nothing_is_waited_for_no_longer_than_that() -> None:
    clock = Clock(steps=0)
    assert clock.signals.next(PATIENCE_S) is None
    assert clock.looks == 4  # it is made, is waited for, has some time left, has none


def test_who_goes_on_is_waited_for_however_long_all_steps_take_together() -> None:
    clock = Clock(steps=5)
    assert clock.signals.next(PATIENCE_S) is None
    assert 0.006 * clock.looks > 6 * PATIENCE_S


def test_nobody_waits_for_what_is_known_not_to_come() -> None:
    signals = Signals()
    assert signals.next(60, in_vain=lambda: True) is None
    signals.put("ended", 1)
    assert signals.next(60, in_vain=lambda: True) == ("ended", 1)


def test_silence_ends_with_each_word_however_often_it_is_waited_for() -> None:
    now = [0.0]
    signals = Signals(lambda: now[0])
    for now[0] in (1.0, 2.0, 3.0):
        assert signals.next(0) is None
    assert signals.silent_s == 3.0
    signals.word()
    now[0] = 5.0
    assert signals.silent_s == 2.0
