"""Steps as reports read them: each time that one was taken, and which ones a fault names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from bettong.lineage.trace import TraceEvent

FAULT = "fault/"
NODE_START = "node.start/"
_NOT_STEPS = frozenset(
    ["before", "after", "at", "from", "until", "for", "good", "ms", "kB/s", "bytes"]
)


def faulted_steps(fault: str) -> list[tuple[str, int]]:
    """Steps and occurrences that a fault id names: two for
    ``cut(w1|w2, from batch=1/offsets until batch=1/commits#2)``."""
    match = re.fullmatch(r"[a-z-]+\(([^,]+), (.+)\)", fault)
    words = re.split(r"[ ,]+", match[2]) if match else []
    steps = [word.partition("#") for word in words if word not in _NOT_STEPS and "/" in word]
    return [(step, int(number or 1)) for step, _, number in steps]


@dataclass(frozen=True, slots=True)
class StepSpan:
    """One time that a step was taken.

    Attributes:
        occurrence: counted from 1 over the run.
        began, ended: places in the trace; ``ended`` is None when the process died in it.
    """

    step: str
    occurrence: int
    node: str
    incarnation: int
    began: int
    ended: int | None
    failed: bool
    event: TraceEvent


def taken_steps(events: Iterable[TraceEvent]) -> list[StepSpan]:
    """Each time a step was taken, in the order in which they began."""
    found: list[StepSpan] = []
    running: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    times: Counter[str] = Counter()
    for place, event in enumerate(events):
        if event.step.startswith(FAULT):
            continue
        who = (event.step, event.node, event.incarnation)
        if event.phase == "before":
            times[event.step] += 1
            running[who].append(len(found))
            found.append(
                StepSpan(
                    event.step,
                    times[event.step],
                    event.node,
                    event.incarnation,
                    place,
                    None,
                    False,
                    event,
                )
            )
        elif event.step.startswith(NODE_START):
            began = (event.step, 1, event.node, event.incarnation, place, place)
            found.append(StepSpan(*began, failed=False, event=event))
        elif running[who]:
            at = running[who].pop()
            found[at] = replace(found[at], ended=place, failed=event.phase == "failed", event=event)
    return found


def input_of(message: str) -> tuple[str, int] | None:
    """Stream and number of the input that a message comes from: of ``lines/17.2``, lines and 17."""
    match = re.fullmatch(r"(.+)/(\d+)(?:\.[\d.]+)?", message)
    return (match[1], int(match[2])) if match else None


def carried(event: TraceEvent, stream: str, number: int) -> bool:
    """Whether a step carried this message."""
    return any(r.stream == stream and r.start <= number < r.stop for r in event.carries)
