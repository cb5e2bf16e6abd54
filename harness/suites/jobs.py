"""What one call of ``bettong run`` has to do: scenarios by name and those of suites, each with its
options, checked before anything is started."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import psutil

from bettong.harness.api import load_scenario, run_scenario
from bettong.harness.backends.base import Backend
from bettong.harness.backends.choice import BackendChoice
from bettong.harness.catalog import current_name, entries
from bettong.harness.events import Finished, Handler, ignore
from bettong.harness.scenario import Scenario
from bettong.harness.search.bounds import BOUNDS, SearchBounds, bounds_of
from bettong.harness.search.fault_plan import FaultPlan, parse_plan
from bettong.harness.search.system import shared_of
from bettong.harness.suites.suite import Shard, Suite, SuiteRun, excused, find_suites
from bettong.lineage.errors import BettongError, UsageError
from bettong.lineage.nearest import one_of
from bettong.lineage.own_folder import own_folder
from bettong.lineage.results import Result
from bettong.lineage.search.loop import Budget

OUT = Path("bettong-out")
Label = Callable[[Result], Result]


@dataclass(frozen=True, slots=True)
class Job:
    """One scenario to be run.

    Attributes:
        out: folder for its result.
        suite: the suite that it is of, if it is of one.
    """

    scenario: Scenario
    run: SuiteRun
    plan: FaultPlan | SearchBounds
    out: Path
    suite: Suite | None = None
    where: BackendChoice = field(default_factory=BackendChoice)

    @property
    def layout(self) -> tuple[BackendChoice, int, bool]:
        """What its backend has to be: where, with how many workers, with a broker or without."""
        return self.where, self.run.workers, "kafka" in self.scenario.servers

    @property
    def input_file(self) -> Path | None:
        """The messages' file, in place of the scenario's own."""
        return Path(self.run.input) if self.run.input else None


def plan_jobs(
    names: Sequence[str],
    options: SuiteRun,
    reach: SearchBounds,
    out: Path | None,
    where: BackendChoice = BackendChoice(),  # noqa: B008 - immutable
) -> list[Job]:
    """The jobs that names of scenarios and suites ask for.

    Args:
        options: of the scenarios that are named themselves.
        reach: whether lineage-driven searches find all, and what they are compared with.
        out: folder for the results; by default ``bettong-out``, and in it one for each job.
        where: on which backend.

    Raises UsageError for whatever cannot be meant.
    """
    suites = _suites()
    scenarios = [e.name for e in entries("scenario")]
    asked: list[tuple[SuiteRun, Suite | None]] = []
    for name in map(current_name, names):
        one_of(name, (*scenarios, *suites), "scenario or suite")
        suite = suites.get(name)
        if suite:
            _check_left_to(suite, options, reach)
        asked += (
            [(r, suite) for r in suite.runs] if suite else [(replace(options, name=name), None)]
        )
    single = len(asked) == 1
    return [
        _job(
            run,
            suite,
            reach,
            out if out is not None and single else _folder(out, run, suite, i),
            where,
        )
        for i, (run, suite) in enumerate(asked, 1)
    ]


def carry_out(jobs: Sequence[Job], shard: Shard, on_event: Handler = ignore) -> list[Result]:
    """Run the jobs of a shard; jobs with as many workers, one after the other, share a backend.

    Where there are several, one that cannot be run has a result that says so, and the others are
    run. Raises BettongError for a job that is the only one, and where a backend cannot be started.
    """
    today = datetime.now(UTC).date()
    results = []
    layout = groupby(share(jobs, shard), key=lambda part: part[0].layout)
    for (where, workers, kafka), members in layout:
        group = list(members)
        with ExitStack() as stack:
            backend = stack.enter_context(where.backend(workers, kafka))
            beside = [
                stack.enter_context(backend.another())
                for _ in range(_further(where, workers, [job for job, _ in group]))
            ]
            for job, label in group:
                result_of = partial(_labelled, job, label, today)
                try:
                    result = _carried_out(job, backend, beside, on_event, result_of)
                except BettongError as e:
                    if len(jobs) == 1:
                        raise
                    result = result_of(_failed(job, e))
                    with own_folder(job.out):
                        result.write(job.out)
                    on_event(Finished(result, job.out))
                results.append(result)
    return results


def _carried_out(
    job: Job, backend: Backend, beside: Sequence[Backend], on_event: Handler, label: Label
) -> Result:
    return run_scenario(
        job.scenario,
        job.plan,
        backend=backend,
        beside=beside,
        out=job.out,
        input_file=job.input_file,
        seed=job.run.seed,
        budget=Budget.parse(job.run.budget),
        expected=job.run.expect,
        on_event=on_event,
        label=label,
    )


def _failed(job: Job, error: BettongError) -> Result:
    """The result of a job that could not be run; by ``error`` in its details the exit code is that
    of a mistake."""
    return Result(
        job.scenario.name,
        "unknown",
        reason=f"it could not be run: {error}",
        expected=job.run.expect,
        seed=job.run.seed,
        details={"error": str(error)},
    )


def _labelled(job: Job, label: Mapping[str, Any], today: date, result: Result) -> Result:
    """The result with its place in shard and suite."""
    result = replace(result, details={**result.details, **label})
    return result if job.suite is None else excused(result, job.suite.quarantine, today)


def _further(where: BackendChoice, workers: int, jobs: Sequence[Job]) -> int:
    """How many backends there are beside the first: more than none in the light layout, if there is
    much to run."""
    much = any(isinstance(job.plan, SearchBounds) or job.plan.splits for job in jobs)
    if not much or workers:
        return 0
    return where.at_once(os.cpu_count() or 1, psutil.virtual_memory().available) - 1


def share(jobs: Sequence[Job], shard: Shard) -> list[tuple[Job, Mapping[str, Any]]]:
    """The jobs of a shard, each with the labels by which ``bettong report`` joins its result:
    every shard runs its part of many schedules; what cannot be split is dealt out whole.

    Raises UsageError for one job that cannot be split.
    """
    if shard.of == 1:
        return [(job, {}) for job in jobs]
    if len(jobs) == 1 and not _splits(jobs[0]):
        raise UsageError(
            f"--shard: --faults {jobs[0].run.faults} of {jobs[0].scenario.name} is one piece of "
            "work that cannot be split; each-step, random:N and folders of schedules can"
        )
    found: list[tuple[Job, Mapping[str, Any]]] = []
    for number, job in enumerate(jobs):
        entry = {"number": number + 1, "of": len(jobs)}
        if isinstance(job.plan, FaultPlan) and _splits(job):
            plan = replace(job.plan, share=(shard.index, shard.of))
            label: dict[str, Any] = {"index": shard.index, "of": shard.of, "faults": job.run.faults}
            label["question"] = _question(job)
            found.append((replace(job, plan=plan), {"shard": label, "entry": entry}))
        elif number % shard.of == shard.index - 1:
            found.append((job, {"entry": entry}))
    return found


def _question(job: Job) -> str:
    """The same for all shards of one question, asked of the same code."""
    content = job.scenario.messages(job.input_file)
    return shared_of(job.scenario, f"{replace(job.run, input=None)} {job.plan} {content!r}")


def _splits(job: Job) -> bool:
    return isinstance(job.plan, FaultPlan) and job.plan.splits


def _suites() -> dict[str, Suite]:
    shipped: dict[str, Suite] = {e.name: e.load() for e in entries("suite")}
    return {**shipped, **find_suites(Path.cwd())}


def _check_left_to(suite: Suite, options: SuiteRun, reach: SearchBounds) -> None:
    """Raises UsageError for an option that a suite's own runs would pass over."""
    usual = SuiteRun(options.name)
    given = [f.name for f in fields(options) if getattr(options, f.name) != getattr(usual, f.name)]
    if not any(run.faults == "ldfi" for run in suite.runs):
        given += ["find-all"] * reach.find_all + ["exhaustive"] * bool(reach.exhaustive)
    for name in given:
        raise UsageError(
            f"--{name}: each run of suite {suite.name} has its own options, and this one would do "
            "nothing: write it where the suite is written, or name the scenario itself"
        )


def _folder(out: Path | None, run: SuiteRun, suite: Suite | None, number: int) -> Path:
    base = out or OUT
    return base / run.name if suite is None else base / suite.name / f"{number:02}-{run.name}"


def _job(
    run: SuiteRun, suite: Suite | None, reach: SearchBounds, out: Path, where: BackendChoice
) -> Job:
    scenario = load_scenario(run.name)
    topology = where.backend(run.workers, "kafka" in scenario.servers).topology(scenario)
    Budget.parse(run.budget)
    scenario.messages(Path(run.input) if run.input else None)
    if run.faults != "ldfi":
        given = {name: getattr(run, name) for name in ("bounds", *BOUNDS)}
        given |= {"find-all": reach.find_all or None, "exhaustive": reach.exhaustive or None}
        for name in (n for n, value in given.items() if value is not None and suite is None):
            raise UsageError(
                f"--{name} is for searches by lineage; with --faults {run.faults} it would do "
                "nothing: say --faults ldfi, or leave it out"
            )
        plan = parse_plan(run.faults, run.seed, topology)
        if not all(schedule.faults for schedule in plan.given):
            raise UsageError(
                f"--faults {run.faults}: a schedule in it has no fault, which proves nothing of "
                "faults: write one into it, or say --faults none"
            )
        return Job(scenario, run, plan, out, suite, where)
    given = {name: getattr(run, name) for name in BOUNDS}
    bounds = bounds_of(run.bounds, given)
    asked = replace(bounds, find_all=reach.find_all, exhaustive=reach.exhaustive)
    return Job(scenario, run, asked, out, suite, where)
