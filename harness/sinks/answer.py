"""From the runs of a sink to its result: level, counterexamples, coverage."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from bettong.harness.checkers import guarantee_of, satisfies
from bettong.harness.sinks import words
from bettong.harness.sinks.contract import Sink
from bettong.harness.sinks.executor import OTHER_LAYOUT, SinkExecutor
from bettong.harness.sinks.request import Request
from bettong.harness.sinks.rows import Input
from bettong.harness.sinks.search import Found
from bettong.harness.sinks.situations import NEW_CHECKPOINT
from bettong.lineage.executor import Execution
from bettong.lineage.results import Counterexample, Coverage, Guarantee, Result, Run, Verdict

_ANOMALIES_SHOWN = 50
_ANOMALIES_OF_A_RUN = 5


@dataclass
class Answer:
    """Draws the conclusion. The clock begins when it is made."""

    request: Request
    sink: Sink
    source: Input
    _begun: float = field(default_factory=time.monotonic)
    _started_at: str = field(
        default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds")
    )

    def unknown(self, reason: str) -> Result:
        """Nothing can be concluded."""
        return self._result("unknown", reason)

    def conclude(
        self,
        executor: SinkExecutor,
        found: Found,
        besides: Sequence[Execution] = (),
        anew: Execution | None = None,
    ) -> Result:
        """The result of a search and of what was run besides.

        Each way of failing counts only when it shows again with every crash a SIGKILL.
        """
        executions = [*found.executions, *besides]
        violations = [*found.violations(), *(e for e in besides if e.outcome == "violation")]
        ways = [(e, self._counterexample(executor, e)) for e in _ways(violations)]
        shown = [(e, told) for e, told in ways if told is not None]
        kinds = {a.kind for e, _ in shown for a in e.anomalies}
        guarantee = guarantee_of(kinds)
        unsure = sum(e.outcome not in ("good", "violation") for e in executions)
        unsure += len(ways) - len(shown)
        verdict: Verdict = "valid" if satisfies(guarantee, self.request.expect) else "invalid"
        if verdict == "valid" and (unsure or not found.complete):
            verdict = "unknown"
        torn = [a for _, judged in executor.runs.values() for a in judged.torn]
        return self._result(
            verdict,
            self._reason(guarantee, len(violations), unsure, found.complete),
            guarantee=guarantee,
            ordering="per-key" if self.sink.ordered and "Reorder" not in kinds else "none",
            anomalies=shown[0][0].anomalies[:_ANOMALIES_SHOWN] if shown else (),
            counterexamples=tuple(told for _, told in shown),
            coverage=_coverage(found, executions, len(violations)),
            runs=tuple(_line(e) for e in executions),
            details={
                "atomic": "torn" if torn else "no part of a batch was seen",
                "torn": [a.seen for a in torn[:3]],
                "folded": len(executor.folded),
                **self._anew(anew),
            },
        )

    def _result(self, verdict: Verdict, reason: str, **more: Any) -> Result:
        return Result(
            scenario=self.sink.name,
            kind="sink",
            verdict=verdict,
            expected=self.request.expect,
            reason=reason,
            rests_on=self._rests_on(),
            started_at=self._started_at,
            duration_s=round(time.monotonic() - self._begun, 3),
            **more,
        )

    def _anew(self, anew: Execution | None) -> dict[str, object]:
        """What became of the rows when the checkpoint was lost: another question, told apart."""
        if anew is None:
            return {}
        found = anew.anomalies
        told = words.tell([NEW_CHECKPOINT], found, self.source.rows, False) if found else ""
        level = guarantee_of({a.kind for a in found})
        return {"new_checkpoint": {"guarantee": level, "words": told}}

    def _reason(self, guarantee: Guarantee, broken: int, unsure: int, complete: bool) -> str:
        level = f"is {guarantee}" if guarantee != "none" else "gives no guarantee"
        told = f"{self.sink.name} {level}"
        if broken and guarantee != "effectively-once":
            return f"{told}: {broken} minimal fault set(s) lower it"
        if unsure:
            return f"{told} as far as seen; {unsure} fault set(s) could not be judged"
        left = "" if complete else "; the budget ended before all were tried"
        return f"{told} under every fault set within the bounds{left}"

    def _rests_on(self) -> tuple[str, ...]:
        request = self.request
        kept = "the state kept at its exact moment, every counterexample shown again by SIGKILL"
        return (
            f"at most {request.faults} faults together, in the first {request.window} of "
            f"{self.source.batches} batches; a second one is a crash while the first is recovered "
            "from",
            f"a crash is {'SIGKILL' if request.real else kept}",
            "what the sink keeps is in env.workdir or behind its endpoints",
            "replays deal the same rows to other partitions, in another order across keys",
        )

    def _counterexample(
        self, executor: SinkExecutor, execution: Execution
    ) -> Counterexample | None:
        """The violation told, when it shows again with every crash a SIGKILL."""
        faults = [executor.fault(id) for id in sorted(execution.schedule)]
        ids = tuple(fault.id for fault in faults)
        kinds = frozenset(a.kind for a in execution.anomalies)
        layout = bool(faults) and executor.killed(faults, 0).kinds != kinds
        if layout and executor.killed(faults, OTHER_LAYOUT).kinds != kinds:
            return None
        return Counterexample(
            faults=ids,
            anomalies=execution.anomalies[:_ANOMALIES_SHOWN],
            schedule={"faults": list(ids)},
            replay=self.request.replay(ids),
            words=words.tell(faults, execution.anomalies, self.source.rows, layout),
            advice=words.advise(faults, kinds, layout),
            trace=self._keep_trace(executor, execution),
        )

    def _keep_trace(self, executor: SinkExecutor, execution: Execution) -> str | None:
        if self.request.out is None:
            return None
        number = sorted(executor.runs, key=sorted).index(execution.schedule)
        name = f"traces/{number:03d}.jsonl"
        executor.runs[execution.schedule][0].write_trace(self.request.out / name)
        return name


def _ways(violations: Sequence[Execution]) -> list[Execution]:
    """One violation for each way of failing: kinds of anomalies, and kinds of faults."""
    chosen: dict[tuple[frozenset[str], tuple[str, ...]], Execution] = {}
    for e in violations:
        how = tuple(sorted(id.partition("(")[0] for id in e.schedule))
        chosen.setdefault((frozenset(a.kind for a in e.anomalies), how), e)
    return list(chosen.values())


def _coverage(found: Found, executions: Sequence[Execution], violated: int) -> Coverage:
    struck = [e for e in executions if e.schedule]
    first = next((i for i, e in enumerate(executions, 1) if e.outcome == "violation"), None)
    return Coverage(
        goals=len(found.executions[0].lineage.goals),
        supports=sum(e.outcome == "good" for e in executions),
        hypotheses=found.hypotheses,
        injected=sum(e.outcome in ("good", "violation") for e in struck),
        not_injected=sum(e.outcome == "not-injected" for e in executions),
        pruned=found.pruned,
        combinations=len(found.executions[0].lineage.faults),
        executions=len(executions),
        violated=violated,
        to_first=first,
        complete=found.complete,
    )


def _line(execution: Execution) -> Run:
    run = execution.to_run()
    sample = run.anomalies[:_ANOMALIES_OF_A_RUN]
    return replace(run, anomalies=sample, seconds=round(run.seconds, 3))
