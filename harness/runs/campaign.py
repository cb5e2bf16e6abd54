"""Many runs of one scenario, and the one answer that they give together."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count, pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from bettong.harness.backends.base import Backend
from bettong.harness.checkers import guarantee_of
from bettong.harness.checkers.levels import judge
from bettong.harness.conductor.order import FiringOrder
from bettong.harness.events import (
    CounterexampleFound,
    Handler,
    RunJudged,
    RunStarted,
    ignore,
    steps_of,
)
from bettong.harness.faults.schedule import Schedule
from bettong.harness.processes.session import guard_folder, unguard_folder
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.counterexample import CounterexampleFile
from bettong.harness.runs.course import Limits
from bettong.harness.runs.record import RunRecord
from bettong.harness.runs.run import run_once
from bettong.harness.runs.spared_jvm import confirmed, spared_jvms
from bettong.harness.runs.timeline import timeline
from bettong.harness.scenario import Messages, Scenario
from bettong.lineage.nearest import most_alike
from bettong.lineage.results import (
    Anomaly,
    Counterexample,
    Coverage,
    Guarantee,
    Ordering,
    Result,
    Run,
    Verdict,
    of_each_kind,
)
from bettong.lineage.seals import TRACES, seal, unseal
from bettong.lineage.search.loop import Budget

CRASH_MODEL = "crash model: SIGKILL of every process of a node; what was written stays, the \
node comes back with it unless the fault says otherwise"
_ANOMALIES_SHOWN = 100
_STEPS_NAMED = 5

Plan = Callable[[Sequence[RunRecord]], Iterable[Schedule]]
"""Given the clean runs, the schedules to run after them."""


@dataclass
class Campaign:
    """Runs of one scenario and what they have shown.

    Attributes:
        beside: further backends, so that as many runs more go on at a time.
        out: folder for counterexamples and traces.
        messages: the input.
        expected: the level asked for.
        replay: whether the last batch of each run is forced to be done once more.
        again: whether every node is started again at the end of each run, and what it makes then
            of what it finds is judged too; of runs that have left the same on the disks, of one.
        power_cut: whether what is not durable is lost before that, and what is left judged.
        options: how the runs are set up, to be repeated by a replay.
        code: a digest of the code that runs, by which a replay knows that it has changed.
        spares_jvm: crashes and power cuts of the driver spare its JVM, where the backend can; what
            is not good then is run once more, with the whole node killed.
        resume: keep what earlier runs left in the folder.
        on_event: given what happens, run by run.
    """

    backend: Backend
    scenario: Scenario
    out: Path
    messages: Messages
    expected: Guarantee = "effectively-once"
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    replay: bool = True
    again: bool = False
    power_cut: bool = False
    spares_jvm: bool = True
    resume: bool = False
    limits: Limits = field(default_factory=Limits)
    on_event: Handler = ignore
    beside: Sequence[Backend] = ()

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._traces = self.out / TRACES
        if not self.resume:
            shutil.rmtree(self._traces, ignore_errors=True)
            for old in self.out.glob(f".{TRACES}-*.crc32"):
                old.unlink()
        self._traces.mkdir(parents=True, exist_ok=True)
        kept = [int(t.stem) for t in self._traces.glob("*.jsonl") if t.stem.isdigit()]
        self._numbers = count(max(kept, default=0) + 1)
        self._lock = threading.Lock()
        self._left: set[bytes] = set()
        self._free: SimpleQueue[Backend] = SimpleQueue()
        for backend in (self.backend, *self.beside):
            self._free.put(backend)
        self.runs: list[Run] = []
        self.observed: list[RunRecord] = []
        self.counterexamples: list[Counterexample] = []
        self.planned: int | None = None

    @property
    def parallel(self) -> int:
        """How many runs can go on at a time."""
        return 1 + len(self.beside)

    @property
    def reads_beside(self) -> bool:
        """Whether a process of its own is to read runs while others go on."""
        return self.parallel > 1

    def run(
        self, schedule: Schedule, name: str | None = None, order: FiringOrder | None = None
    ) -> RunRecord:
        """Run one schedule, one of its faults in an order. Its trace is kept when it has a name
        or was not good."""
        with self._lock:
            label = name or str(next(self._numbers))
        trace = self._traces / f"{label}.jsonl"
        unseal(trace)
        backend = self._free.get()
        self.on_event(RunStarted(label, schedule.ids))
        try:
            seen = self._run_on(backend, schedule, label, trace, order, self.spares_jvm)
            if seen.jvms_spared and seen.outcome not in ("good", "not-injected"):
                killed = self._run_on(backend, schedule, label, trace, order, False)
                seen = confirmed(seen, killed)
            seen = _at_level(seen, self.expected)
        finally:
            self._free.put(backend)
        keep = name is not None or seen.outcome != "good"
        if keep:
            seal(trace)
        else:
            trace.unlink()
        with self._lock:
            judged = seen.to_run(f"traces/{trace.name}" if keep else None)
            self.runs.append(judged)
            self.observed.append(seen)
            number, planned = len(self.runs), self.planned
            written = schedule.to_dict()
            self.on_event(RunJudged(label, judged, number, planned, written, seen.outputs))
        return seen

    def _run_on(
        self,
        backend: Backend,
        schedule: Schedule,
        label: str,
        trace: Path,
        order: FiringOrder | None,
        spares_jvm: bool,
    ) -> RunRecord:
        folder = Path(tempfile.mkdtemp(prefix="bettong-run-", dir=backend.runs))
        guard_folder(folder)
        try:
            seen = run_once(
                backend,
                self.scenario,
                schedule,
                folder,
                Asked(
                    replay=self.replay,
                    again=self._left if self.again else None,
                    power_cut=self.power_cut,
                    limits=self.limits,
                    trace=trace,
                    on_step=steps_of(label, self.on_event),
                    order=order,
                    spares_jvm=spares_jvm,
                ),
                self.messages,
            )
            if seen.outcome != "good":
                logs = self.out / "logs" / label
                logs.mkdir(parents=True, exist_ok=True)
                for log in folder.glob("*.log"):
                    shutil.copy(log, logs)
            return seen
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            unguard_folder(folder)

    def run_all(self, schedules: Sequence[Schedule]) -> list[RunRecord]:
        """Run schedules at the same time, each on a backend of its own; in their order."""
        with ThreadPoolExecutor(len(schedules)) as threads:
            return list(threads.map(self.run, schedules))

    def trace_of(self, seen: RunRecord) -> str | None:
        """The file of a run's trace within the folder, if it was kept."""
        with self._lock:
            both = zip(self.runs, self.observed, strict=True)
            return next(run.trace for run, observed in both if observed is seen)

    def forget(self, seen: RunRecord) -> None:
        """Keep nothing of a run's events and outputs, which are many."""
        with self._lock:
            place = next(i for i, s in enumerate(self.observed) if s is seen)
            self.observed[place] = replace(seen, events=(), times=(), outputs=())

    def add_counterexample(self, seen: RunRecord) -> None:
        """Keep a schedule that breaks the scenario, with the file that replays it."""
        number = len(self.counterexamples) + 1
        file = self.out / f"counterexample-{number}.json"
        self.write_counterexample(file, seen.schedule, self.again)
        found = Counterexample(
            faults=tuple(sorted(seen.schedule.ids)),
            anomalies=of_each_kind(seen.anomalies, _ANOMALIES_SHOWN),
            schedule=seen.schedule.to_dict(),
            replay=f"bettong replay {file}",
            advice=self.scenario.advice,
            trace=self.trace_of(seen),
        )
        self.counterexamples.append(found)
        self.on_event(CounterexampleFound(found))

    def write_counterexample(self, file: Path, schedule: Schedule, again: bool) -> None:
        """Write the file that replays a schedule; ``again`` as the attribute was in its run."""
        ending = {"replay": self.replay, "again": again, "power_cut": self.power_cut}
        asked = {"expect": self.expected, "code": self.code}
        options = {**self.options, **ending, **asked}
        CounterexampleFile(self.scenario.name, schedule, options).write(file)

    def shrink(self, seen: RunRecord) -> RunRecord:
        """The same violation with as few of its faults as will do."""
        for fault in seen.schedule.faults:
            fewer = Schedule(tuple(f for f in seen.schedule.faults if f != fault))
            if fewer.faults:
                again = self.run(fewer)
                if again.outcome == "violation":
                    return self.shrink(again)
        return seen

    def result(
        self,
        verdict: Verdict,
        reason: str,
        assumptions: Sequence[str] = (),
        complete: bool = False,
    ) -> Result:
        """The answer, with what it rests on."""
        worst = [s for s in self.observed if s.outcome == "violation"]
        allowed = [s for s in self.observed if s.outcome == "good" and s.anomalies]
        anomalies = tuple(a for s in (worst or allowed)[:1] for a in s.anomalies)
        left = {a.kind for s in (*worst[:1], *allowed) for a in s.anomalies}
        outcomes = Counter(s.outcome for s in self.observed if s.schedule.faults)
        return Result(
            scenario=self.scenario.name,
            verdict=verdict,
            guarantee="none" if verdict == "unknown" else guarantee_of(left),
            ordering=_ordering(verdict, self.observed),
            anomalies=of_each_kind(anomalies, _ANOMALIES_SHOWN),
            counterexamples=tuple(self.counterexamples),
            coverage=Coverage(
                hypotheses=sum(outcomes.values()),
                injected=outcomes["good"] + outcomes["violation"],
                not_injected=outcomes["not-injected"],
                executions=len(self.runs),
                fault_space=self.planned,
                violated=len(worst),
                to_first=next(
                    (i for i, s in enumerate(self.observed, 1) if s.outcome == "violation"), None
                ),
                complete=complete,
            ),
            runs=tuple(self.runs),
            seed=self.seed,
            started_at=self._started,
            duration_s=round(time.monotonic() - self._began, 3),
            expected=self.expected,
            reason=reason,
            assumptions=(
                CRASH_MODEL,
                *spared_jvms([bool(s.jvms_spared) for s in self.observed if s.driver_crashed]),
                *self.backend.limits,
                *assumptions,
            ),
            details=self._details(anomalies),
        )

    def _details(self, anomalies: Sequence[Anomaly]) -> dict[str, object]:
        details: dict[str, object] = {
            "toxiproxy": self.backend.toxiproxy.kind,
            **({"limits": list(self.backend.limits)} if self.backend.limits else {}),
            "seconds_by_phase": _mean([dict(s.timings) for s in self.observed]),
        }
        if timed := [s for s in self.observed if s.times]:
            reported = _most_telling(timed)
            details |= timeline(reported.events, reported.times)
        clean = next((r for r in self.runs if not r.faults and r.trace), None)
        if clean is not None:
            details["good_trace"] = clean.trace
        if len(anomalies) > _ANOMALIES_SHOWN:
            details["anomaly_counts"] = dict(Counter(a.kind for a in anomalies))
        restarts = [r for b in (self.backend, *self.beside) for r in b.proxies.restarts]
        if restarts:
            details["toxiproxy_restarts"] = restarts
        return details


def run_campaign(
    campaign: Campaign,
    plan: Plan,
    *,
    clean_runs: int,
    budget: Budget = Budget(),  # noqa: B008 - immutable
    wanted: int | None = None,
    assumptions: Sequence[str] = (),
) -> Result:
    """Run the scenario without faults, then under each schedule of the plan.

    Args:
        clean_runs: how many runs without faults come first, each of which has to be good; they
            have to give the same outputs and the same steps, or the verdict is unknown.
        wanted: how many schedules have to be injected; further ones of the plan stand in for
            those that could not be, though not for those that were and could not be judged. By
            default all of them have to be.
    """
    budget = budget.begun()
    clean = [campaign.run(Schedule(), f"clean-{i}") for i in range(1, clean_runs + 1)]
    for seen in clean:
        if seen.outcome != "good":
            if seen.outcome == "violation":
                campaign.add_counterexample(seen)
                return campaign.result("invalid", "it is wrong without any fault")
            return campaign.result("unknown", f"the clean run: {seen.note}")
    if any(seen.replay_changed for seen in clean):
        campaign.replay = False  # what it would show, a crash at its place shows
    difference = _difference(clean)
    if difference:
        return campaign.result("unknown", f"two clean runs differ: {difference}")
    schedules = list(plan(clean))
    campaign.planned = len(clean) + (len(schedules) if wanted is None else wanted)
    injected, failed, unjudged = 0, None, None
    for first in range(0, len(schedules), campaign.parallel):
        if wanted is not None and injected >= wanted:
            break
        if budget.spent(len(campaign.runs)):
            left = len(schedules) - first
            reason = f"the budget ended with {left} schedules not run"
            return campaign.result("unknown", reason, assumptions)
        together = campaign.run_all(schedules[first : first + campaign.parallel])
        for seen in together:
            if seen.outcome == "violation":
                campaign.add_counterexample(campaign.shrink(seen))
                kinds = ", ".join(sorted({a.kind for a in seen.anomalies}))
                faults = " and ".join(campaign.counterexamples[-1].faults) or "no fault"
                reason = f"{kinds} under {faults}"
                return campaign.result("invalid", reason, assumptions)
        injected += sum(seen.outcome == "good" and bool(seen.schedule.faults) for seen in together)
        failed = failed or next((seen for seen in together if seen.outcome != "good"), None)
        unjudged = unjudged or next(filter(_is_unjudged, together), None)
    short = wanted is not None and injected < wanted
    if unjudged is not None:
        return campaign.result("unknown", unjudged.note, assumptions)
    if failed is not None and (wanted is None or short):
        what = _why_not_fired(failed) if failed.not_fired else failed.note
        return campaign.result("unknown", what, assumptions)
    reason = "it holds without faults"
    if injected:
        reason = f"it holds under {injected} fault schedule{'s' * (injected > 1)}"
    if allowed := sum(bool(seen.anomalies) for seen in campaign.observed):
        reason += f"; what was wrong in {allowed} of the runs {campaign.expected} allows"
    return campaign.result("valid", reason, assumptions, complete=not short)


def _at_level(seen: RunRecord, expected: Guarantee) -> RunRecord:
    """A run as the level asked for has it: what that allows is no violation."""
    if seen.outcome != "violation":
        return seen
    judged = judge(seen.anomalies, expect=expected, counts=seen.judgement.counts or None)
    if judged.verdict == "invalid":
        return seen
    return replace(seen, outcome="not-injected" if seen.not_fired else "good")


def _why_not_fired(seen: RunRecord) -> str:
    """Which fault did not, and the steps that it may have meant, if the one it names never came."""
    fault = next(f for f in seen.schedule.faults if f.id in seen.not_fired)
    said = f"{fault.id} did not fire"
    missing = next((p.step for p in fault.points if p.step not in seen.step_ids), None)
    if missing is None:
        return said
    near = most_alike(missing, seen.step_ids, _STEPS_NAMED, cutoff=0.0)
    return f"{said}: the run had no step {missing}; the nearest that it had: {', '.join(near)}"


def _is_unjudged(seen: RunRecord) -> bool:
    """Whether nobody can say what came of faults all of which have fired."""
    return seen.outcome == "unknown" and not seen.not_fired


def _difference(clean: Sequence[RunRecord]) -> str:
    """How later clean runs differ from the first one; empty when they do not."""
    for first, other in pairwise(clean):
        steps = sorted(first.step_ids ^ other.step_ids)
        if steps:
            return f"steps taken in one only: {', '.join(steps[:5])}"
        if sorted(first.outputs) != sorted(other.outputs):
            wrong = sorted(set(first.outputs) ^ set(other.outputs))
            return f"outputs: {', '.join(name for name, _ in wrong[:5])}"
    return ""


def _ordering(verdict: Verdict, observed: Sequence[RunRecord]) -> Ordering:
    if verdict == "unknown":
        return "none"
    return "per-key" if all(s.judgement.ordering == "per-key" for s in observed) else "none"


def _most_telling(observed: Sequence[RunRecord]) -> RunRecord:
    """The run to be shown over time: the first that broke, else the one that recovered slowest."""
    broken = (s for s in observed if s.outcome == "violation")
    slowest = max(observed, key=lambda s: (bool(s.schedule.faults), s.seconds))
    return next(broken, slowest)


def _mean(timings: Sequence[dict[str, float]]) -> dict[str, float]:
    names = {name for t in timings for name in t}
    return {
        name: round(sum(t.get(name, 0.0) for t in timings) / len(timings), 3)
        for name in sorted(names)
    }
