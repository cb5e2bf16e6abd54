"""A query as the search of ``lineage/`` sees it: run a fault set, judge it, say why it held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from bettong.harness.events import Handler, RunJudged, ignore, search_progress
from bettong.harness.queries.faults.kinds import AnyFault, parse_fault
from bettong.harness.queries.faults.operations import OperationalEvent
from bettong.harness.queries.judge import SinkVerdict, cause, fingerprint, judge_run
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.run.runner import QueryRunner
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.sink.rows import Input
from bettong.lineage.faults import CLEAN, FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.results import Outcome
from bettong.lineage.search.events import Executed, SearchEvent
from bettong.lineage.search.executor import Execution

OTHER_LAYOUT = 1


Judge = Callable[[Sequence[AnyFault], QueryRun], SinkVerdict]


@dataclass
class QueryExecutor:
    """Runs fault sets on one query.

    Attributes:
        why: reads lineage out of runs.
        judge: judges a run by what it was given, under these faults.
        fingerprint: equal for clean runs that are alike.
        clean: executions of clean runs that were made before the search asks for them.
        last: the latest run.
        traces: where the traces of runs that are not good are kept, if anywhere.
        runs: how many were judged.
    """

    runner: QueryRunner
    why: Why
    judge: Judge
    fingerprint: Callable[[QueryRun], str] = fingerprint
    real: bool = False
    handler: Handler = ignore
    clean: list[Execution] = field(default_factory=list)
    last: QueryRun = field(default_factory=QueryRun)
    traces: Path | None = None
    runs: int = 0

    @property
    def parallel(self) -> int:
        """One driver at a time."""
        return 1

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        """Run with exactly these faults, replays dealt out in another way; once more when one of
        them did not strike, so that a hitch of the machine does not leave it untried."""
        if not schedule and self.clean:
            return self.clean.pop(0)
        faults = [self.fault(id) for id in sorted(schedule)]
        run, again = self._replayed(faults), ""
        if run.not_fired:
            again = f"at the first try {' and '.join(run.not_fired)} did not strike"
            run = self._replayed(faults)
        verdict = self.judge(faults, run)
        self.last = run
        outcome: Outcome = "good"
        note = verdict.malformed or again
        if run.not_fired:
            outcome, note = "not-injected", cause(run.errors[-1]) if run.errors else ""
        elif verdict.malformed:
            outcome = "unknown"
        elif verdict.anomalies:
            outcome = "violation"
        good = outcome == "good"
        execution = Execution(
            schedule,
            outcome,
            self.why.lineage(faults, run) if good and schedule else Lineage(),
            anomalies=verdict.anomalies,
            evidence=run.evidence,
            not_fired=run.not_fired,
            fingerprint=self.fingerprint(run) if not schedule else "",
            seconds=round(run.seconds, 3),
            trace=None if good else self._keep_trace(schedule, run),
            note=note,
            details=self._details(run, verdict),
        )
        self.runs += 1
        self.handler(RunJudged(run.id, execution.to_run(), self.runs))
        return execution

    def _replayed(self, faults: Sequence[AnyFault]) -> QueryRun:
        return self.runner.run(faults, replay_layout=OTHER_LAYOUT, real=self.real)

    def _details(self, run: QueryRun, verdict: SinkVerdict) -> dict[str, Any]:
        """What a later look at this run needs, also when it comes from the search's log."""
        return {
            "torn": [a.seen for a in verdict.torn],
            "failed": bool(run.errors),
            "folding": self.why.folding.news(),
        }

    def on_event(self, event: SearchEvent) -> None:
        """Take in what the search has run, and pass on how far it has come."""
        if isinstance(event, Executed):
            self.learn(event.execution)
        search_progress(self.handler)(event)

    def learn(self, execution: Execution) -> None:
        """Take in an execution, a fresh one or one from the log."""
        self.why.folding.learn(execution.details.get("folding", {}))

    def killed(self, faults: Sequence[AnyFault], layout: int) -> SinkVerdict:
        """What the faults show when every crash is a SIGKILL."""
        return self.judge(faults, self.runner.run(faults, replay_layout=layout, real=True))

    def fault(self, id: str) -> AnyFault:
        """The fault of an id; raises ScheduleError."""
        on_wire = (fault for point in self.why.wire for fault, _ in point.faults)
        return next((fault for fault in on_wire if fault.id == id), None) or parse_fault(id)

    def prepared(self, clean: Execution, run: QueryRun) -> Execution:
        """A clean execution with its lineage, for the search."""
        ready = replace(clean, lineage=self.why.lineage([], run))
        return replace(ready, details={**clean.details, "folding": self.why.folding.news()})

    def _keep_trace(self, schedule: FaultSet, run: QueryRun) -> str | None:
        if self.traces is None:
            return None
        digest = blake2b("\n".join(sorted(schedule)).encode(), digest_size=4).hexdigest()
        name = f"traces/{digest}.jsonl"  # the same when a search goes on that was interrupted
        run.write_trace(self.traces / name)
        return name


class SinkExecutor(QueryExecutor):
    """Runs fault sets on one sink, judged by the rows that it was given."""

    def __init__(
        self,
        runner: QueryRunner,
        source: Input,
        ordered: bool,
        why: Why,
        real: bool = False,
        handler: Handler = ignore,
        traces: Path | None = None,
    ) -> None:
        def judge(faults: Sequence[AnyFault], run: QueryRun) -> SinkVerdict:
            given, refusable = source, False
            for fault in faults:
                if isinstance(fault, OperationalEvent):
                    given, refusable = fault.expected(source), fault.refusable
            return judge_run(run, given, ordered, refusable)

        super().__init__(runner, why, judge, real=real, handler=handler, traces=traces)
