"""A sink as the search of ``lineage/`` sees it: run a fault set, judge it, say why it held."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bettong.harness.faults import Crash, Fault, points
from bettong.harness.sinks.judge import SinkVerdict, fingerprint, judge_run
from bettong.harness.sinks.moments import Moment, batch_of
from bettong.harness.sinks.rows import Input
from bettong.harness.sinks.run import SinkRun, SinkRunner
from bettong.harness.sinks.sink_faults import faults_at, for_search, parse_fault
from bettong.lineage.executor import Execution
from bettong.lineage.faults import CLEAN, Schedule
from bettong.lineage.graph import Lineage
from bettong.lineage.results import Outcome

OTHER_LAYOUT = 1


@dataclass
class SinkExecutor:
    """Runs fault sets on one sink; remembers what they showed.

    Attributes:
        runs: what each fault set showed, by its ids.
        last: the latest run.
        folded: fault sets that leave the same behind as another one, which was run instead.
    """

    runner: SinkRunner
    source: Input
    ordered: bool
    window: int
    real: bool = False
    told: Callable[[Execution], None] = lambda execution: None
    runs: dict[Schedule, tuple[SinkRun, SinkVerdict]] = field(default_factory=dict)
    folded: dict[Schedule, Schedule] = field(default_factory=dict)
    last: SinkRun = field(default_factory=SinkRun)
    _first: dict[str, Schedule] = field(default_factory=dict)
    _leaves: dict[tuple[Schedule, str], str] = field(default_factory=dict)

    @property
    def parallel(self) -> int:
        """One driver at a time."""
        return 1

    def run(self, schedule: Schedule = CLEAN) -> Execution:
        """Run with exactly these faults, replays dealt out in another way."""
        faults = [parse_fault(id) for id in sorted(schedule)]
        run = self.runner.run(faults, replay_layout=OTHER_LAYOUT, real=self.real)
        verdict = judge_run(run, self.source, self.ordered)
        self.runs.setdefault(schedule, (run, verdict))
        self.last = run
        self._learn(schedule, run)
        outcome: Outcome = "good"
        if run.not_fired:
            outcome = "not-injected"
        elif verdict.malformed:
            outcome = "unknown"
        elif verdict.anomalies:
            outcome = "violation"
        execution = Execution(
            schedule,
            outcome,
            self._lineage(faults, run) if outcome == "good" else Lineage(),
            anomalies=verdict.anomalies,
            evidence=run.evidence,
            not_fired=run.not_fired,
            fingerprint=fingerprint(run) if not schedule else "",
            seconds=run.seconds,
            note=verdict.malformed,
        )
        self.told(execution)
        return execution

    def canonical(self, schedule: Schedule) -> Schedule:
        """The fault set to run in the stead of this one, for the same would follow: a crash is
        followed by what was durable when it struck; a failed attempt, by that and its task."""
        for id in sorted(schedule):
            left = self._leaves.get((schedule - {id}, id))
            if left is not None:
                first = self._first.setdefault(left, schedule)
                if first != schedule:
                    self.folded[schedule] = first
                return first
        return schedule

    def _learn(self, schedule: Schedule, run: SinkRun) -> None:
        """What a further fault at each moment of this run would leave behind."""
        for moment in self._within(run.moments):
            for fault in faults_at(moment):
                in_flight = "" if isinstance(fault, Crash) else f" {moment.point.step}"
                self._leaves.setdefault((schedule, fault.id), moment.durable + in_flight)

    def _within(self, moments: Iterable[Moment]) -> Iterable[Moment]:
        return (m for m in moments if m.batch is not None and m.batch < self.window)

    def _lineage(self, faults: list[Fault], run: SinkRun) -> Lineage:
        """Why each batch of the window came to be recorded in this run: at every moment on the
        way the driver lived and no attempt failed, save where this run's own faults struck."""
        lineage = Lineage()
        ids = {fault.id for fault in faults}
        # A second fault strikes in the same batch, while the first one is being recovered from.
        near = {batch_of(points(fault)[0].step) for fault in faults}
        struck = [
            lineage.leaf(f"{fault.id} struck", [for_search(fault, 0)], lost=True)
            for fault in faults
        ]
        way: list[str] = list(struck)
        for time, moment in enumerate(self._within(run.moments)):
            here = not near or near == {moment.batch} == {self.window - 1}
            threats = [t for t in faults_at(moment) if here and t.id not in ids]
            if threats:
                leaf = "neither " + " nor ".join(t.id for t in threats)
                way.append(lineage.leaf(leaf, [for_search(t, time) for t in threats]))
            if moment.point.phase == "after" and moment.point.step.endswith("/commits"):
                goal = lineage.fact(f"batch {moment.batch} is visible and recorded", goal=True)
                lineage.firing(goal, way, "write")
        return lineage
