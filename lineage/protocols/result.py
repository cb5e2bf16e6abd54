"""The result of testing a round-based program: what reports show of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bettong.lineage.faults import CLEAN, FaultSet
from bettong.lineage.graph import FIRING, LEAF
from bettong.lineage.protocols.executor import RoundExecutor, unasked
from bettong.lineage.protocols.explorer import Exploration, explore
from bettong.lineage.protocols.random_search import Sample
from bettong.lineage.protocols.repair import advice, words
from bettong.lineage.queries import cone, frontier, holding
from bettong.lineage.results import Counterexample, Coverage, Result
from bettong.lineage.search.executor import Execution
from bettong.lineage.search.findings import Findings, break_the_goal

ALSO_PLAYED = 2_000
"""So many schedules, those with the fewest losses, are played beside those of a search, for goals
that the clean run does not reach: without a lineage there, the search never asks for them."""
PICTURES = 20
NODES = 60


@dataclass(slots=True)
class ProtocolReport:
    """Makes results for one program and failure specification.

    Attributes:
        executor: the program under its specification.
        command: the command line that asks the same again, without a schedule.
    """

    executor: RoundExecutor
    command: Sequence[str]

    def of_search(self, findings: Findings, seed: int = 0) -> Result:
        """The result of a lineage-driven search."""
        minimal = findings.minimal
        if findings.verdict == "valid":
            schedules = [e.schedule for e in findings.executions]
            if also := explore(self.executor, runs=ALSO_PLAYED).unasked:
                schedules.append(also[1])
            if open_question := self._open_question(schedules) or self._no_fault():
                findings.conclude("unknown", open_question)
        share = findings.solver_seconds / findings.seconds if findings.seconds else 0.0
        return findings.result(
            scenario=self.executor.program.name,
            kind="protocol",
            counterexample=self.counterexample,
            assumptions=self._assumptions(findings.complete, searched=True),
            details={
                **self._details(minimal, findings.baseline),
                "solver_share": round(share, 3),
            },
            seed=seed,
        )

    def of_exploration(self, found: Exploration, began: datetime) -> Result:
        """The result of an exhaustive exploration."""
        baseline = self.executor.run(CLEAN)
        executions = [self.executor.run(s) for s in found.minimal]
        space = self.executor.spec.size()
        if found.minimal:
            verdict, reason = "invalid", break_the_goal(found.minimal)
        elif baseline.outcome != "good":
            verdict = "unknown"
            why = baseline.note or "its precondition does not hold"
            reason = f"the clean run is {baseline.outcome}: {why}"
        elif found.unasked is not None:
            verdict, reason = "unknown", self._open_question([found.unasked[1]])
        elif nothing := self._no_fault():
            verdict, reason = "unknown", nothing
        elif found.complete:
            verdict, reason = "valid", f"each of the {space} schedules was run"
        else:
            verdict = "unknown"
            reason = f"the budget ended after {found.executions} of {space} schedules"
        return Result(
            scenario=self.executor.program.name,
            kind="protocol",
            verdict=verdict,  # type: ignore[arg-type]
            reason=reason,
            counterexamples=tuple(self.counterexample(baseline, e) for e in executions),
            coverage=Coverage(
                goals=len(baseline.lineage.goals),
                supports=found.outcomes["good"],
                injected=max(0, found.executions - 1),
                vacuous=found.outcomes["vacuous"],
                combinations=space,
                executions=found.executions,
                fault_space=space,
                violated=found.outcomes["violation"],
                to_first=found.first,
                complete=found.complete,
            ),
            runs=(baseline.to_run(), *(e.to_run() for e in executions)),
            started_at=began.isoformat(timespec="seconds"),
            duration_s=round(found.seconds, 3),
            assumptions=self._assumptions(found.complete),
            details=self._details(found.minimal, baseline),
        )

    def of_sample(self, found: Sample, seed: int, began: datetime, seconds: float) -> Result:
        """The result of random schedules."""
        baseline = self.executor.run(CLEAN)
        minimal = [found.minimal] if found.minimal is not None else []
        outcomes = [e.outcome for e in found.executions]
        if minimal:
            verdict, reason = "invalid", f"{', '.join(sorted(minimal[0]))} breaks the goal"
        else:
            verdict = "unknown"
            reason = f"none of {len(outcomes) - 1} random schedules breaks the goal"
        return Result(
            scenario=self.executor.program.name,
            kind="protocol",
            verdict=verdict,  # type: ignore[arg-type]
            reason=reason,
            counterexamples=tuple(
                self.counterexample(baseline, self.executor.run(s)) for s in minimal
            ),
            coverage=Coverage(
                goals=len(baseline.lineage.goals),
                supports=outcomes.count("good"),
                injected=len(outcomes) - 1,
                vacuous=outcomes.count("vacuous"),
                combinations=self.executor.spec.size(),
                executions=len(outcomes),
                fault_space=self.executor.spec.size(),
                violated=outcomes.count("violation"),
                to_first=found.to_first,
            ),
            runs=tuple(e.to_run() for e in found.executions),
            seed=seed,
            started_at=began.isoformat(timespec="seconds"),
            duration_s=round(seconds, 3),
            assumptions=self._assumptions(False),
            details=self._details(minimal, baseline),
        )

    def of_schedule(self, execution: Execution, began: datetime) -> Result:
        """The result of one schedule, run again."""
        baseline = self.executor.run(CLEAN)
        broken = execution.outcome == "violation"
        return Result(
            scenario=self.executor.program.name,
            kind="protocol",
            verdict="invalid" if broken else "unknown",
            reason=f"under {', '.join(sorted(execution.schedule)) or 'no fault'} the run is "
            f"{execution.outcome}" + (execution.note and f": {execution.note}"),
            counterexamples=(self.counterexample(baseline, execution),) if broken else (),
            coverage=Coverage(
                goals=len(baseline.lineage.goals),
                injected=1,
                executions=2,
                violated=int(broken),
                vacuous=int(execution.outcome == "vacuous"),
                fault_space=self.executor.spec.size(),
                to_first=2 if broken else None,
            ),
            runs=(baseline.to_run(), execution.to_run()),
            started_at=began.isoformat(timespec="seconds"),
            duration_s=round(execution.seconds, 3),
            assumptions=self._assumptions(False),
            details=self._details([execution.schedule], baseline),
        )

    def _open_question(self, schedules: Iterable[FaultSet]) -> str:
        """Why runs in which no goal is broken prove less than they seem to; empty if they do not.

        A goal is broken when a fault takes it away, so that one which the clean run does not reach
        is never asked for. Where its precondition holds, somebody has meant to ask.
        """
        for schedule in schedules:
            open_goals = unasked(self.executor.baseline, self.executor.judged(schedule))
            if not open_goals:
                continue
            goal, others = min(open_goals), len(open_goals) - 1
            also = f" (and {others} more)" if others else ""
            reason = (
                f"under {', '.join(sorted(schedule)) or 'no fault'} pre({goal}) holds and "
                f"post({goal}) does not{also}: no violation, for the clean run does not reach "
                "it either, but no guarantee; "
            )
            if not schedule:
                return reason + "give it more rounds (--eot), or correct the program or its goals"
            return reason + "leave out of a goal what differs from run to run"
        return ""

    def _no_fault(self) -> str:
        """Why a search or exploration that had no fault to try says nothing; empty if it had."""
        if self.executor.spec.faults:
            return ""
        return (
            "no fault is within the bounds, and none was tried: give --eff 2 or more, or --crashes"
        )

    def _assumptions(self, complete: bool, searched: bool = False) -> tuple[str, ...]:
        spec = self.executor.spec
        model = "the program is deterministic, and rounds are synchronous"
        if not complete:
            return spec.words(), model, "not complete"
        if searched and spec.size() > ALSO_PLAYED:
            looked = f"goals that the clean run does not reach: {ALSO_PLAYED} schedules looked at"
            return spec.words(), model, looked
        return spec.words(), model

    def counterexample(self, baseline: Execution, found: Execution) -> Counterexample:
        """One violation, told and ready to be shown again."""
        goal = self._broken(baseline, found)
        lost = frontier(baseline.lineage, goal, found.schedule) if goal else []
        faults = tuple(sorted(found.schedule))
        spec = self.executor.spec
        return Counterexample(
            faults=faults,
            anomalies=found.anomalies,
            schedule={
                "protocol": self.executor.program.name,
                "eot": spec.eot,
                "eff": spec.eff,
                "crashes": spec.crashes,
                "crash_model": spec.crash_model,
                "faults": list(faults),
            },
            replay=shlex.join([*self.command, "--schedule", " ".join(faults)]),
            words=words(spec, found),
            advice=advice(spec, baseline, found),
            frontier=tuple(lost),
        )

    def _broken(self, baseline: Execution, found: Execution) -> str | None:
        for anomaly in found.anomalies:
            if f"goal({anomaly.key})" in baseline.lineage.graph:
                return f"goal({anomaly.key})"
        return None

    def _details(self, minimal: Sequence[FaultSet], baseline: Execution) -> dict[str, Any]:
        pictures = [
            self._picture(baseline, self.executor.run(s)) if n < PICTURES else None
            for n, s in enumerate(minimal)
        ]
        good = self._picture(baseline, baseline)
        return {"pictures": {"good": good, "counterexamples": pictures}}

    def _picture(self, baseline: Execution, found: Execution) -> dict[str, Any]:
        spec = self.executor.spec
        picture: dict[str, Any] = {
            "nodes": list(spec.nodes),
            "rounds": spec.eot,
            "messages": found.details["messages"],
            "crashes": [
                {"node": node, "round": time}
                for node, time in sorted(spec.crash_times(found.schedule).items())
            ],
        }
        goal = self._broken(baseline, found) or next(iter(baseline.lineage.goals), None)
        if goal is not None:
            picture["lineage"] = self._drawn(baseline, goal, found.schedule)
        return picture

    def _drawn(self, baseline: Execution, goal: str, schedule: FaultSet) -> dict[str, Any]:
        """The good run's lineage of a goal near the goal, absences left out."""
        held = holding(baseline.lineage, schedule)
        graph = cone(baseline.lineage, goal)
        chosen = [goal, *_breadth_first(graph, goal, held)][:NODES]
        part = graph.subgraph(chosen)
        return {
            "nodes": [
                {
                    "id": id,
                    "kind": part.nodes[id]["kind"],
                    "label": part.nodes[id]["label"],
                    "cut": id not in held,
                }
                for id in chosen
            ],
            "edges": [list(edge) for edge in part.edges()],
        }


def _breadth_first(graph: Any, goal: str, held: set[str]) -> list[str]:
    """Nodes near the goal first, what is cut before what is not; each firing with its premises."""
    found: dict[str, None] = {}
    queue = [goal]
    for id in queue:
        causes = [c for c in graph.pred[id] if not graph.nodes[c].get("absent")]
        for cause in sorted(causes, key=lambda c: (c in held, graph.nodes[c]["kind"] != LEAF, c)):
            if cause not in found:
                found[cause] = None
                queue.append(cause)
                if graph.nodes[cause]["kind"] == FIRING and len(found) > NODES:
                    return list(found)
    return list(found)
