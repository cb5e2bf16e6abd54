"""The book of one run: its events in the order of arrival, and which steps are open."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bettong.harness.conductor.fault_status import Planned
from bettong.harness.faults.step_ids import FAULT, NODE_START
from bettong.lineage.trace import TraceEvent


@dataclass(slots=True)
class OpenStep:
    """A step between its first and its last event.

    Attributes:
        ended_before: how many steps its process had ended when it began this one.
        held: the faults that are in force as long as it lasts.
    """

    event: TraceEvent
    occurrence: int
    ended_before: int = 0
    held: list[Planned] = field(default_factory=list)


class EventLog:
    """What has happened so far. Not safe for several threads: its owner takes care of that.

    Attributes:
        events: the trace, in the order of arrival.
        times: when each of them came, in seconds of a monotonic clock.
        counts: how often each step has been begun.
        repeats: how many steps were taken since one was taken for the first time.
        most_taken: how often that step was begun which was begun the most.
        latest: when anything happened last.
        spoken: of each node the latest incarnation that has taken a step.
    """

    def __init__(self, trace: Path | None = None) -> None:
        self.events: list[TraceEvent] = []
        self.times: list[float] = []
        self.counts: Counter[str] = Counter()
        self.repeats = self.most_taken = 0
        self.spoken: dict[str, int] = {}
        self.latest = time.monotonic()
        self._open_steps: dict[int, list[OpenStep]] = {}
        self._ended = Counter[int]()
        self._gone: set[int] = set()
        self._trace = trace.open("w", encoding="utf-8") if trace else None

    def record(self, event: TraceEvent) -> None:
        """Write an event down."""
        self.events.append(event)
        self.latest = time.monotonic()
        self.times.append(self.latest)
        if self._trace is not None:
            self._trace.write(event.to_json() + "\n")

    def flush(self) -> None:
        """Have the trace's file hold all that was recorded."""
        if self._trace is not None:
            self._trace.flush()

    def close(self) -> None:
        """Close the trace's file."""
        if self._trace is not None:
            self._trace.close()
            self._trace = None

    def enter(self, connection_id: int, event: TraceEvent) -> OpenStep:
        """Somebody begins a step."""
        self.counts[event.step] += 1
        self.spoken[event.node] = max(event.incarnation, self.spoken.get(event.node, 0))
        taken = OpenStep(event, self.counts[event.step], self._ended[connection_id])
        self._open_steps.setdefault(connection_id, []).append(taken)
        self.most_taken = max(self.most_taken, taken.occurrence)
        self.repeats = 0 if taken.occurrence == 1 else self.repeats + 1
        return taken

    def leave(self, connection_id: int, event: TraceEvent) -> OpenStep:
        """Somebody ends a step."""
        self._ended[connection_id] += 1
        stack = self._open_steps.get(connection_id, [])
        for i in range(len(stack) - 1, -1, -1):
            if stack[i].event.step == event.step:
                return stack.pop(i)
        return OpenStep(event, self.counts[event.step] or 1)

    def gone(self, connection_id: int) -> list[OpenStep]:
        """Somebody takes no more steps; those that it had begun."""
        self._gone.add(connection_id)
        return self._open_steps.pop(connection_id, [])

    def is_open(self, connection_id: int, taken: OpenStep) -> bool:
        """Whether a step has not ended, and its process is not gone."""
        return any(taken is own for own in self._open_steps.get(connection_id, ()))

    def are_over(self, connection_id: int, taken: OpenStep, steps: int) -> bool:
        """Whether a step has ended, and so many with it of those that its process has taken since;
        or the process is gone."""
        if steps == 1 or connection_id in self._gone:
            return not self.is_open(connection_id, taken)
        return self._ended[connection_id] >= taken.ended_before + steps

    def forget_dead(self, is_dead: Callable[[str, int], bool]) -> None:
        """No step of a dead incarnation of a node is open, although a process of it that was spared
        keeps its connections. What steps hold in force ends with the connection."""
        for stack in self._open_steps.values():
            stack[:] = [
                taken
                for taken in stack
                if taken.held or not is_dead(taken.event.node, taken.event.incarnation)
            ]

    def others_on(self, link_pair: frozenset[str], connection_id: int) -> bool:
        """Whether anybody else is within a step on a link between two nodes."""
        return any(
            taken.event.link is not None and link_pair_of(taken.event.link) == link_pair
            for other, stack in self._open_steps.items()
            if other != connection_id
            for taken in stack
        )

    def incarnation(self, node: str) -> int:
        """The incarnation of a node that was started last, 0 when none was."""
        started = (e.incarnation for e in reversed(self.events) if e.step == f"{NODE_START}{node}")
        return next(started, 0)

    def waiting(self) -> dict[str, list[str]]:
        """The steps of each node that have begun and not ended, with whom they ask."""
        found: dict[str, list[str]] = {}
        for stack in self._open_steps.values():
            for taken in stack:
                e = taken.event
                asked = f" of the {e.link.partition('->')[2]}" if e.link else ""
                place = f"{e.step}#{taken.occurrence}" if taken.occurrence > 1 else e.step
                found.setdefault(e.node, []).append(f"{place}{asked}")
        return {node: sorted(steps) for node, steps in found.items()}

    def at_work(self) -> frozenset[str]:
        """The nodes that are within steps and ask nobody in any of them."""
        open_steps = [taken.event for stack in self._open_steps.values() for taken in stack]
        asking = {e.node for e in open_steps if e.link is not None}
        return frozenset(e.node for e in open_steps if e.node not in asking)

    def last_steps(self) -> dict[str, str]:
        """What each node has reported last."""
        own = (e for e in self.events if not e.step.startswith((FAULT, NODE_START)))
        return {e.node: f"{e.phase} {e.step}" for e in own}

    def progress_summary(self) -> str:
        """Where the run stands: the steps that are open, and the last one reported."""
        open_steps = sorted({t.event.step for stack in self._open_steps.values() for t in stack})
        last = self.events[-1] if self.events else None
        begun = ", ".join(open_steps[:8]) or "no step is open"
        return f"open: {begun}; last: {last.phase} {last.step}" if last else "no step was taken"


def link_pair_of(link: str) -> frozenset[str]:
    """Both directions of a link: they share the connections."""
    return frozenset(link.split("->"))
