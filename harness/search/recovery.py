"""What a node that starts again goes on from: the records on its disk.

A *record* is what a step has done to a file on its node's disk, or that a server has answered it:
that it may remember for as long as it lives. Two histories of a node are alike when it has the same
records in both, each as often. They are distinguished by how they differ from the clean run: what
is there that it never wrote, or oftener than it did; and what is missing of that on which, in it,
the moment rests. Where all that a disk holds is known, and how much of that is durable, two that
hold the same at a moment are alike, however often it was written. How far nodes had come that the
moment does not wait for is a matter of the clock, and no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from bettong.harness.faults.point import DRIVER, Point
from bettong.harness.runs.contracts import role_of
from bettong.harness.search.leaves import LeafBuilder
from bettong.harness.search.occurrences import Occurrence, Reading
from bettong.harness.search.set_digest import SetDigest
from bettong.lineage.faults import Fault

Records = Counter[str]
"""Each by the step that has left it, and what that did to which file."""


def disk_of(node: str) -> str:
    """Whose disk a node works on: what workers write is the driver's to read."""
    return DRIVER if role_of(node) == DRIVER else node


def records_of(o: Occurrence) -> Records:
    """What an occurrence has left."""
    return Counter({f"{o.record} {' '.join(what)}": n for what, n in o.records.items()})


@dataclass(frozen=True, slots=True)
class CleanRecords:
    """What the disks hold in the clean run.

    Attributes:
        all: of each disk in the end.
        until: of each occurrence that has left something, by its name, what its step has left by
            its end, in all its occurrences so far.
        before: of each disk, on the records of which occurrences a step's beginning rests, by step
            and disk.
        after: the same of its end, which is more where it has waited for others, as a task for what
            is done within it.
        held: digests of what a server's disk holds, by the moment.
    """

    all: Mapping[str, Records]
    until: Mapping[str, Records]
    before: Mapping[tuple[str, str], frozenset[str]]
    after: Mapping[tuple[str, str], frozenset[str]]
    held: Mapping[str, str]

    @classmethod
    def of(cls, reading: Reading, held: Mapping[int, str]) -> CleanRecords:
        """Those of a clean run. ``held``: digests of what the disks of servers hold, by the place
        of its trace."""
        found: dict[str, Records] = {}
        steps: dict[str, Records] = {}
        until: dict[str, Records] = {}
        past: dict[str, dict[str, set[str]]] = {}
        for o in reading.occurrences:
            left = records_of(o)
            disk = found.setdefault(disk_of(o.node), Counter())  # what writes nothing may do so yet
            if left:
                disk.update(left)
                steps[o.step] = until[o.name] = steps.get(o.step, Counter()) + left
        for o in reading.occurrences:
            own = past[o.name] = {}
            _add_records(own, o.causes, past, until)
        before = _of_first_ones(reading, past)
        for o in reading.occurrences:
            _add_records(past[o.name], o.answers, past, until)
        after = _of_first_ones(reading, past)
        return cls(found, until, before, after, dict(_by_moment(reading, held)))

    def needed(self, point: Point, disk: str) -> frozenset[str]:
        """The occurrences on whose records, in the clean run, a moment rests."""
        at = self.before if point.phase == "before" else self.after
        return at.get((point.step, disk), frozenset())

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "all": {disk: dict(records) for disk, records in self.all.items()},
            "until": {name: dict(records) for name, records in self.until.items()},
            "before": _listed(self.before),
            "after": _listed(self.after),
            "held": dict(self.held),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> CleanRecords:
        """What :meth:`to_dict` gave."""
        return cls(
            {disk: Counter(records) for disk, records in value["all"].items()},
            {name: Counter(records) for name, records in value["until"].items()},
            _unlisted(value["before"]),
            _unlisted(value["after"]),
            value["held"],
        )


def _of_first_ones(
    reading: Reading, past: Mapping[str, Mapping[str, set[str]]]
) -> dict[tuple[str, str], frozenset[str]]:
    return {
        (o.step, disk): frozenset(names)
        for o in reading.occurrences
        for disk, names in past[o.name].items()
        if o.number == 1
    }


def _by_moment(reading: Reading, held: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    for o in reading.occurrences:
        for position, phase in o.edges:
            if position in held:
                yield str(Point(o.step, phase, o.number)), held[position]


def _listed(moments: Mapping[tuple[str, str], frozenset[str]]) -> list[list[Any]]:
    return [[*place, sorted(names)] for place, names in moments.items()]


def _unlisted(value: list[list[Any]]) -> dict[tuple[str, str], frozenset[str]]:
    return {(step, disk): frozenset(names) for step, disk, names in value}


def _add_records(
    own: dict[str, set[str]],
    causes: Iterable[Occurrence],
    past: Mapping[str, Mapping[str, set[str]]],
    until: Mapping[str, Records],
) -> None:
    for cause in causes:
        for disk, names in past.get(cause.name, {}).items():
            own.setdefault(disk, set()).update(names)
        if cause.name in until:
            own.setdefault(disk_of(cause.node), set()).add(cause.name)


@dataclass(slots=True)
class Recoveries:
    """The lineage of what nodes have on their disks, in one run.

    A node lives on with what its disk holds, and what it does after a restart rests on that. The
    disk holds it because everything before went as it did: because no fault has hit that
    leaves other records behind. Which faults do, their own runs show; until a fault has been run,
    it is taken for one of them.
    """

    leaves: LeafBuilder
    clean: CleanRecords
    held: Mapping[int, str]
    """Digests of what the disks of servers hold, by the place of the trace."""
    written: dict[str, Records] = field(default_factory=dict)
    _more: dict[str, Records] = field(default_factory=dict)
    _there: dict[str, set[str]] = field(default_factory=dict)
    _calm: dict[str, str] = field(default_factory=dict)
    _matter: dict[str, SetDigest] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)
    _last: dict[str, str] = field(default_factory=dict)
    _changed: set[str] = field(default_factory=set)

    def wrote(self, o: Occurrence) -> None:
        """A step has ended, if only by an error: what it had written by then stays."""
        disk = disk_of(o.node)
        written = self.written.setdefault(disk, Counter())
        known = self.clean.all.get(disk, Counter())
        for record, often in records_of(o).items():
            written[record] += often
            if written[record] > known[record]:
                self._more.setdefault(disk, Counter())[record] = written[record] - known[record]

    def moment(self, o: Occurrence, point: Point) -> list[str]:
        """What a node has on its disk at a moment of its life: the fact on which it lives on."""
        disk = disk_of(o.node)
        if disk not in self.clean.all:
            return []
        held = self.held.get(o.begun if point.phase == "before" else o.ended or 0)
        same = held is not None and held == self.clean.held.get(str(point))
        differs = "" if same else self._differs(disk, point)
        if differs:
            self._changed.add(disk)
        fact = f"disk({disk}, {point}) {differs or 'as ever'}"
        calm = self._calm_until_now(o.node)
        self.leaves.lineage.fact(fact, label=f"the disk of the {disk}, {point}")
        owed = map(self.leaves.owed, self.leaves.injected)
        self.leaves.lineage.firing(fact, [calm, *owed], "holds")
        self._last[o.node] = fact
        return [fact]

    def found(self, node: str) -> list[str]:
        """What the next incarnation of a node goes on from."""
        return [self._last[node]] if node in self._last else []

    def end(self) -> None:
        """The run is over: where its only fault has left all records of a disk as they were, it
        does not matter to that disk."""
        if len(self.leaves.injected) != 1:
            return
        (fault,) = self.leaves.injected
        owed = self.leaves.owed(fault)
        for disk in sorted(self.clean.all.keys() - self._changed):
            leaf = self._does_not_matter(self.leaves.lineage.faults[fault.id], disk)
            self.leaves.lineage.firing(leaf, [owed], "shown")

    def _differs(self, disk: str, point: Point) -> str:
        """How the disk differs from the clean run's; empty where it does not."""
        found = [f"+{n} {record}" for record, n in sorted(self._more.get(disk, {}).items())]
        if point.occurrence == 1:
            found += self._missing(disk, self.clean.needed(point, disk))
        return _digest(*found) if found else ""

    def _missing(self, disk: str, needed: AbstractSet[str]) -> list[str]:
        """What is not there of the records of these occurrences."""
        written, there = self.written.get(disk, Counter()), self._there.setdefault(disk, set())
        found: list[str] = []
        for name in sorted(needed - there):
            lacking = self.clean.until[name] - written
            found += [f"-{n} {record}" for record, n in sorted(lacking.items())]
            if not lacking:
                there.add(name)
        return found

    def _calm_until_now(self, node: str) -> str:
        """The fact that nothing has fired so far that matters to a node's disk, besides what has
        in this run; its own death does not, for that is what it is to recover from. Its id is a
        digest of all that has not, in whatever order it could have: so runs merge again."""
        made = self.leaves.made[self._seen.get(node, 0) :]
        self._seen[node] = len(self.leaves.made)
        lineage = self.leaves.lineage
        injected = {fault.id for fault in self.leaves.injected}
        before, matter = self._calm.get(node), self._matter.setdefault(node, SetDigest())
        fresh = matter.take_in(
            id for faults, lives in made if lives != node for id in faults if id not in injected
        )
        if before is not None and not fresh:
            return before
        disk = disk_of(node)
        premises = [before] if before else []
        premises += [self._does_not_matter(lineage.faults[id], disk) for id in fresh]
        calm = f"calm for {node} {matter}"
        lineage.fact(calm, label=f"nothing that matters to the {node} has fired")
        lineage.firing(calm, premises or [lineage.leaf("begun")], "so far")
        self._calm[node] = calm
        return calm

    def _does_not_matter(self, fault: Fault, disk: str) -> str:
        """That a fault has not fired, or that it was shown to matter nothing to a disk."""
        return self.leaves.lineage.leaf(f"{fault.id} does not matter to the {disk}", [fault])


def _digest(*found: str) -> str:
    return blake2b("\0".join(found).encode(), digest_size=6).hexdigest()
