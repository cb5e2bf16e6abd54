"""``check_sink``: which guarantee does this sink really give?"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bettong.harness.events import Handler, ignore
from bettong.harness.queries.answer import answer, finish
from bettong.harness.queries.apart import REPLAYED, same_rows
from bettong.harness.queries.faults.operations import NEW_CHECKPOINT, NEW_ROWS, OperationalEvent
from bettong.harness.queries.faults.wire import not_read
from bettong.harness.queries.judge import fingerprint
from bettong.harness.queries.lanes import Lanes, Links, undisturbed
from bettong.harness.queries.request import Request, ask
from bettong.harness.queries.run.deadline import Deadline
from bettong.harness.queries.run.environment import SparkEnvironments, spark_environments
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.run.runner import QueryRunner, SinkRunner
from bettong.harness.queries.search.executor import SinkExecutor
from bettong.harness.queries.search.later_batches import earlier_batches, later_batches
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.search.search import search
from bettong.harness.queries.sense import (
    VacuousError,
    difference,
    expect_asked,
    expect_empty,
    expect_keys,
    expect_over_links,
    expect_sense,
    expect_values,
    keeps_in_sight,
    unasked,
)
from bettong.harness.queries.sink.contract import Sink
from bettong.harness.queries.sink.loading import expect_endpoint, file_of, load_target
from bettong.harness.queries.sink.rows import Input
from bettong.harness.queries.verdict import QueryVerdict, Subject
from bettong.harness.servers import ServerMissingError
from bettong.lineage.errors import BettongError, UsageError
from bettong.lineage.faults import CLEAN
from bettong.lineage.results import Guarantee, Result
from bettong.lineage.search.executor import BudgetSpentError, Execution
from bettong.lineage.search.findings import Findings
from bettong.lineage.secrets import masked


def check_sink(
    target: str,
    *,
    expect: Guarantee = "effectively-once",
    on_event: Handler = ignore,
    **more: object,
) -> Result:
    """Judge one sink; ``on_event`` is given what happens, the other arguments are those of
    :class:`Request`.

    Raises UsageError for a target that cannot be used.
    """
    request = ask(target, expect=expect, **more)
    with spark_environments(on_event) as environments:
        return check_one(request, environments, on_event)


def check_one(
    request: Request, environments: SparkEnvironments, on_event: Handler = ignore
) -> Result:
    """Judge one sink with drivers that several checks share; with a folder, keep the result there.

    What the machine lacks for it makes the answer unknown; ``details["skipped"]`` says what.
    """
    return answer(request, "sink", lambda: _checked(request, environments, on_event), on_event)


def unusable(request: Request, error: BettongError, on_event: Handler = ignore) -> Result:
    """The answer for a target that cannot be used, where others are judged beside it."""
    return finish(request, _before_it_is_loaded(request).unknown(masked(str(error))), on_event)


def _checked(request: Request, environments: SparkEnvironments, on_event: Handler) -> Result:
    verdict = _before_it_is_loaded(request)
    with contextlib.ExitStack() as stack:
        try:
            sink = load_target(request.target, request.options)
            source = source_of(sink)
            expect_within(request, source)
            subject = _subject(sink.name, source, bool(sink.ordered), file_of(request.target))
            verdict = QueryVerdict(request, subject)
            deadline = Deadline.after(request.budget.seconds)
            for name in request.endpoints:
                expect_endpoint(name, request.target)
            given = {**sink.endpoints, **request.endpoints}
            runner = partial(_runner, request, sink, source, environments, on_event, deadline)
            lanes = Lanes(request, sink.servers, given, runner, stack, on_event)

            def judge(asked: Request, in_sight: bool) -> Result:
                check = _Check(asked, sink, source, verdict, lanes, deadline, on_event, in_sight)
                return check.result()

            return undisturbed(request, lanes, judge)
        except ServerMissingError as e:
            return verdict.skipped(masked(str(e)))
        except VacuousError as e:
            return verdict.unknown(masked(str(e)))
        except BudgetSpentError:
            return verdict.unknown(
                f"the budget ended before two clean runs were made ({request.budget}): give it more"
            )


def expect_within(request: Request, source: Input) -> None:
    """Raises UsageError where faults are to fire in batches that there are not: in full they fire
    in the last one of the window only."""
    if request.window > source.batches:
        raise UsageError(
            f"window={request.window}: a run has {source.batches} batches; give so many at most"
        )


def _runner(
    request: Request,
    sink: Sink,
    source: Input,
    environments: SparkEnvironments,
    on_event: Handler,
    deadline: Deadline,
    lane: int,
    links: Links,
) -> SinkRunner:
    return SinkRunner(
        environments(sink.spark_config, beside=lane),
        Target(request.target, dict(request.options), (str(Path.cwd()),)),
        source,
        links.proxies,
        partial(environments, sink.spark_config, 2, lane),
        on_event,
        deadline,
        links.clients,
    )


def _before_it_is_loaded(request: Request) -> QueryVerdict:
    return QueryVerdict(request, _subject(request.target.rpartition(":")[2], Input()))


def source_of(sink: Sink) -> Input:
    """The rows that a sink is given: as many as it asks for."""
    return Input(sink.batches, sink.batch_rows)


def _subject(name: str, source: Input, ordered: bool = False, file: Path | None = None) -> Subject:
    dealt = "replays deal the same rows to other partitions, in another order across keys"
    return Subject(name, "sink", ordered, source.rows, source.batches, file=file, more=(dealt,))


class _Check:
    """One sink being judged."""

    def __init__(
        self,
        request: Request,
        sink: Sink,
        source: Input,
        answer: QueryVerdict,
        lanes: Lanes,
        deadline: Deadline,
        on_event: Handler,
        in_sight: bool,
    ) -> None:
        self._request = request
        self._in_sight = in_sight
        self._sink = sink
        self._answer = answer
        self._lanes = lanes
        self._deadline = deadline
        self._clean = QueryRun()
        self._executor = SinkExecutor(
            lanes.first,
            source,
            bool(sink.ordered),
            Why(request.window, source.batches, request.faults),
            request.real,
            handler=on_event,
            traces=request.out,
            expect=request.expect,
        )

    def result(self) -> Result:
        """The verdict. Raises VacuousError, UsageError, SinkError, DisturbedError."""
        clean = self._clean_runs()
        executor = self._executor
        if clean.outcome == "violation":
            findings = Findings(clean, [clean])
            findings.minimal = [CLEAN]
            return self._answer.conclude(executor, findings)
        if self._request.only:
            only = executor.findings_of(self._request.only, clean)
            return self._answer.conclude(executor, only)
        sampled: list[Execution] = []
        executor.keep = frozenset({REPLAYED.id})
        executor.widen(self._beside)
        self._lanes.first.start_ahead()
        findings = search(executor, self._request, sampled.append, self._deadline)
        return self._answer.conclude(executor, findings, sampled, self._anew())

    def _beside(self) -> Sequence[QueryRunner] | None:
        return self._lanes.beside(self._clean, self._executor.kept, fingerprint, same_rows)

    def _clean_runs(self) -> Execution:
        """Two runs without faults, which must be alike; the search takes them as its own. That
        which breaks the goal, if one does."""
        executor = self._executor
        first = executor.run_clean()
        run = self._clean = executor.last
        expect_sense(self._sink.name, run)
        if not run.outside:
            expect_asked(self._sink.name, run)
        expect_over_links(self._sink.name, run)
        expect_values(self._sink.name, run.rows)
        if self._sink.ordered:
            expect_keys(self._sink.name, run.rows)
        in_sight = not run.outside and self._keeps_in_sight(run)
        if run.outside:
            self._lanes.close(f"it writes outside its workdir, such as {min(run.outside)}")
        elif not in_sight:
            self._lanes.close("its rows are kept neither in its workdir nor behind an endpoint")
        executor.why.seen = self._in_sight and in_sight
        # What is kept elsewhere cannot be put back as it was at a crash.
        executor.real = executor.real or not executor.why.seen
        if first.outcome == "unknown":
            raise VacuousError(
                f"{self._sink.name}: what read() returned cannot be judged: {first.note}: it must "
                "return dicts or Rows with at least `id`"
            )
        expect_empty(self._sink.name, self._lanes.first.left_by_setup())
        if first.outcome != "good":
            return first
        if run.outside or not self._in_sight:
            first = executor.look_elsewhere(first)
            run = self._clean = executor.last
        again = executor.run_clean()
        if again.outcome == "violation":
            return again
        if again.fingerprint != first.fingerprint:
            raise VacuousError(
                f"{self._sink.name}: two runs without faults differ: "
                f"{difference(run, executor.last)}: nothing can be concluded"
            )
        other, window = executor.last, self._request.window
        executor.why.tail = later_batches(run, other, window)
        executor.why.head = earlier_batches(run, other, window)
        executor.why.read_both(run, other, self._lanes.links.servers)
        executor.why.unasked = unasked(run)
        executor.why.not_read = not_read(run.recording)
        baseline = executor.prepared(first, run)
        executor.clean = [baseline, again]
        return baseline

    def _keeps_in_sight(self, run: QueryRun) -> bool:
        """Whether what the run has kept is seen: each batch has changed something there, and where
        no server is, that is all; what a JVM writes elsewhere is not noted."""
        if not keeps_in_sight(run):
            return False
        return bool(run.recording.requests or not self._lanes.first.left_elsewhere())

    def _anew(self) -> list[tuple[OperationalEvent, Execution]]:
        """What becomes of rows when the checkpoint is lost, if that is asked."""
        asked = NEW_CHECKPOINT.id in self._request.also
        events = (NEW_CHECKPOINT, NEW_ROWS) if asked else ()
        found = []
        for x in events:
            schedule = frozenset({x.id})
            try:
                execution = self._executor.run(schedule)
            except BudgetSpentError:
                note = f"the budget ended before ({self._request.budget}): give it more"
                execution = Execution(schedule, "unknown", note=note)
            found.append((x, execution))
        return found
