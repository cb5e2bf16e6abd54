"""A sink as the search of ``lineage/`` sees it: run a fault set, judge it, say why it held."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from bettong.harness.faults import Crash, points
from bettong.harness.sinks.judge import SinkVerdict, fingerprint, judge_run
from bettong.harness.sinks.moments import Moment, batch_of
from bettong.harness.sinks.rows import Input
from bettong.harness.sinks.run import AnyFault, SinkRun, SinkRunner
from bettong.harness.sinks.sink_faults import faults_at, for_search, parse_fault
from bettong.harness.sinks.situations import KNOWN, Situation
from bettong.harness.sinks.wire_faults import WireFault, WirePoint
from bettong.lineage.executor import Execution
from bettong.lineage.faults import CLEAN, Schedule
from bettong.lineage.graph import Lineage
from bettong.lineage.results import Outcome

OTHER_LAYOUT = 1
_SECOND = re.compile(r"/(?:commits|_spark_metadata|p=0/a=\d+/source\.middle)$|/sink\.file=")


@dataclass
class SinkExecutor:
    """Runs fault sets on one sink; remembers what they showed.

    Attributes:
        runs: what each fault set showed, by its ids.
        last: the latest run.
        wire: the requests of the clean run that may be struck.
        folded: fault sets that leave the same behind as another one, which was run instead.
    """

    runner: SinkRunner
    source: Input
    ordered: bool
    window: int
    real: bool = False
    wire: list[WirePoint] = field(default_factory=list)
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
        faults = [self.fault(id) for id in sorted(schedule)]
        run = self.runner.run(faults, replay_layout=OTHER_LAYOUT, real=self.real)
        verdict = self.judge(faults, run)
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
            self.why(schedule, run) if outcome == "good" else Lineage(),
            anomalies=verdict.anomalies,
            evidence=run.evidence,
            not_fired=run.not_fired,
            fingerprint=fingerprint(run) if not schedule else "",
            seconds=run.seconds,
            note=verdict.malformed,
        )
        self.told(execution)
        return execution

    def judge(self, faults: Sequence[AnyFault], run: SinkRun) -> SinkVerdict:
        """Judge a run by the rows that it was given."""
        always = {k: v for f in faults if isinstance(f, Situation) for k, v in f.always.items()}
        return judge_run(run, replace(self.source, **always), self.ordered)

    def killed(self, faults: Sequence[AnyFault], layout: int) -> SinkVerdict:
        """What the faults show when every crash is a SIGKILL."""
        return self.judge(faults, self.runner.run(faults, replay_layout=layout, real=True))

    def fault(self, id: str) -> AnyFault:
        """The fault of an id; raises ScheduleError."""
        if id in KNOWN:
            return KNOWN[id]
        return next((f for p in self.wire for f in p.faults if f.id == id), None) or parse_fault(id)

    def why(self, schedule: Schedule, run: SinkRun) -> Lineage:
        """The lineage of a good run."""
        return self._lineage([self.fault(id) for id in sorted(schedule)], run)

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

    def _lineage(self, faults: list[AnyFault], run: SinkRun) -> Lineage:
        """Why each batch of the window came to be recorded in this run: at every moment on the
        way the driver lived, no attempt failed and every request was answered, save where this
        run's own faults struck."""
        lineage = Lineage()
        struck = [
            lineage.leaf(f"{fault.id} struck", [for_search(fault, 0)], lost=True)
            for fault in faults
        ]
        way: dict[int, list[str]] = {n: list(struck) for n in range(self.window)}

        def unharmed(batch: int, threats: list[AnyFault], time: int) -> None:
            if threats:
                leaf = "neither " + " nor ".join(t.id for t in threats)
                lineage.leaf(leaf, [for_search(t, time) for t in threats])
                for later in range(batch, self.window):
                    way[later].append(leaf)

        recorded = set()
        for time, moment in enumerate(self._within(run.moments)):
            assert moment.batch is not None
            unharmed(moment.batch, self._threats(faults, moment), time)
            if moment.point.phase == "after" and moment.point.step.endswith("/commits"):
                recorded.add(moment.batch)
        for point in self.wire if not faults else ():
            unharmed(point.batch, list(point.faults), len(run.moments))
        for batch in recorded:
            goal = lineage.fact(f"batch {batch} is visible and recorded", goal=True)
            lineage.firing(goal, way[batch], "write")
        return lineage

    def _threats(self, faults: list[AnyFault], moment: Moment) -> list[AnyFault]:
        """What may strike at a moment of a run that has these faults already. A second fault is a
        crash in the last batch of the window, while the first one is being recovered from."""
        possible = list(faults_at(moment))
        if not faults:
            return [*possible]
        first = faults[0]
        if isinstance(first, WireFault) and first.how != "crash":
            return []  # the query has failed of it by itself, and is started again: like a crash
        near = moment.batch == self.window - 1 and self._batch_struck(first) == moment.batch
        telling = moment.point.phase == "before" and _SECOND.search(moment.point.step)
        ids = {fault.id for fault in faults}
        return [
            t for t in possible if near and telling and isinstance(t, Crash) and t.id not in ids
        ]

    def _batch_struck(self, fault: AnyFault) -> int | None:
        if isinstance(fault, Situation):
            return None
        if isinstance(fault, WireFault):
            return next(p.batch for p in self.wire if fault in p.faults)
        return batch_of(points(fault)[0].step)
