"""Which pairs of faults to try early: those whose second fault meets what the first one led to.

What a fault leads to its own run shows: steps that are taken once more, or that the clean run does
not have. A second fault may hit such a step; or it kills a node that has taken one, which then
goes on from what it left. Few of the other pairs do more together than each of their faults alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from bettong.harness.faults.fault import Fault
from bettong.harness.search.equivalence import Recovery
from bettong.harness.search.turns import Sort, sort_of
from bettong.lineage.faults import Bounds, FaultSet
from bettong.lineage.faults import Fault as Counted

_SortPair = tuple[Sort, Sort]


@dataclass(slots=True)
class RepairTurns:
    """Such pairs, as far as runs have shown them.

    Attributes:
        faults: every fault known, by id.
        bounds: within which both may fire.
    """

    faults: Mapping[str, Fault]
    bounds: Bounds
    _left: dict[_SortPair, list[FaultSet]] = field(default_factory=dict)
    _known: set[FaultSet] = field(default_factory=set)
    _pairs: Counter[_SortPair] = field(default_factory=Counter)
    _firsts: Counter[Sort] = field(default_factory=Counter)
    _seconds: Counter[Sort] = field(default_factory=Counter)

    def learn(self, id: str, recovery: Recovery, clean: Collection[str]) -> None:
        """Take in what the run of a fault alone showed, beside the faults of the clean run."""
        first = self.faults[id]
        known = self.bounds.at_most.keys()
        kinds = {fault.counts_as(known) for fault in self.faults.values()}
        beside = {kind for kind in kinds if self._may_fire(first.counts_as(known), kind)}
        if not beside:
            return
        later = [fault for fault in self.faults.values() if _comes_after(fault, recovery)]
        fresh = [fault for fault in later if fault.id not in clean]
        at_work = {node for fault in fresh if fault.kills for node in fault.nodes}
        for second in later:
            kills = second.kills and not at_work.isdisjoint(second.nodes)
            if second.counts_as(known) in beside and (kills or second.id not in clean):
                self._add(first, second)

    def in_turn(self) -> Iterator[FaultSet]:
        """Pairs that were not given before: of each sort one, before a second one of any, and of
        these such as have a fault of a sort that was seldom in one."""
        while self._left:
            sorts = min(self._left, key=self._had)
            first, second = sorts
            self._pairs[sorts] += 1
            self._firsts[first] += 1
            self._seconds[second] += 1
            pair = self._left[sorts].pop(0)
            if not self._left[sorts]:
                del self._left[sorts]
            yield pair

    def _had(self, sorts: _SortPair) -> tuple[int, int]:
        first, second = sorts
        return self._pairs[sorts], self._firsts[first] + self._seconds[second]

    def _may_fire(self, first: str, second: str) -> bool:
        return self.bounds.allow([Counted("", first), Counted("", second)])

    def _add(self, first: Fault, second: Fault) -> None:
        pair = frozenset({first.id, second.id})
        if pair not in self._known:
            self._known.add(pair)
            self._left.setdefault((sort_of(first), sort_of(second)), []).append(pair)


def _comes_after(fault: Fault, recovery: Recovery) -> bool:
    """Whether the moment of a fault comes in a run after the one fault of that has fired."""
    at = fault.points[0]
    return recovery.before.get(at.step, 0) < at.occurrence <= recovery.taken.get(at.step, 0)
