"""Many lineages of the same input, each node written once: its runs differ little."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bettong.lineage.faults import Fault
from bettong.lineage.graph import LEAF, Lineage, Node


class Entry(NamedTuple):
    """A lineage by the numbers of its nodes and faults in a table, in ranges."""

    nodes: Sequence[Sequence[int]]
    faults: Sequence[Sequence[int]]
    times: Sequence[int]
    goals: Mapping[str, str | None]


class LineageTable:
    """Nodes and faults of all lineages that were put in, written or read, by number.

    What was written can be read in the same order by a table that begins empty, or go on with it.
    A node that another run has in another form takes a number of its own.
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._number: dict[str, int] = {}
        self._faults: list[tuple[str, str, str, str]] = []
        self._fault_number: dict[tuple[str, str, str, str], int] = {}
        self._others: dict[LineageTable, tuple[dict[int, int], dict[int, int]]] = {}

    def put(self, lineage: Lineage) -> Entry:
        """The lineage as this table has it from now on."""
        if isinstance(lineage, StoredLineage):
            return self._taken_over(lineage)
        faults = lineage.faults.values()
        return Entry(
            _ranges(self._numbered(node) for node in lineage.nodes()),
            _ranges(self._numbered_fault(fault) for fault in faults),
            [fault.time for fault in faults],
            dict(lineage.goals),
        )

    def get(self, entry: Entry) -> Lineage:
        """The lineage of an entry of this table, in all its orders.

        Raises IndexError, TypeError or ValueError when it is none.
        """
        found = Lineage(goals=dict(entry.goals))
        nodes = [self._nodes[number] for number in _listed(entry.nodes)]
        found.graph.add_nodes_from((node.id, node.attributes) for node in nodes)
        for node in nodes:
            found.graph.add_edges_from((premise, node.id) for premise in node.premises)
            if node.head:
                found.graph.add_edge(node.id, node.head)
        if len(found) != len(nodes):
            raise ValueError("an edge of the lineage has no such node")
        faults = [self._faults[number] for number in _listed(entry.faults)]
        for described, time in zip(faults, entry.times, strict=True):
            found.faults[described[0]] = Fault(*described, time)
        return found

    def write(self, lineage: Lineage) -> dict[str, Any]:
        """The lineage as JSON values: its entry, and what is new in the table."""
        nodes, faults = len(self._nodes), len(self._faults)
        entry = self.put(lineage)
        new = {"new": self._nodes[nodes:], "new_faults": self._faults[faults:]}
        return {**entry._asdict(), **new}

    def read(self, value: Mapping[str, Any]) -> StoredLineage:
        """The lineage of :meth:`write`'s value.

        Raises KeyError, IndexError, TypeError or ValueError when it is not one, or not the next.
        """
        lineage = self.read_lazily(value)
        self._check(lineage.entry)
        return lineage

    def read_lazily(self, value: Mapping[str, Any]) -> StoredLineage:
        """The same of a value that is known to be the next one."""
        return StoredLineage(self, self._entry(value))

    def _check(self, entry: Entry) -> None:
        """Raise what :meth:`get` would, which takes many times as long."""
        nodes = [self._nodes[number] for number in _listed(entry.nodes)]
        ids = {node.id for node in nodes}
        named = (name for node in nodes for name in (*node.premises, node.head) if name)
        if len(ids) != len(nodes) or not ids.issuperset(named):
            raise ValueError("an edge of the lineage has no such node")
        faults = [self._faults[number] for number in _listed(entry.faults)]
        if len(faults) != len(entry.times):
            raise ValueError("not each fault of the lineage has its time")

    def _entry(self, value: Mapping[str, Any]) -> Entry:
        for id, attributes, premises, head in value["new"]:
            if attributes["kind"] == LEAF:
                attributes["faults"] = tuple(attributes["faults"])
            self._add(Node(id, attributes, tuple(premises), head))
        for id, kind, group, place in value["new_faults"]:
            self._numbered_fault(Fault(id, kind, group, place))
        return Entry(*(value[name] for name in Entry._fields))

    def _taken_over(self, lineage: StoredLineage) -> Entry:
        """The entry of a lineage of another table, of which each node is looked at once."""
        other, entry = lineage.table, lineage.entry
        nodes, faults = self._others.setdefault(other, ({}, {}))
        numbers, described = _listed(entry.nodes), _listed(entry.faults)
        for number in numbers:
            if number not in nodes:
                nodes[number] = self._numbered(other._nodes[number])
        for number in described:
            if number not in faults:
                faults[number] = self._numbered_fault(Fault(*other._faults[number]))
        return Entry(
            _ranges(nodes[number] for number in numbers),
            _ranges(faults[number] for number in described),
            entry.times,
            entry.goals,
        )

    def _numbered(self, node: Node) -> int:
        number = self._number.get(node.id)
        if number is None or self._nodes[number] != node:
            number = self._add(node)
        return number

    def _add(self, node: Node) -> int:
        self._number[node.id] = len(self._nodes)
        self._nodes.append(node)
        return self._number[node.id]

    def _numbered_fault(self, fault: Fault) -> int:
        described = (fault.id, fault.kind, fault.group, fault.place)
        number = self._fault_number.setdefault(described, len(self._faults))
        if number == len(self._faults):
            self._faults.append(described)
        return number


class StoredLineage(Lineage):
    """A lineage of a table. Its graph and its faults are made when they are asked for."""

    __slots__ = ("entry", "table")

    def __init__(self, table: LineageTable, entry: Entry) -> None:
        self.table, self.entry = table, entry
        self.goals = dict(entry.goals)

    def __getattr__(self, name: str) -> Any:
        if name not in ("graph", "faults"):
            raise AttributeError(name)
        whole = self.table.get(self.entry)
        self.graph, self.faults = whole.graph, whole.faults
        return getattr(self, name)


class FirstSight:
    """Takes out of one lineage after the other what was not in those before, as far as that can be
    told without looking: of a table's lineages each node and each fault once."""

    def __init__(self) -> None:
        self._seen: dict[LineageTable, tuple[set[int], set[int]]] = {}

    def of(self, lineage: Lineage) -> tuple[Iterable[Node], Iterable[Fault]]:
        """Nodes and faults of the next lineage, in its order."""
        if not isinstance(lineage, StoredLineage):
            return lineage.nodes(), lineage.faults.values()
        table, entry = lineage.table, lineage.entry
        nodes, faults = self._seen.setdefault(table, (set(), set()))
        timed = zip(_listed(entry.faults), entry.times, strict=True)
        new = [number for number in _listed(entry.nodes) if number not in nodes]
        new_faults = [(number, time) for number, time in timed if number not in faults]
        nodes.update(new)
        faults.update(number for number, _ in new_faults)
        return (
            [table._nodes[number] for number in new],
            [Fault(*table._faults[number], time) for number, time in new_faults],
        )


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """The same numbers as beginnings and ends of ranges."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1] = (found[-1][0], number + 1)
        else:
            found.append((number, number + 1))
    return found


def _listed(ranges: Sequence[Sequence[int]]) -> list[int]:
    return [number for begin, end in ranges for number in range(begin, end)]
