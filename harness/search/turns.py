"""Which single faults to try early: those that show the most mistakes for the time they take.

Calls to a disk, and what a power cut leaves, make hundreds of faults, most of them much alike, and
few of the others are crashes and losses, which break the most.
The search takes sets of the smallest size in any order; so between those come faults of one kind
and node or link after the other, each as often as mistakes were seen to show by its kind, and more
seldom the longer a run with it takes; of these one sort after the other, a sort being a kind of
fault at a kind of step of a node; and where it can hit in several ways, one of each sort in the
first way before any in a second one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import TypeVar

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId

Sort = tuple[str, tuple[str, ...], str]
"""A kind of fault, the nodes and links that it names, and the shape of the step it is at."""
_T = TypeVar("_T")

_SHARES = {"crash": 8, "pause": 4, "storage": 3, "power-cut": 3, "stall": 2, "omit-reply": 2}
"""Of the time, by how many mistakes each kind has shown in the mutants that ship and in those of
the bench; of any other kind it is 1."""
_LENGTHS = {"silence": 8, "stall": 6, "pause": 6}
"""How many runs with a crash could be made while one with this goes on: a client waits until it
gives up."""
_DRIVER = ("driver",)
_OF_DRIVER = 2
"""The driver has as large a share as so many other nodes: all that is done again is done by it."""
_PAUSED_DRIVER = 2
"""The length of a run in which a driver stands still: another one takes over at once."""


def sort_of(fault: Fault) -> Sort:
    """The sort of a fault: two of one sort do much the same, and seldom to the same message. The
    end of a stream is none, and what is done with it is another thing."""
    id = StepId.parse(fault.points[0].step)
    ends = " of the end" if id.message is not None and id.message[1] == "end" else ""
    return fault.kind, (*fault.nodes, *fault.links), f"{id.shape}{ends}"


def in_turn(faults: Iterable[Fault]) -> list[str]:
    """The ids of the faults: the kinds in turn, by their shares of the time, of each what it hits
    in turn, the oftener the more there are, of that the sorts in turn, and the ways of each. The
    latest come first, for by then the most can be lost, and at one step those that were given
    first, which of power cuts are those that lose the most."""
    kinds: dict[str, dict[tuple[str, ...], list[Fault]]] = {}
    for fault in faults:
        kind, hit, _ = sort_of(fault)
        kinds.setdefault(kind, {}).setdefault(hit, []).append(fault)
    queues = []
    for kind, hits in kinds.items():
        weights = {hit: _weight(hit, len(some)) for hit, some in hits.items()}
        for hit, some in hits.items():
            share = _SHARES.get(kind, 1) * weights[hit] / sum(weights.values())
            queues.append((_length(kind, hit) / share, some))
    moments = (
        (every * turn, place, id)
        for place, (every, some) in enumerate(queues)
        for turn, id in enumerate(_by_sort(some), 1)
    )
    return [id for _, _, id in sorted(moments)]


def _length(kind: str, hit: tuple[str, ...]) -> float:
    return _PAUSED_DRIVER if (kind, hit) == ("pause", _DRIVER) else _LENGTHS.get(kind, 1)


def _weight(hit: tuple[str, ...], faults: int) -> float:
    """Where more can go wrong more is to be tried; the first of many show more than the last."""
    return (_OF_DRIVER if hit == _DRIVER else 1) * math.sqrt(faults)


def _by_sort(faults: Iterable[Fault]) -> Iterator[str]:
    sorts: dict[Sort, dict[str, dict[Point, list[str]]]] = {}
    for fault in faults:
        ways = sorts.pop(sort_of(fault), {})
        ways.setdefault(fault.variety, {}).setdefault(fault.points[0], []).append(fault.id)
        sorts[sort_of(fault)] = ways  # behind all whose last fault comes earlier
    in_ways = _one_each(ways.values() for ways in reversed(sorts.values()))
    return _one_each(list(_one_each(reversed(points.values()))) for points in in_ways)


def _one_each(queues: Iterable[Iterable[_T]]) -> Iterator[_T]:
    """The first of each queue, then the second of each that has one, and so on."""
    return (one for row in zip_longest(*queues) for one in row if one is not None)
