"""What a search found out, and the result that is made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bettong.lineage.faults import FaultSet
from bettong.lineage.results import Counterexample, Coverage, Guarantee, Result, Verdict
from bettong.lineage.search.executor import Execution


def break_the_goal(minimal: Sequence[FaultSet]) -> str:
    """That these do, the first of them by name."""
    said = f"{', '.join(sorted(minimal[0]))} breaks the goal"
    match len(minimal) - 1:
        case 0:
            return said
        case 1:
            return f"{said}, and so does 1 other minimal set"
        case others:
            return f"{said}, and so do {others} other minimal sets"


@dataclass(slots=True)
class Findings:
    """The end of a search.

    Attributes:
        baseline: the clean run.
        executions: all runs, in order; lineages are those of the clean run and of violations.
        minimal: violating schedules of which no proper subset violates, smallest first.
        verdict: the answer; ``reason`` says why in one sentence.
        complete: nothing within the bounds is left to be tried.
        spent: something is, for the budget ended.
        coverage: what it rests on, in numbers.
        solver_seconds: time that the SAT solver took, out of ``hypotheses_seconds`` for drawing
            up hypotheses, out of ``seconds``.
    """

    baseline: Execution
    executions: list[Execution]
    minimal: list[FaultSet] = field(default_factory=list)
    verdict: Verdict = "unknown"
    reason: str = ""
    complete: bool = False
    spent: bool = False
    coverage: Coverage = field(default_factory=Coverage)
    solver_seconds: float = 0.0
    hypotheses_seconds: float = 0.0
    seconds: float = 0.0
    started_at: str = ""

    def conclude(self, verdict: Verdict, reason: str) -> None:
        """Set the answer."""
        self.verdict = verdict
        self.reason = reason

    def execution(self, schedule: FaultSet) -> Execution:
        """The run of a schedule that was run; of several that which breaks the goal, if one does:
        it may come and go."""
        runs = [e for e in self.executions if e.schedule == schedule]
        return next((e for e in runs if e.outcome == "violation"), runs[0])

    def result(
        self,
        *,
        scenario: str,
        kind: Literal["scenario", "sink", "protocol"],
        counterexample: Callable[[Execution, Execution], Counterexample] | None = None,
        guarantee: Guarantee = "none",
        assumptions: tuple[str, ...] = (),
        details: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> Result:
        """The result in the form that reports read.

        ``counterexample`` says, given the clean run and a violating one, what happened; without
        it only ids and anomalies are given. ``others`` go to :class:`Result`.
        """
        make = counterexample or _plain
        return Result(
            scenario=scenario,
            kind=kind,
            verdict=self.verdict,
            guarantee=guarantee,
            counterexamples=tuple(make(self.baseline, self.execution(s)) for s in self.minimal),
            coverage=self.coverage,
            runs=tuple(e.to_run() for e in self.executions),
            started_at=self.started_at,
            duration_s=round(self.seconds, 3),
            reason=self.reason,
            assumptions=assumptions,
            details=dict(details or {}),
            **others,
        )


def _plain(_: Execution, found: Execution) -> Counterexample:
    return Counterexample(tuple(sorted(found.schedule)), found.anomalies, trace=found.trace)
