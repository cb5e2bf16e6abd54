"""Space-time diagrams: which part of a trace to show around a fault, and where each step goes.

A diagram has a column for each node and a row for each step that is shown, in the order in which
steps began. It is drawn by :mod:`bettong.reports.svg`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from bettong.lineage.trace import TraceEvent
from bettong.reports.steps import FAULT, StepSpan, carried, faulted_steps, input_of, taken_steps

Look = Literal["plain", "fault", "witness", "only"]
Ending = Literal["done", "failed", "never"]

MAX_ROWS = 56
BEFORE_FAULT = 8
AFTER_FAULT = 16
COLUMNS = {name: i for i, name in enumerate(("sender", "gateway", "driver", "", "receiver"))}


@dataclass(frozen=True, slots=True)
class Mark:
    """A step in the diagram; rows count from 0 and ``end_row`` is where it ends."""

    node: str
    row: int
    end_row: int
    label: str
    look: Look
    ending: Ending
    incarnation: int


@dataclass(frozen=True, slots=True)
class Arrow:
    """A message between two nodes; ``lost`` when the sender's step failed for want of it."""

    source: str
    target: str
    row: int
    end_row: int
    lost: bool
    reply: bool
    look: Look


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at a place of the diagram: the end of the step that it is at or comes after."""

    node: str
    row: int
    label: str


@dataclass(frozen=True, slots=True)
class Diagram:
    """What is drawn. ``gaps`` maps a row to the number of steps left out before it."""

    nodes: tuple[str, ...]
    rows: int
    marks: tuple[Mark, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    faults: tuple[Fault, ...] = ()
    gaps: dict[int, int] = field(default_factory=dict)


def around(
    events: Sequence[TraceEvent],
    faults: Collection[str] = (),
    messages: Collection[str] = (),
    other: Sequence[TraceEvent] = (),
    *,
    injected: bool = True,
) -> Diagram:
    """The part of a trace near the faults, or near the messages when no fault is in it.

    Args:
        events: the trace, in the order recorded.
        faults: fault ids as in a counterexample; their steps are found by name.
        messages: ids of the anomalies' witnesses.
        other: the trace to compare with; steps that it lacks are marked.
        injected: whether the faults are in this trace; else their places in it are shown.
    """
    taken = taken_steps(events)
    places = {place: fault for fault in faults for place in faulted_steps(fault)}
    hit = _recorded_faults(events, taken) or {
        i: places[t.step, t.occurrence]
        for i, t in enumerate(taken)
        if faults and (t.step, t.occurrence) in places
    }
    steps = {step for step, _ in places}
    wanted = [input_of(m) for m in list(messages)[:20]]
    witness = {i for i, t in enumerate(taken) if any(carried(t.event, *m) for m in wanted if m)}
    same_step = {i for i, t in enumerate(taken) if t.step in steps}
    caused = {i for i, t in enumerate(taken) if not steps.isdisjoint(t.event.causes)}
    missing = {t.step for t in taken_steps(other)} if other else None
    shown = _choose(len(taken), sorted(hit or same_step or witness), [same_step | caused, witness])
    row_of = {i: row for row, i in enumerate(shown)}
    began = [taken[i].began for i in shown]

    def look(i: int) -> Look:
        if i in hit and injected:
            return "fault"
        if missing is not None and taken[i].step not in missing:
            return "only"
        return "witness" if i in witness else "plain"

    marks = tuple(_mark(taken[i], row, began, look(i)) for i, row in row_of.items())
    return Diagram(
        nodes=_nodes(taken, shown),
        rows=len(shown),
        marks=marks,
        arrows=tuple(_arrows(taken, row_of, marks)),
        faults=tuple(
            Fault(taken[i].node, marks[row_of[i]].end_row, f)
            for i, f in hit.items()
            if i in row_of and injected
        ),
        gaps=_gaps(shown),
    )


def _mark(step: StepSpan, row: int, began: Sequence[int], look: Look) -> Mark:
    """How a step is drawn, from its row down to the last one that began before it ended."""
    end = row if step.ended is None else max(row, sum(1 for b in began if b < step.ended) - 1)
    number = f" #{step.occurrence}" if step.occurrence > 1 else ""
    ending: Ending = "never" if step.ended is None else "failed" if step.failed else "done"
    return Mark(step.node, row, end, step.step + number, look, ending, step.incarnation)


def _gaps(shown: Sequence[int]) -> dict[int, int]:
    """How many steps are left out before each row before which some are."""
    left_out = (i - before - 1 for before, i in pairwise((-1, *shown)))
    return {row: number for row, number in enumerate(left_out) if number}


def _recorded_faults(events: Sequence[TraceEvent], taken: Sequence[StepSpan]) -> dict[int, str]:
    """Faults that the trace itself tells of: at the last step of that node begun before them."""
    found: dict[int, str] = {}
    for place, event in enumerate(events):
        if event.step.startswith(FAULT) and event.step[len(FAULT) :] not in found.values():
            earlier = [i for i, t in enumerate(taken) if t.began < place]
            own = [i for i in earlier[-200:] if taken[i].node == event.node]
            at = own[-1:] or earlier[-1:]
            found |= {i: event.step[len(FAULT) :] for i in at}
    return found


def _choose(size: int, centres: Sequence[int], also: Sequence[Collection[int]]) -> list[int]:
    """At most MAX_ROWS places: those around the first centres, then the others that matter."""
    centres = centres[:3] or ([0] if size else [])
    chosen: set[int] = set()
    share = MAX_ROWS // max(1, len(centres))
    before = min(BEFORE_FAULT, share // 3)
    after = min(AFTER_FAULT, share - before)
    for centre in centres:
        chosen |= set(range(max(0, centre - before), min(size, centre + after)))
    for places in also:
        for place in sorted(places, key=lambda i: min(abs(i - c) for c in centres)):
            if len(chosen) >= MAX_ROWS:
                break
            chosen.add(place)
    return sorted(chosen)


def _nodes(taken: Sequence[StepSpan], shown: Sequence[int]) -> tuple[str, ...]:
    order = dict.fromkeys(t.node for t in taken)
    present = {taken[i].node for i in shown}
    for i in shown:
        link = taken[i].event.link
        if link and "->" in link:
            present |= set(link.split("->", 1))
    names = [n for n in [*order, *sorted(present - order.keys())] if n in present]
    return tuple(sorted(names, key=lambda n: COLUMNS.get(n, len(COLUMNS) - 2)))


def _arrows(
    taken: Sequence[StepSpan], row_of: dict[int, int], marks: Sequence[Mark]
) -> Iterator[Arrow]:
    """Requests, from the step of the sender to the first step that it caused, and replies."""
    effects: dict[str, list[int]] = defaultdict(list)
    for i in row_of:
        for cause in taken[i].event.causes:
            effects[cause].append(i)
    for i, row in row_of.items():
        t = taken[i]
        if not t.event.link or "->" not in t.event.link:
            continue
        source, target = t.event.link.split("->", 1)
        end = len(taken) if t.ended is None else t.ended
        arrived = [
            j for j in effects[t.step] if taken[j].node == target and t.began < taken[j].began < end
        ]
        broken = t.failed or t.ended is None
        look = marks[row].look
        if not arrived:
            yield Arrow(source, target, row, row, lost=broken, reply=False, look=look)
            continue
        served = row_of[arrived[0]]
        yield Arrow(source, target, row, served, lost=False, reply=False, look=look)
        back = max(marks[row].end_row, marks[served].end_row)
        yield Arrow(target, source, marks[served].end_row, back, lost=broken, reply=True, look=look)
