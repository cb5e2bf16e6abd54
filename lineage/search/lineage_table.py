"""Many lineages of the same input, each node written once: its runs differ little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bettong.lineage.faults import Fault
from bettong.lineage.graph import FIRING, LEAF, Lineage


class _Node(NamedTuple):
    """A node of some lineage; a firing has premises and a head."""

    id: str
    attributes: dict[str, Any]
    premises: tuple[str, ...] = ()
    head: str = ""


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
        self._nodes: list[_Node] = []
        self._number: dict[str, int] = {}
        self._faults: list[tuple[str, str, str, str]] = []
        self._fault_number: dict[tuple[str, str, str, str], int] = {}

    def put(self, lineage: Lineage) -> Entry:
        """The lineage as this table has it from now on."""
        faults = lineage.faults.values()
        return Entry(
            _ranges(self._numbered(node) for node in _nodes(lineage)),
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

    def read(self, value: Mapping[str, Any]) -> Entry:
        """The entry of :meth:`write`'s value.

        Raises KeyError, IndexError, TypeError or ValueError when it is not one, or not the next.
        """
        for id, attributes, premises, head in value["new"]:
            if attributes["kind"] == LEAF:
                attributes["faults"] = tuple(attributes["faults"])
            self._add(_Node(id, attributes, tuple(premises), head))
        for id, kind, group, place in value["new_faults"]:
            self._numbered_fault(Fault(id, kind, group, place))
        entry = Entry(*(value[name] for name in Entry._fields))
        self.get(entry)
        return entry

    def _numbered(self, node: _Node) -> int:
        number = self._number.get(node.id)
        if number is None or self._nodes[number] != node:
            number = self._add(node)
        return number

    def _add(self, node: _Node) -> int:
        self._number[node.id] = len(self._nodes)
        self._nodes.append(node)
        return self._number[node.id]

    def _numbered_fault(self, fault: Fault) -> int:
        described = (fault.id, fault.kind, fault.group, fault.place)
        number = self._fault_number.setdefault(described, len(self._faults))
        if number == len(self._faults):
            self._faults.append(described)
        return number


def _nodes(lineage: Lineage) -> Iterator[_Node]:
    graph = lineage.graph  # its public views are several times slower
    pred, succ = graph._pred, graph._succ
    for id, attributes in graph._node.items():
        if attributes["kind"] == FIRING:
            (head,) = succ[id]
            yield _Node(id, attributes, tuple(pred[id]), head)
        else:
            yield _Node(id, attributes)


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
