"""Faults, and the bounds within which they may be combined.

A fault is known by a stable id. Round-based protocols use ``O(a,b,1)`` and ``C(a,2)``; a real
system uses ids of its own, such as ``crash(driver, before batch=1/sink.commit)``. The search knows
nothing of either: it combines faults by their kind and group only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import combinations

CRASH = "crash"
LOSS = "loss"
DUPLICATE = "duplicate"
DELAY = "delay"
PAUSE = "pause"
STORAGE = "storage"
WRITE = "failed write"
PARTITION = "partition"
MOMENT = "moment"
CLASSIC = frozenset({CRASH, LOSS})

FaultSet = frozenset[str]
"""Ids of the faults that one execution injects; empty for a clean run."""

CLEAN: FaultSet = frozenset()


def kind_of(id: str) -> str:
    """The kind by which a fault's id begins: ``crash`` of ``crash(driver, …)``."""
    return id.partition("(")[0]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that can go wrong, at one place in logical time.

    Attributes:
        id: stable id, the same in every run of the same input.
        kind: what the bounds count it as, e.g. ``crash`` or ``loss``.
        group: faults with the same non-empty group exclude each other. ``C(a,1)`` and ``C(a,2)``
            share one because a node crashes at most once; where incarnations are distinguished, the
            incarnation is part of the group.
        place: the node or the link ``a->b`` that it hits; empty where that is not known.
        time: logical time for ordering among equals: lower is tried earlier.
    """

    id: str
    kind: str
    group: str = ""
    place: str = ""
    time: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many faults may happen together.

    Attributes:
        at_most: for each kind the largest number of its faults in one schedule; a kind that is
            not named is unlimited.
        total: the largest number of faults of all kinds, or None.
        alone: kinds of which a fault is as much as the total: it fires alone.
        followed: kinds of which a fault fires alone, or with a crash at the same place; only where
            there is one crash at most.
    """

    at_most: Mapping[str, int] = field(default_factory=dict)
    total: int | None = None
    alone: AbstractSet[str] = frozenset()
    followed: AbstractSet[str] = frozenset()

    @property
    def most(self) -> int | None:
        """The largest weight of all faults of a schedule, or None."""
        return None if self.total is None else self.total * (2 if self.followed else 1)

    def weight(self, fault: Fault) -> int:
        """What a fault counts towards :attr:`most`. A crash weighs half of others where it may
        follow a fault beside which there is no room for these."""
        if self.most is None:
            return 1
        if fault.kind in self.alone:
            return self.most
        if fault.kind in self.followed:
            return self.most - 1
        return 2 if self.followed and fault.kind != CRASH else 1

    def apart(self, fault: Fault, other: Fault) -> bool:
        """Whether two faults may not happen together because they hit different places."""
        followed = fault.kind in self.followed or other.kind in self.followed
        return followed and bool(fault.place and other.place) and fault.place != other.place

    def allow(self, faults: Iterable[Fault]) -> bool:
        """Whether these faults may happen together."""
        chosen = list(faults)
        if self.most is not None and sum(map(self.weight, chosen)) > self.most:
            return False
        if self.followed and any(self.apart(a, b) for a, b in combinations(chosen, 2)):
            return False
        kinds = Counter(f.kind for f in chosen)
        groups = Counter(f.group for f in chosen if f.group)
        return all(kinds[k] <= n for k, n in self.at_most.items()) and all(
            n == 1 for n in groups.values()
        )

    def words(self) -> str:
        """The bounds in words, e.g. ``at most 1 crash, at most 2 loss``."""
        parts = [f"at most {n} {kind}" for kind, n in sorted(self.at_most.items())]
        if self.total is not None:
            parts.append(f"at most {self.total} faults in all")
        if self.total is not None and self.alone:
            parts.append(f"each {' or '.join(sorted(self.alone))} alone")
        if self.total is not None and self.followed:
            kinds = " or ".join(sorted(self.followed))
            parts.append(f"each {kinds} alone or with a crash of the same node")
        return ", ".join(parts) or "no bound"
