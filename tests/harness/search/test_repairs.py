"""Pairs of faults whose second one meets what the first one has led to."""

from __future__ import annotations

from collections.abc import Mapping

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Crash, Omit, OmitReply, Storage
from bettong.harness.faults.point import Point
from bettong.harness.search.equivalence import Recovery
from bettong.harness.search.repairs import RepairTurns
from bettong.lineage.faults import CRASH, LOSS, STORAGE, Bounds

BOUNDS = Bounds({CRASH: 1, LOSS: 1, STORAGE: 1}, total=2, alone=frozenset({STORAGE}))
ASKED, ANSWERED, COMMITTED = "batch=0/sink.commit", "receiver.commit/batch=0", "batch=0/commits"

LOST = OmitReply("driver->receiver", Point(ASKED))
AGAIN = Omit("driver->receiver", Point(ASKED, "before", 2))
KILLED_AGAIN = Crash("receiver", Point(ANSWERED, "before", 2))
KILLED_EARLIER = Crash("receiver", Point(ANSWERED, "before"))
KILLED_LATER = Crash("receiver", Point("receiver.open/epoch=2", "before"))
DRIVER_KILLED_LATER = Crash("driver", Point(COMMITTED, "before"))
FULL = Storage(Point(ANSWERED, "before", 2), "ENOSPC", 1)
CLEAN = (LOST, KILLED_EARLIER, KILLED_LATER, DRIVER_KILLED_LATER)
"""Those that can hit the clean run."""


def recovery(before: Mapping[str, int], taken: Mapping[str, int]) -> Recovery:
    return Recovery(0, 1, before, taken, "signature", "")


SHOWN = recovery(
    {ASKED: 1, ANSWERED: 1},
    {ASKED: 2, ANSWERED: 2, "receiver.open/epoch=2": 1, COMMITTED: 1},
)
"""An answer is lost, and the receiver is asked again."""


def pairs(*faults: Fault, bounds: Bounds = BOUNDS) -> list[frozenset[str]]:
    """Those with the lost answer, beside the clean run's and these faults."""
    turns = RepairTurns({fault.id: fault for fault in (*CLEAN, *faults)}, bounds)
    turns.learn(LOST.id, SHOWN, {fault.id for fault in CLEAN})
    return list(turns.in_turn())


def test_the_second_fault_hits_a_repair_or_kills_who_has_taken_part_in_it() -> None:
    found = pairs(AGAIN, KILLED_AGAIN, FULL)
    assert set(found) == {frozenset({LOST.id, f.id}) for f in (KILLED_AGAIN, KILLED_LATER)}


def test_who_has_taken_no_part_in_a_repair_is_not_killed_early() -> None:
    assert pairs() == []


def test_what_may_not_fire_together_is_no_pair() -> None:
    assert pairs(AGAIN, KILLED_AGAIN, bounds=Bounds({CRASH: 1, LOSS: 1}, total=1)) == []
    both = pairs(AGAIN, bounds=Bounds({CRASH: 1, LOSS: 2}))
    assert both == [frozenset({LOST.id, AGAIN.id})]


def test_of_each_sort_of_pair_comes_one_before_a_second_one_of_any_and_none_comes_twice() -> None:
    third = Crash("receiver", Point(ANSWERED, "before", 3))
    faults = {fault.id: fault for fault in (*CLEAN, KILLED_AGAIN, third)}
    turns = RepairTurns(faults, BOUNDS)
    shown = recovery(SHOWN.before, {**SHOWN.taken, ANSWERED: 3})
    turns.learn(LOST.id, shown, {fault.id for fault in CLEAN})
    turns.learn(LOST.id, shown, {fault.id for fault in CLEAN})
    seconds = (KILLED_LATER, KILLED_AGAIN, third)
    found = list(turns.in_turn())
    assert sorted(map(sorted, found)) == sorted(sorted({LOST.id, f.id}) for f in seconds)
    assert found[-1] in [frozenset({LOST.id, f.id}) for f in (KILLED_AGAIN, third)]
    assert list(turns.in_turn()) == []
