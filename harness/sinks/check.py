"""``check_sink``: which guarantee does this sink really give?"""

from __future__ import annotations

import contextlib
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from bettong.harness.checkers import guarantee_of, satisfies
from bettong.harness.conductor import Conductor
from bettong.harness.faults import Point
from bettong.harness.sinks import words
from bettong.harness.sinks.contract import Sink
from bettong.harness.sinks.executor import OTHER_LAYOUT, SinkExecutor
from bettong.harness.sinks.job import Target
from bettong.harness.sinks.judge import SinkVerdict, cause, fingerprint
from bettong.harness.sinks.rows import Input
from bettong.harness.sinks.run import Arena, SinkRun, SinkRunner
from bettong.harness.sinks.search import Found, search
from bettong.harness.sinks.secrets import masked
from bettong.harness.sinks.sink_faults import zombie
from bettong.harness.sinks.situations import NEW_CHECKPOINT, SITUATIONS
from bettong.harness.sinks.target import load_target
from bettong.harness.sinks.wire_faults import wire_points
from bettong.harness.sinks.wires import Wires
from bettong.harness.spark.pool import DriverPool
from bettong.harness.spark.session import SessionConfig
from bettong.lineage.errors import BettongError, UsageError
from bettong.lineage.executor import Execution
from bettong.lineage.faults import Bounds
from bettong.lineage.results import (
    Anomaly,
    Counterexample,
    Coverage,
    Guarantee,
    Result,
    Run,
    Verdict,
)

MASTER = "local[1,4]"
"""One task at a time, so that runs are the same; a failed task is tried again, as on a cluster."""

_SETTINGS = {
    # Spark (4.1 to 4.3) leaves a temporary file when it dies while it writes offsets/0, and then
    # refuses to start again because of that file. It is no fault of the sink.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.python.daemon.module": "bettong.harness.sinks.daemon",
}

_ANOMALIES_SHOWN = 50


class VacuousError(BettongError):
    """The clean run proves nothing. Exit code 3."""


@dataclass(frozen=True)
class Request:
    """What is asked about a sink.

    Attributes:
        target: ``file.py:Object``, ``module:Object`` or ``format:NAME``.
        options: for ``format:NAME``.
        endpoints: overriding or adding to the sink's own.
        expect: the level asked for.
        faults: how many faults may strike together.
        window: faults strike in the first so many batches.
        seconds: budget of the search.
        only: ids of faults: run this one set and nothing else.
        real: every crash is SIGKILL.
        also: further questions: ``new-checkpoint``.
        out: where traces are kept, if anywhere.
    """

    target: str
    options: Mapping[str, str] = field(default_factory=dict)
    endpoints: Mapping[str, str] = field(default_factory=dict)
    expect: Guarantee = "effectively-once"
    faults: int = 2
    window: int = 2
    seconds: float = 120.0
    only: tuple[str, ...] = ()
    real: bool = False
    also: tuple[str, ...] = ()
    out: Path | None = None


Progress = Callable[[str], None]
ArenaFor = Callable[[Mapping[str, str]], Arena]


def check_sink(
    target: str,
    *,
    expect: Guarantee = "effectively-once",
    progress: Progress = lambda line: None,
    **more: object,
) -> Result:
    """Judge one sink; the arguments are those of :class:`Request`.

    Raises UsageError for a target that cannot be used.
    """
    request = Request(target, expect=expect, **more)  # type: ignore[arg-type]
    with arenas(progress) as arena_for:
        return check_one(request, arena_for, progress)


def check_one(request: Request, arena_for: ArenaFor, progress: Progress) -> Result:
    """Judge one sink with drivers that several checks share."""
    check = Check(request, arena_for, progress)
    try:
        return check.result()
    except VacuousError as e:
        return check.unknown(masked(str(e)))


@contextlib.contextmanager
def arenas(progress: Progress) -> Iterator[ArenaFor]:
    """Warm drivers for any number of checks; those with the same settings share them."""
    with contextlib.ExitStack() as stack:
        conductor = stack.enter_context(Conductor())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bettong-sinks-")))
        known: dict[tuple[tuple[str, str], ...], Arena] = {}

        def arena_for(settings: Mapping[str, str]) -> Arena:
            key = tuple(sorted(settings.items()))
            if key not in known:
                progress("starting Spark")
                config = SessionConfig(MASTER, {**_SETTINGS, **settings})
                home = folder / str(len(known))
                home.mkdir()
                pool = stack.enter_context(DriverPool(1, config))
                known[key] = Arena(pool, conductor, home)
            return known[key]

        yield arena_for


class Check:
    """One sink being judged."""

    def __init__(self, request: Request, arena_for: ArenaFor, progress: Progress) -> None:
        self._request = request
        self._progress = progress
        self._begun = time.monotonic()
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._sink: Sink = load_target(request.target, request.options)
        self._source = Input()
        self._arena_for = arena_for
        self._extra: list[Execution] = []
        self._anew: Execution | None = None

    def result(self) -> Result:
        """The verdict. Raises VacuousError, UsageError, SinkError."""
        with contextlib.ExitStack() as stack:
            endpoints = {**self._sink.endpoints, **self._request.endpoints}
            for name, server in self._sink.servers.items():
                if name not in endpoints:
                    self._progress(f"starting {name}")
                    endpoints[name] = stack.enter_context(server()).address
            return self._judged(stack.enter_context(Wires(endpoints)))

    def _judged(self, wires: Wires) -> Result:
        arena = self._arena_for(self._sink.spark_config)
        target = Target(self._request.target, dict(self._request.options), (str(Path.cwd()),))
        runner = SinkRunner(arena, target, self._source, wires)
        self._executor = SinkExecutor(
            runner,
            self._source,
            bool(self._sink.ordered),
            self._request.window,
            self._request.real,
            told=self._told,
        )
        clean = self._clean_runs()
        if self._request.only:
            return self._one(runner)
        if clean.outcome == "violation":
            return self._conclude(Found([clean]), runner)
        bounds = Bounds({}, self._request.faults)
        self._progress("searching")
        found = search(self._executor, clean, bounds, self._request.seconds)
        self._besides()
        return self._conclude(found, runner)

    def _told(self, execution: Execution) -> None:
        name = " + ".join(sorted(execution.schedule)) or "no fault"
        kinds = ", ".join(sorted({a.kind for a in execution.anomalies}))
        self._progress(f"{name}: {execution.outcome}{': ' + kinds if kinds else ''}")

    def _clean_runs(self) -> Execution:
        """Two runs without faults, which must be alike; the second knows the wire's points."""
        first = self._executor.run()
        run = self._executor.last
        self._expect_sense(run)
        if first.outcome != "good":
            return first
        again = self._executor.run()
        if again.fingerprint != first.fingerprint:
            raise VacuousError(
                f"{self._sink.name}: two runs without faults differ: "
                f"{_difference(run, self._executor.last)}: nothing can be concluded"
            )
        window = range(self._request.window - 1, self._request.window)
        recordings = (run.recording, self._executor.last.recording)
        self._executor.wire = wire_points(*recordings, run.events, window)
        return replace(again, lineage=self._executor.why(frozenset(), self._executor.last))

    def _expect_sense(self, run: SinkRun) -> None:
        name = self._sink.name
        if not any(e.step == "batch=0/offsets" for e in run.events):
            raise VacuousError(
                f"{name}: no batch was begun: {run.errors[0] if run.errors else 'no error'}"
            )
        if run.unused:
            raise UsageError(
                f"{name}: no byte crossed the link to {', '.join(run.unused)}: connect to "
                f"env.address({run.unused[0]!r}) instead of the server's own address"
            )
        if not run.checkpoint_used:
            raise UsageError(
                f"{name}: its query does not use env.checkpoint: "
                'give it .option("checkpointLocation", env.checkpoint)'
            )
        if not run.drained:
            why = cause(run.errors[-1]) if run.errors else "it does not end"
            raise VacuousError(f"{name}: the query fails without any fault: {why}")
        if not run.rows:
            raise VacuousError(
                f"{name}: read() returned nothing after a run without faults: "
                "it must return the rows that are in the target"
            )

    def _besides(self) -> None:
        """What the lineage does not put up: two drivers at once, and what is no fault."""
        for situation in SITUATIONS:
            self._extra.append(self._executor.run(frozenset({situation.id})))
        if NEW_CHECKPOINT.id in self._request.also:
            self._anew = self._executor.run(frozenset({NEW_CHECKPOINT.id}))
        last = self._source.batches - 1
        for step in ("batch=1/p=0/a=0/source.middle", "batch=1/commits"):
            fault = zombie(Point(step, "before"), last)
            self._extra.append(self._executor.run(frozenset({fault.id})))

    def _one(self, runner: SinkRunner) -> Result:
        for id in self._request.only:
            self._executor.fault(id)  # refuses what is none
        execution = self._executor.run(frozenset(self._request.only))
        return self._conclude(Found([execution], complete=True), runner)

    # --- the answer

    def unknown(self, reason: str) -> Result:
        """Nothing can be concluded."""
        return Result(
            scenario=self._sink.name,
            kind="sink",
            verdict="unknown",
            expected=self._request.expect,
            reason=reason,
            rests_on=self._rests_on(),
            started_at=self._started_at,
            duration_s=round(time.monotonic() - self._begun, 3),
        )

    def _conclude(self, found: Found, runner: SinkRunner) -> Result:
        executions = [*found.executions, *self._extra]
        violations = [*found.violations(), *(e for e in self._extra if e.outcome == "violation")]
        shown = [self._counterexample(e, runner) for e in _telling(violations)]
        counterexamples = tuple(c for c in shown if c is not None)
        kinds = {a.kind for e in violations for a in e.anomalies}
        guarantee = guarantee_of(kinds)
        unsure = [e for e in executions if e.outcome not in ("good", "violation")]
        verdict: Verdict = "valid" if satisfies(guarantee, self._request.expect) else "invalid"
        if verdict == "valid" and (unsure or not found.complete):
            verdict = "unknown"
        if None in shown:  # a kept crash showed what SIGKILL does not
            verdict = "unknown"
        ordered = bool(self._sink.ordered)
        torn = [a for _, v in self._executor.runs.values() for a in v.torn]
        return Result(
            scenario=self._sink.name,
            kind="sink",
            verdict=verdict,
            guarantee=guarantee,
            ordering="per-key" if ordered and "Reorder" not in kinds else "none",
            expected=self._request.expect,
            reason=self._reason(guarantee, violations, unsure, found),
            anomalies=_worst(violations),
            counterexamples=counterexamples,
            coverage=_coverage(found, executions, violations),
            runs=tuple(_line(e) for e in executions),
            rests_on=self._rests_on(),
            started_at=self._started_at,
            duration_s=round(time.monotonic() - self._begun, 3),
            details={
                "atomic": "torn" if torn else "no part of a batch was seen",
                "torn": [a.seen for a in torn[:3]],
                "folded": len(self._executor.folded),
                **self._new_checkpoint(),
            },
        )

    def _new_checkpoint(self) -> dict[str, object]:
        """What became of the rows when the checkpoint was lost: another question, told apart."""
        if self._anew is None:
            return {}
        found = self._anew.anomalies
        told = words.tell([NEW_CHECKPOINT], found, self._source.rows, False) if found else ""
        level = guarantee_of({a.kind for a in found})
        return {"new_checkpoint": {"guarantee": level, "words": told}}

    def _reason(
        self,
        guarantee: Guarantee,
        violations: Sequence[Execution],
        unsure: Sequence[Execution],
        found: Found,
    ) -> str:
        told = (
            f"{self._sink.name} is {guarantee}"
            if guarantee != "none"
            else (f"{self._sink.name} gives no guarantee")
        )
        if violations:
            return f"{told}: {len(violations)} minimal fault set(s) lower it"
        if unsure:
            return f"{told} as far as seen; {len(unsure)} fault set(s) could not be judged"
        left = "" if found.complete else "; the budget ended before all were tried"
        return f"{told} under every fault set within the bounds{left}"

    def _rests_on(self) -> tuple[str, ...]:
        return (
            f"at most {self._request.faults} faults together, in the first "
            f"{self._request.window} of {self._source.batches} batches",
            "a crash is "
            + (
                "SIGKILL"
                if self._request.real
                else "the state kept at its exact moment, every "
                "counterexample shown again by SIGKILL"
            ),
            "what the sink keeps is in env.workdir or behind its endpoints",
            "replays deal the same rows to other partitions, in another order across keys",
        )

    def _counterexample(self, execution: Execution, runner: SinkRunner) -> Counterexample | None:
        """The violation told, when it shows again with every crash a SIGKILL."""
        faults = [self._executor.fault(id) for id in sorted(execution.schedule)]
        ids = tuple(fault.id for fault in faults)
        layout = False
        if faults:
            layout = not self._shows_again(execution, runner, 0)
            if layout and not self._shows_again(execution, runner, OTHER_LAYOUT):
                return None
        trace = self._keep_trace(execution)
        kinds = frozenset(a.kind for a in execution.anomalies)
        return Counterexample(
            faults=ids,
            anomalies=execution.anomalies[:_ANOMALIES_SHOWN],
            schedule={"faults": list(ids)},
            replay=self._replay(ids),
            words=words.tell(faults, execution.anomalies, self._source.rows, layout),
            advice=words.advise(faults, kinds, layout),
            trace=trace,
        )

    def _shows_again(self, execution: Execution, runner: SinkRunner, layout: int) -> bool:
        """Whether the same is seen when every crash is a SIGKILL."""
        faults = [self._executor.fault(id) for id in sorted(execution.schedule)]
        run = runner.run(faults, replay_layout=layout, real=True)
        verdict = self._executor.judge(faults, run)
        return verdict.kinds == {a.kind for a in execution.anomalies}

    def _replay(self, ids: Sequence[str]) -> str:
        request = self._request
        words_ = ["bettong", "check-sink", request.target]
        for name, value in request.options.items():
            words_ += ["--option", masked(f"{name}={value}")]
        for name, value in request.endpoints.items():
            words_ += ["--endpoint", masked(f"{name}={value}")]
        for id in ids:
            words_ += ["--only", id]
        return shlex.join(words_)

    def _keep_trace(self, execution: Execution) -> str | None:
        if self._request.out is None:
            return None
        number = sorted(self._executor.runs, key=sorted).index(execution.schedule)
        name = f"traces/{number:03d}.jsonl"
        self._executor.runs[execution.schedule][0].write_trace(self._request.out / name)
        return name


def _telling(violations: Sequence[Execution]) -> list[Execution]:
    """One for each way of failing: kinds of anomalies, and kinds of faults."""
    chosen: dict[tuple[frozenset[str], tuple[str, ...]], Execution] = {}
    for e in violations:
        how = tuple(sorted(id.partition("(")[0] for id in e.schedule))
        chosen.setdefault((frozenset(a.kind for a in e.anomalies), how), e)
    return list(chosen.values())


def _worst(violations: Sequence[Execution]) -> tuple[Anomaly, ...]:
    return violations[0].anomalies[:_ANOMALIES_SHOWN] if violations else ()


def _coverage(
    found: Found, executions: Sequence[Execution], violations: Sequence[Execution]
) -> Coverage:
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
        violated=len(violations),
        to_first=first,
        complete=found.complete,
    )


def _line(execution: Execution) -> Run:
    run = execution.to_run()
    return Run(
        run.faults,
        run.outcome,
        run.evidence,
        run.not_fired,
        run.anomalies[:5],
        round(run.seconds, 3),
        run.trace,
        run.note,
    )


def _difference(first: SinkRun, second: SinkRun) -> str:
    a, b = ([f"{e.phase} {e.step}" for e in r.events] for r in (first, second))
    if sorted(a) != sorted(b):
        odd = sorted(set(a) ^ set(b))
        return f"their steps do, e.g. {odd[0] if odd else 'how often one is taken'}"
    return "the rows that were read back do"


__all__ = ["Check", "Request", "SinkVerdict", "VacuousError", "arenas", "check_sink", "fingerprint"]
