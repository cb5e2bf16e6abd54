"""In which order a search of a scenario is told to try single faults, and when pairs come early."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Crash, Storage
from bettong.harness.faults.point import Point
from bettong.harness.search.equivalence import Recovery
from bettong.harness.search.executor import ScenarioExecutor
from bettong.lineage.faults import CRASH, STORAGE, Bounds
from bettong.scenarios.counting import COUNTING

STEPS = [f"receiver.commit/batch={n}" for n in range(3)]
CRASHES = [Crash("receiver", Point(step, "before")) for step in STEPS]
FULL_DISKS = [Storage(Point(step, "before"), "ENOSPC", call) for step in STEPS for call in (1, 2)]
AGAIN = Crash("receiver", Point(STEPS[0], "before", 2))


def told(*clean: Fault) -> tuple[set[str], set[frozenset[str]]]:
    """The single faults that are suggested, and the pairs, when a crash was seen to be repaired."""
    bounds = Bounds({CRASH: 2, STORAGE: 1}, 2, frozenset({STORAGE}))
    executor = ScenarioExecutor(Mock(scenario=COUNTING), 2, bounds)
    executor.equivalence.faults.update({fault.id: fault for fault in (*clean, AGAIN)})
    executor.equivalence.clean = frozenset(fault.id for fault in clean)
    repaired = Recovery(0, 1, {STEPS[0]: 1}, {STEPS[0]: 2}, "signature", "")
    executor._repairs.learn(CRASHES[0].id, repaired, executor.equivalence.clean)
    singles = {id for _ in clean for faults in executor.suggest() for id in faults}
    return singles, set(executor.suggest_pairs())


@pytest.mark.parametrize(
    ("clean", "singles", "pairs"),
    [
        (CRASHES, [], set()),
        ([*CRASHES, FULL_DISKS[0]], FULL_DISKS[:1], set()),
        (
            [*CRASHES, *FULL_DISKS],
            [*CRASHES, *FULL_DISKS],
            {frozenset({CRASHES[0].id, AGAIN.id})},
        ),
    ],
)
def test_crashes_take_their_turn_where_they_would_come_last(
    clean: list[Fault], singles: list[Fault], pairs: set[frozenset[str]]
) -> None:
    """Alone, or beside few others, they come first by themselves, and pairs soon after them."""
    assert told(*clean) == ({fault.id for fault in singles}, pairs)
