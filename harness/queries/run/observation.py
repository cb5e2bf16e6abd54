"""What one run of a sink showed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.run.checkpoints import most_at_a_start
from bettong.harness.queries.sink.file_steps import CHANGED
from bettong.harness.queries.sink.ran_lines import RanLine
from bettong.harness.wire import Recording
from bettong.lineage.trace import TraceEvent, write_trace


@dataclass
class QueryRun:
    """What one run showed.

    Attributes:
        rows: what a reader saw at the end.
        looks: what a reader saw after each crash, before the query was started again.
        events: the trace.
        crash_points: its events as places for faults.
        evidence, not_fired: of the planned faults.
        errors: why incarnations of the query failed, other than by a crash.
        unreadable: why read() failed in the end, or empty.
        drained: whether every batch was committed in the end.
        checkpoint_used: whether the query kept its checkpoint where it was told.
        unused: endpoints to which no byte went.
        left: endpoints whose clients were sent past the proxy.
        past: endpoints that a run without faults was seen to be connected to past the proxy.
        recording: what crossed the wires.
        starts: the wires' logical time at the start of each incarnation.
        id: the run's own name.
        facts: what each incarnation that ended reports of its query.
        outside: files that the sink's Python code wrote elsewhere than in its workdir.
        processes: that the query's code has started, in batches and tasks.
        in_turn: whether a batch has given something to threads that went on one after the other.
        ran: lines of the user's code that began, in batches and tasks.
        cut: how its input was cut into batches, one part a batch.
        concurrent: what was done beside the thread of a batch, at the same time or later on.
        anew: the incarnation that was given an empty checkpoint; 0 for none.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    looks: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)
    events: list[TraceEvent] = field(default_factory=list)
    crash_points: list[CrashPoint] = field(default_factory=list)
    evidence: Mapping[str, str] = field(default_factory=dict)
    not_fired: tuple[str, ...] = ()
    errors: list[str] = field(default_factory=list)
    unreadable: str = ""
    drained: bool = False
    checkpoint_used: bool = False
    unused: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    past: set[str] = field(default_factory=set)
    recording: Recording = field(default_factory=lambda: Recording(()))
    starts: list[int] = field(default_factory=list)
    id: str = ""
    facts: list[dict[str, Any]] = field(default_factory=list)
    outside: set[str] = field(default_factory=set)
    processes: set[str] = field(default_factory=set)
    in_turn: bool = False
    ran: set[RanLine] = field(default_factory=set)
    cut: tuple[str, ...] = ()
    concurrent: set[str] = field(default_factory=set)
    anew: int = 0
    seconds: float = 0.0

    @property
    def steps(self) -> list[str]:
        """The steps that it took, sorted, without those that come when it is their time: of queries
        that report their progress, and of what works beside a batch, with what changes
        meanwhile."""
        return sorted(f"{e.phase} {e.step}" for e in self.events if not self._by_chance(e))

    @property
    def queries(self) -> int:
        """How many streaming queries one incarnation has started, at once, by what it reports, or
        one after the other, each with a checkpoint."""
        at_once = (int(each.get("queries", 1)) for each in self.facts)
        return max(most_at_a_start(self.events), *at_once, 1)

    @property
    def planned_again(self) -> int | None:
        """A batch that was recorded as done and that was planned once more by a later incarnation,
        or by the same one, as where it finds no checkpoint or throws it away itself when its query
        has failed; None for none. A driver that stood still may plan late what another has done."""
        done: dict[int, int] = {}
        for event in self.events:
            step = StepId.parse(event.step)
            if step.batch is None or event.phase != "after":
                continue
            if step.ends_batch:
                done.setdefault(step.batch, event.incarnation)
                continue
            plans = step.shape == "batch=N/offsets" and event.incarnation != self.anew
            if plans and step.batch in done and event.incarnation >= done[step.batch]:
                return step.batch
        return None

    def _by_chance(self, event: TraceEvent) -> bool:
        step = StepId.parse(event.step)
        change = step.file is not None and step.file[1] == CHANGED
        reports = event.step.startswith("query.")
        return reports or step.is_concurrent or (change and bool(self.concurrent))

    def write_trace(self, path: Path) -> None:
        """Write the trace as JSON lines."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_trace(path, self.events)
