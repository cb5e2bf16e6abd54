"""``check_sink``: which guarantee does this sink really give?"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from bettong.harness.faults import Point
from bettong.harness.sinks.answer import Answer
from bettong.harness.sinks.arena import ArenaFor, arenas
from bettong.harness.sinks.contract import Sink
from bettong.harness.sinks.executor import SinkExecutor
from bettong.harness.sinks.job import Target
from bettong.harness.sinks.judge import cause
from bettong.harness.sinks.request import Progress, Request
from bettong.harness.sinks.rows import Input
from bettong.harness.sinks.run import SinkRun, SinkRunner
from bettong.harness.sinks.search import Found, search
from bettong.harness.sinks.secrets import masked
from bettong.harness.sinks.sink_faults import zombie
from bettong.harness.sinks.situations import NEW_CHECKPOINT, SITUATIONS
from bettong.harness.sinks.target import load_target
from bettong.harness.sinks.wire_faults import wire_points
from bettong.harness.sinks.wires import Wires
from bettong.lineage.errors import BettongError, UsageError
from bettong.lineage.executor import Execution
from bettong.lineage.faults import Bounds
from bettong.lineage.results import Guarantee, Result


class VacuousError(BettongError):
    """The clean run proves nothing. Exit code 3."""


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
    sink = load_target(request.target, request.options)
    answer = Answer(request, sink, Input())
    with contextlib.ExitStack() as stack:
        endpoints = {**sink.endpoints, **request.endpoints}
        for name, server in sink.servers.items():
            if name not in endpoints:
                progress(f"starting {name}")
                endpoints[name] = stack.enter_context(server()).address
        wires = stack.enter_context(Wires(endpoints))
        try:
            return _Check(request, sink, answer, arena_for, progress, wires).result()
        except VacuousError as e:
            return answer.unknown(masked(str(e)))


class _Check:
    """One sink being judged."""

    def __init__(
        self,
        request: Request,
        sink: Sink,
        answer: Answer,
        arena_for: ArenaFor,
        progress: Progress,
        wires: Wires,
    ) -> None:
        self._request = request
        self._sink = sink
        self._answer = answer
        self._progress = progress
        self._source = answer.source
        target = Target(request.target, dict(request.options), (str(Path.cwd()),))
        runner = SinkRunner(arena_for(sink.spark_config), target, self._source, wires)
        self._executor = SinkExecutor(
            runner,
            self._source,
            bool(sink.ordered),
            request.window,
            request.real,
            told=self._told,
        )

    def result(self) -> Result:
        """The verdict. Raises VacuousError, UsageError, SinkError."""
        clean = self._clean_runs()
        if self._request.only:
            chosen = frozenset(self.known(id) for id in self._request.only)
            found = Found([self._executor.run(chosen)], complete=True)
            return self._answer.conclude(self._executor, found)
        if clean.outcome == "violation":
            return self._answer.conclude(self._executor, Found([clean]))
        self._progress("searching")
        bounds = Bounds({}, self._request.faults)
        found = search(self._executor, clean, bounds, self._request.seconds)
        besides, anew = self._besides()
        return self._answer.conclude(self._executor, found, besides, anew)

    def known(self, id: str) -> str:
        """The id, when it is a fault's; raises UsageError."""
        return self._executor.fault(id).id

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
        if not run.drained:
            why = cause(run.errors[-1]) if run.errors else "it does not end"
            raise VacuousError(f"{name}: the query fails without any fault: {why}")
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
        if run.unreadable:
            raise UsageError(
                f"{name}: read() fails after a run without faults: {cause(run.unreadable)}"
            )
        if not run.rows:
            raise VacuousError(
                f"{name}: read() returned nothing after a run without faults: "
                "it must return the rows that are in the target"
            )

    def _besides(self) -> tuple[list[Execution], Execution | None]:
        """What the lineage does not put up: what is no fault, and two drivers at once."""
        last = self._source.batches - 1
        steps = ("batch=1/p=0/a=0/source.middle", "batch=1/commits")
        zombies = [zombie(Point(step, "before"), last) for step in steps]
        runs = [self._executor.run(frozenset({x.id})) for x in (*SITUATIONS, *zombies)]
        asked = NEW_CHECKPOINT.id in self._request.also
        return runs, self._executor.run(frozenset({NEW_CHECKPOINT.id})) if asked else None


def _difference(first: SinkRun, second: SinkRun) -> str:
    a, b = ([f"{e.phase} {e.step}" for e in r.events] for r in (first, second))
    if sorted(a) != sorted(b):
        odd = sorted(set(a) ^ set(b))
        return f"their steps do, e.g. {odd[0] if odd else 'how often one is taken'}"
    return "the rows that were read back do"
