"""What a search comes to does not hang on how long its runs take, nor on how many go on at once."""

from __future__ import annotations

import threading
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.lineage.faults import CLEAN, Bounds, Fault, FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.search.events import Executed, SearchEvent
from bettong.lineage.search.executor import Execution, SideBySide
from bettong.lineage.search.findings import Findings
from bettong.lineage.search.loop import search

WAYS = 4
BROKEN = (frozenset({"cut(1)"}), frozenset({"cut(0)", "cut(2)"}))


class Paced:
    """A system of which no run ends before another one under way that comes before it in an order:
    time, without a clock.

    Args:
        order: of schedules, by a number each.
        alone: so many times it says that one run may go on at a time, then that two may.
    """

    at_first = 2

    def __init__(self, order: dict[FaultSet, int], alone: int) -> None:
        self._order, self._alone = order, alone
        self._changed = threading.Condition()
        self._under_way: set[FaultSet] = set()
        self.ended: list[FaultSet] = []

    def workers(self) -> int:
        assert not self._under_way
        self._alone -= 1
        return 1 if self._alone >= 0 else 2

    def run(self, schedule: FaultSet) -> Execution:
        with self._changed:
            self._under_way.add(schedule)
            self._changed.wait_for(
                lambda: self._place(schedule) == min(map(self._place, self._under_way))
            )
            self._under_way.remove(schedule)
            self.ended.append(schedule)
            self._changed.notify_all()
        return self._judged(schedule)

    def _place(self, schedule: FaultSet) -> tuple[int, list[str]]:
        return self._order.get(schedule, 0), sorted(schedule)

    def _judged(self, schedule: FaultSet) -> Execution:
        """Each way that is cut shows a further one, which can be cut as well."""
        lineage = Lineage()
        ways = min(WAYS, self.at_first + 2 * len(schedule))
        leaves = [lineage.leaf(f"way {n}", [Fault(f"cut({n})", "loss")]) for n in range(ways)]
        lineage.firing("goal", leaves, "way")
        lineage.fact("goal", goal=True)
        violated = any(broken <= schedule for broken in BROKEN)
        return Execution(schedule, "violation" if violated else "good", lineage)


def searched(system: Paced, window: int, enough: int = 99) -> tuple[Findings, list[FaultSet]]:
    taken: list[FaultSet] = []

    def on_event(event: SearchEvent) -> None:
        if isinstance(event, Executed):
            taken.append(event.execution.schedule)

    found = search(
        SideBySide(system.run, system.workers),
        Bounds({"loss": 2}),
        find_all=True,
        smallest_first=True,
        at_a_time=lambda faults: window,
        enough=lambda: len(taken) >= enough,
        on_event=on_event,
    )
    return found, taken


SETS = [
    frozenset(f"cut({n})" for n in ways)
    for size in (1, 2)
    for ways in combinations(range(WAYS), size)
]
ORDERS = st.permutations(SETS).map(lambda sets: {each: n for n, each in enumerate(sets)})


@given(ORDERS, st.integers(0, 8), st.integers(1, 6), st.integers(2, 12))
@settings(deadline=None)
def test_the_same_is_learned_in_the_same_order_whichever_run_ends_first(
    order: dict[FaultSet, int], alone: int, window: int, enough: int
) -> None:
    paced, one_by_one = Paced(order, alone), Paced({}, 99)
    found, taken = searched(paced, window, enough)
    right, in_turn = searched(one_by_one, window, enough)
    assert taken == in_turn
    assert found.minimal == right.minimal
    assert [e.schedule for e in found.executions] == [e.schedule for e in right.executions]
    if enough > len(SETS):
        assert set(found.minimal) == set(BROKEN)
        assert taken[0] == CLEAN


def test_others_go_on_while_one_takes_its_time() -> None:
    """Beside the second one a run goes on that is put up when what the first teaches is known."""
    begun: list[FaultSet] = []
    later = threading.Event()

    class Slow(Paced):
        at_first = WAYS

        def run(self, schedule: FaultSet) -> Execution:
            begun.append(schedule)
            place = begun.index(schedule)
            if place == 4:
                later.set()
            assert place != 2 or later.wait(60)
            return self._judged(schedule)

    searched(Slow({}, 0), 3)
    assert len(begun) > 4
