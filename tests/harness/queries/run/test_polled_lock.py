"""Who asks a server again and again for a lock may get it when that expires."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bettong.harness.queries.run import polled_lock
from bettong.harness.queries.run.polled_lock import EXPIRES_S, LOCKED_S, PolledLocks, Polls


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polled_lock, "patience", lambda seconds: seconds)


def waited(locks: PolledLocks, *, every_s: float = 0.0, awaits: bool = False) -> float:
    """After how many seconds without a step the driver is taken to wait for the other one; it asks
    every so many of them, if at all."""
    clock = Clock()
    polls = Polls(locks, clock)
    while not polls.waited(clock.now, int(clock.now // every_s) if every_s else 7, awaits):
        clock.now += 1
    return clock.now


def test_who_asks_nothing_waits_for_what_the_other_one_has_locked() -> None:
    assert waited(PolledLocks()) == LOCKED_S


@pytest.mark.parametrize("every_s", [0.5, 5.0, 15.0])
def test_who_asks_again_and_again_is_given_the_time_until_a_lock_expires(every_s: float) -> None:
    assert waited(PolledLocks(), every_s=every_s) == EXPIRES_S


def test_so_is_who_waits_to_be_told() -> None:
    assert waited(PolledLocks(), awaits=True) == EXPIRES_S


def test_a_lock_that_did_not_expire_once_is_not_waited_for_as_long_again() -> None:
    locks = PolledLocks()
    assert [waited(locks, every_s=1.0), waited(locks, every_s=1.0)] == [EXPIRES_S, LOCKED_S]


def test_who_asks_no_more_is_not_given_that_time() -> None:
    clock, locks = Clock(), PolledLocks()
    polls = Polls(locks, clock)
    for now in range(30):
        clock.now = now
        assert not polls.waited(now, now, awaits=False)
    clock.now = 29 + LOCKED_S
    assert polls.waited(clock.now, 29, awaits=False)
    assert not locks.last
