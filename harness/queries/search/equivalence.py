"""Fault sets that leave the same behind, of which only one is run.

What follows a fault is decided by what was durable when it fired, by what the servers had been
sent by then, and by what was under way. Fault sets of which all this is equal, read from recorded
runs, are *folded* into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.lineage.faults import FaultSet


@dataclass(frozen=True, slots=True)
class CandidateFault:
    """A fault that could fire in a run that went well.

    Attributes:
        fault: it.
        left: equal for candidates that leave the same behind.
        batch: in which it fires.
        time: in the order of the run.
    """

    fault: QueryFault
    left: str
    batch: int
    time: int


@dataclass
class FaultEquivalence:
    """What the runs so far have shown of which fault sets are equal.

    Attributes:
        chosen: what is left behind -> the fault set that is run for it.
        folded: fault sets that are not run -> the one that is.
    """

    chosen: dict[str, FaultSet] = field(default_factory=dict)
    folded: dict[FaultSet, FaultSet] = field(default_factory=dict)
    _reported: tuple[int, int] = field(default=(0, 0), compare=False)

    def of(self, schedule: FaultSet, candidates: Sequence[CandidateFault]) -> list[CandidateFault]:
        """Those candidates of a run of ``schedule`` that stand for all of them."""
        for candidate in sorted(candidates, key=_understood):
            self.chosen.setdefault(candidate.left, schedule | {candidate.fault.id})
        kept = []
        for candidate in candidates:
            extended = schedule | {candidate.fault.id}
            if self.chosen[candidate.left] == extended:
                kept.append(candidate)
            elif len(extended) > len(schedule):
                self.folded[extended] = self.chosen[candidate.left]
        return kept

    def news(self) -> dict[str, Any]:
        """What has become known since this was asked last, for the log of a search."""
        chosen, folded = self._reported
        self._reported = len(self.chosen), len(self.folded)
        return {
            "chosen": [
                [left, sorted(run)] for left, run in islice(self.chosen.items(), chosen, None)
            ],
            "folded": [
                [sorted(equal), sorted(run)]
                for equal, run in islice(self.folded.items(), folded, None)
            ],
        }

    def learn(self, value: Mapping[str, Iterable[Any]]) -> None:
        """Take in what an earlier search knew."""
        for left, run in value.get("chosen", ()):
            self.chosen.setdefault(left, frozenset(run))
        for equal, run in value.get("folded", ()):
            self.folded.setdefault(frozenset(equal), frozenset(run))
        self._reported = len(self.chosen), len(self.folded)


def _understood(candidate: CandidateFault) -> tuple[int, int]:
    """Of equal faults the one at a step of Spark's own log is understood best."""
    at = candidate.fault.recovers_from
    of_log = at is not None and at.step.endswith(("/commits", "/offsets"))
    return (0 if of_log else 1, candidate.time)
