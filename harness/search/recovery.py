"""What a node that starts again goes on from: the records on its disk.

A *record* is a step that has left something on its node's disk. Two histories of a node are alike
when it has the same records in both, each as often. They are told apart by how they differ from
the clean run: what is there that it never wrote, or oftener than it did; and what is missing of
that on which, in it, the moment rests. How far nodes had come that the moment does not wait for is
a matter of the clock, and no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from bettong.harness.faults.point import DRIVER, Point
from bettong.harness.runs.contracts import role_of
from bettong.harness.search.leaves import LeafBuilder
from bettong.harness.search.occurrences import Occurrence, Reading

Records = Counter[str]


def disk_of(node: str) -> str:
    """Whose disk a node works on: what workers write is the driver's to read."""
    return DRIVER if role_of(node) == DRIVER else node


@dataclass(frozen=True, slots=True)
class CleanRecords:
    """What the disks hold in the clean run.

    Attributes:
        all: of each disk in the end.
        before: of each disk, what a step's beginning rests on, by step and disk.
    """

    all: Mapping[str, Records]
    before: Mapping[tuple[str, str], frozenset[str]]

    @classmethod
    def of(cls, reading: Reading) -> CleanRecords:
        """Those of a clean run."""
        found: dict[str, Records] = {}
        past: dict[str, dict[str, set[str]]] = {}
        for o in reading.occurrences:
            own = past[o.name] = {}
            for cause in o.causes:
                _rests_on(own, cause, past)
        for o in reading.occurrences:
            for cause in o.answers:
                _rests_on(past[o.name], cause, past)
            if o.records:
                found.setdefault(disk_of(o.node), Counter())[o.record] += o.records
        steps = {
            (o.step, disk): frozenset(records)
            for o in reading.occurrences
            for disk, records in past[o.name].items()
            if o.number == 1
        }
        return cls(found, steps)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "all": {disk: dict(records) for disk, records in self.all.items()},
            "before": [[*place, sorted(records)] for place, records in self.before.items()],
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> CleanRecords:
        """What :meth:`to_dict` gave."""
        return cls(
            {disk: Counter(records) for disk, records in value["all"].items()},
            {(step, disk): frozenset(records) for step, disk, records in value["before"]},
        )


def _rests_on(own: dict[str, set[str]], cause: Occurrence, past: Mapping[str, object]) -> None:
    known = past.get(cause.name)
    if isinstance(known, dict):
        for disk, records in known.items():
            own.setdefault(disk, set()).update(records)
    if cause.records:
        own.setdefault(disk_of(cause.node), set()).add(cause.record)


@dataclass(slots=True)
class Recoveries:
    """The lineage of what nodes find on their disks, in one run.

    A disk holds at a moment what it holds because everything before went as it did: that is a
    fact of each run, and rests on that no other fault has struck until then. What a node does
    after a restart rests on the fact of the moment at which it went down.
    """

    leaves: LeafBuilder
    clean: CleanRecords | None
    written: dict[str, Records] = field(default_factory=dict)
    _calm: dict[str, str] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)
    _last: dict[str, tuple[str, list[str]]] = field(default_factory=dict)

    def wrote(self, o: Occurrence) -> None:
        """A step has ended well."""
        if o.records:
            self.written.setdefault(disk_of(o.node), Counter())[o.record] += o.records

    def moment(self, o: Occurrence, point: Point) -> None:
        """A node is at a moment at which it may go down."""
        if not self.leaves.within(o.step):
            return
        disk = disk_of(o.node)
        premises = [self._calm_until_now(o.node), *map(self.leaves.owed, self.leaves.struck)]
        fact = f"disk({disk}, {point}) {self._differs(disk, point)}"
        self._last[o.node] = fact, premises
        if self.clean is None or self.leaves.struck:
            self._state(fact, premises)

    def found(self, node: str) -> list[str]:
        """What the next incarnation of a node goes on from."""
        last = self._last.get(node)
        if last is None:
            return []
        self._state(*last)
        return [last[0]]

    def _state(self, fact: str, premises: list[str]) -> None:
        self.leaves.lineage.fact(fact, label=fact)
        self.leaves.lineage.firing(fact, premises, "holds")

    def _differs(self, disk: str, point: Point) -> str:
        """How the disk differs from the clean run's; ``as ever`` where it does not."""
        if self.clean is None:
            return "as ever"
        records = self.written.get(disk, Counter())
        more = records - self.clean.all.get(disk, Counter())
        needed = self.clean.before.get((point.step, disk), frozenset())
        missing = needed - records.keys() if point.occurrence == 1 else frozenset()
        told = [f"+{n} {step}" for step, n in sorted(more.items())]
        told += [f"-{step}" for step in sorted(missing)]
        return _digest(*told) if told else "as ever"

    def _calm_until_now(self, node: str) -> str:
        """The fact that nothing but what has struck went wrong so far, besides this node's own
        death."""
        made = self.leaves.made[self._seen.get(node, 0) :]
        self._seen[node] = len(self.leaves.made)
        struck = {fault.id for fault in self.leaves.struck}
        before = self._calm.get(node)
        premises = [before] if before else []
        lineage = self.leaves.lineage
        for leaf, lives in made:
            faults = lineage.attributes(leaf)["faults"]
            if faults and lives != node and struck.isdisjoint(faults):
                premises.append(leaf)
        fact = f"calm for {node} {_digest(*sorted(struck), *premises)}"
        lineage.fact(fact, label=f"nothing else had struck, for {node}")
        lineage.firing(fact, premises or [lineage.leaf("begun")], "so far")
        self._calm[node] = fact
        return fact


def _digest(*told: str) -> str:
    return blake2b("\0".join(told).encode(), digest_size=6).hexdigest()
