"""Which single faults to try early: of each sort one, before a second one of any.

Calls to a disk, and what a power cut leaves, make hundreds of faults, most of them much alike, and
few of the others are crashes and losses, which break the most.
The search takes sets of the smallest size in any order; so between those come faults of one kind
after the other, of each kind those that hit one node or link after the other, and of these one sort
after the other, a sort being a kind of fault at a kind of step of a node; and where it can hit in
several ways, one of each sort in the first way before any in a second one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import TypeVar

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId

Sort = tuple[str, tuple[str, ...], str]
"""A kind of fault, the nodes and links that it names, and the shape of the step it is at."""
_T = TypeVar("_T")


def sort_of(fault: Fault) -> Sort:
    """The sort of a fault: two of one sort do much the same, and seldom to the same message."""
    return fault.kind, (*fault.nodes, *fault.links), StepId.parse(fault.points[0].step).shape


def in_turn(faults: Iterable[Fault]) -> list[str]:
    """The ids of the faults, the kinds in turn, of each what it hits in turn, of that the sorts in
    turn, and the ways of each. Of these the latest come first, for by then the most can be lost,
    and at one step those that were given first, which of power cuts are those that lose the
    most."""
    kinds: dict[str, dict[tuple[str, ...], list[Fault]]] = {}
    for fault in faults:
        kind, hit, _ = sort_of(fault)
        kinds.setdefault(kind, {}).setdefault(hit, []).append(fault)
    in_kinds = (list(_one_each(map(_by_sort, hits.values()))) for hits in kinds.values())
    return list(_one_each(in_kinds))


def _by_sort(faults: Iterable[Fault]) -> list[str]:
    sorts: dict[Sort, dict[str, dict[Point, list[str]]]] = {}
    for fault in faults:
        ways = sorts.setdefault(sort_of(fault), {}).setdefault(fault.variety, {})
        ways.setdefault(fault.points[0], []).append(fault.id)
    in_ways = _one_each(ways.values() for ways in sorts.values())
    return list(_one_each(list(_one_each(reversed(points.values()))) for points in in_ways))


def _one_each(queues: Iterable[Iterable[_T]]) -> Iterator[_T]:
    """The first of each queue, then the second of each that has one, and so on."""
    return (one for row in zip_longest(*queues) for one in row if one is not None)
