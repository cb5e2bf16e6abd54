"""``check_job``: is this whole streaming job effectively-once?"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from bettong.harness.events import Handler, Preparing, ignore
from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.answer import answer, finish
from bettong.harness.queries.apart import REPLAYED
from bettong.harness.queries.faults.operations import LONGER, TWELVE, event_of
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.job.compare import expect_columns
from bettong.harness.queries.job.contract import Job
from bettong.harness.queries.job.envelope import differ, envelope, in_two_runs
from bettong.harness.queries.job.expectation import Expectation, expectation
from bettong.harness.queries.job.facts import Facts
from bettong.harness.queries.job.host import REREAD
from bettong.harness.queries.job.inputs import Recorded, StepInput, Topic
from bettong.harness.queries.job.judge import Judged
from bettong.harness.queries.job.lineage import JobWhy
from bettong.harness.queries.job.loading import load_job
from bettong.harness.queries.job.more_steps import InMoreSteps, divisible
from bettong.harness.queries.job.numbering import begins_anew
from bettong.harness.queries.job.oracles import VARIANTS, Clean, OnePerKey
from bettong.harness.queries.job.query_sense import expect_an_end, expect_topics_read
from bettong.harness.queries.job.rules import Row
from bettong.harness.queries.job.script import expect_hooks, facts_of, load_script
from bettong.harness.queries.job.script_host import script_environment
from bettong.harness.queries.job.script_workload import ScriptWorkload
from bettong.harness.queries.job.workload import (
    OTHERS,
    PLAIN,
    JobWorkload,
    Variant,
)
from bettong.harness.queries.judge import SinkVerdict
from bettong.harness.queries.lanes import Lanes, Links, undisturbed
from bettong.harness.queries.raised import cause
from bettong.harness.queries.request import Request, ask
from bettong.harness.queries.run.deadline import Deadline
from bettong.harness.queries.run.environment import SparkEnvironments, spark_environments
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.run.runner import QueryRunner
from bettong.harness.queries.run.state import last_without_data
from bettong.harness.queries.script import KAFKA
from bettong.harness.queries.search.executor import QueryExecutor
from bettong.harness.queries.search.later_batches import earlier_batches, later_batches
from bettong.harness.queries.search.search import search
from bettong.harness.queries.sense import (
    VacuousError,
    changes_in_sight,
    difference,
    expect_empty,
    expect_one_query,
    expect_sense,
)
from bettong.harness.queries.sink.loading import file_of
from bettong.harness.queries.verdict import QueryVerdict, Subject
from bettong.harness.servers import ServerMissingError
from bettong.harness.servers.kafka import kafka_connector
from bettong.harness.spark.driver import DriverError
from bettong.harness.spark.session import merged
from bettong.lineage.errors import BettongError
from bettong.lineage.faults import CLEAN
from bettong.lineage.results import Anomaly, Guarantee, Result
from bettong.lineage.search.executor import BudgetSpentError, Execution
from bettong.lineage.search.findings import Findings
from bettong.lineage.secrets import masked

_JARS = ("spark.jars", "spark.jars.packages")
_SETTINGS = {
    # A user's plan is Spark's own plan; its default of 200 partitions would cost minutes a batch.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}


def check_job(
    target: str,
    *,
    expect: Guarantee = "effectively-once",
    on_event: Handler = ignore,
    **more: object,
) -> Result:
    """Judge one streaming job; ``on_event`` is given what happens, the other arguments are those of
    :class:`Request`.

    Raises UsageError for a target that cannot be used.
    """
    request = ask(target, expect=expect, contract="job", **more)
    with spark_environments(on_event) as environments:
        return check_one_job(request, environments, on_event)


def check_one_job(
    request: Request, environments: SparkEnvironments, on_event: Handler = ignore
) -> Result:
    """Judge one job with drivers that several checks share; with a folder, keep the result there.

    What the machine lacks for it makes the answer unknown; ``details["skipped"]`` says what.
    """
    return answer(request, "job", lambda: _checked(request, environments, on_event), on_event)


def _checked(request: Request, environments: SparkEnvironments, on_event: Handler) -> Result:
    if request.script is not None:
        # Its process is its own, and there is no warm JVM to be spared; where else it writes
        # nobody knows.
        request = replace(request, target=request.script.target, real=True, side_by_side=False)
    verdict = QueryVerdict(request, Subject(request.target.rpartition(":")[2], "job"))
    with contextlib.ExitStack() as stack:
        try:
            job = load_script(request) if request.script else load_job(request.target)
            verdict.subject = replace(
                verdict.subject,
                name=job.name,
                own_session=request.script is not None,
                file=file_of(request.target),
            )
            deadline = Deadline.after(request.budget.seconds)
            given = {**job.endpoints, **request.endpoints}
            runner = partial(_runner, request, job, environments, on_event, deadline)
            lanes = Lanes(request, job.servers, given, runner, stack, on_event)

            def judge(asked: Request, in_sight: bool) -> Result:
                check = _Check(
                    asked, job, verdict, environments, lanes, deadline, on_event, in_sight
                )
                return check.result()

            return undisturbed(request, lanes, judge)
        except ServerMissingError as e:
            return verdict.skipped(masked(str(e)))
        except VacuousError as e:
            return verdict.unknown(masked(str(e)))
        except BudgetSpentError:
            return verdict.unknown(
                f"the budget ended before its clean runs were made ({request.budget}): give it more"
            )


def _runner(
    request: Request,
    job: Job,
    environments: SparkEnvironments,
    on_event: Handler,
    deadline: Deadline,
    lane: int,
    links: Links,
) -> QueryRunner:
    workload = _workload(request, job, links)
    settings = session_settings(job)
    environment = environments(settings, beside=lane)
    if request.script is not None:
        assert isinstance(workload, ScriptWorkload)
        environment = script_environment(request.script, environment, workload)
    two_cores = partial(environments, settings, 2, lane)
    return QueryRunner(
        environment, workload, links.proxies, two_cores, on_event, deadline, links.clients
    )


def _workload(request: Request, job: Job, links: Links) -> JobWorkload:
    """The job with the brokers of its topics, past the proxies."""
    names = {given.server for given in job.inputs.values() if isinstance(given, Topic)}
    if request.script is not None:
        names = {KAFKA} & links.endpoints.keys()
    brokers = {
        name: getattr(links.servers.get(name), "direct", links.endpoints[name]) for name in names
    }
    nonce = "" if brokers.keys() <= links.servers.keys() else secrets.token_hex(3)
    kind = ScriptWorkload if request.script else JobWorkload
    return kind(Target(request.target, {}, (str(Path.cwd()),)), job, brokers, nonce)


def session_settings(job: Job) -> dict[str, str]:
    """Of a job's session: Spark's Kafka connector comes along where it reads topics and brings none
    itself."""
    own = dict(job.spark_config)
    brings = any("spark-sql-kafka" in own.get(name, "") for name in _JARS)
    reads = any(isinstance(given, Topic) for given in job.inputs.values())
    return merged(_SETTINGS, kafka_connector() if reads and not brings else {}, own)


def unusable_job(request: Request, error: BettongError, on_event: Handler = ignore) -> Result:
    """The answer for a target that cannot be used, where others are judged beside it."""
    subject = Subject(request.target.rpartition(":")[2], "job")
    return finish(request, QueryVerdict(request, subject).unknown(masked(str(error))), on_event)


_TOLD_ONLY = (OTHERS["merged"].name, OTHERS["restart"].name)


class _Check:
    """One job being judged."""

    def __init__(
        self,
        request: Request,
        job: Job,
        answer: QueryVerdict,
        environments: SparkEnvironments,
        lanes: Lanes,
        deadline: Deadline,
        on_event: Handler,
        in_sight: bool,
    ) -> None:
        self._request, self._job, self._answer = request, job, answer
        self._lanes, self._deadline, self._on_event = lanes, deadline, on_event
        self._in_sight = in_sight
        assert isinstance(lanes.first.workload, JobWorkload)
        self._workload = lanes.first.workload
        self._judged: Judged | None = None
        self._cut: tuple[str, ...] = ()
        self._cut_otherwise: Judged | None = None
        self._clean = QueryRun()
        self._left: Sequence[Row] = ()
        self._warm = environments(session_settings(job))
        self._why = JobWhy(request.window, 0, request.faults)
        self._why.repeats = isinstance(job.oracle, OnePerKey)
        self._why.fed = any(isinstance(x, StepInput) for x in job.inputs.values())
        self._why.topics = any(isinstance(x, StepInput) and x.on_topic for x in job.inputs.values())
        self._why.own_source = any(isinstance(x, Recorded) for x in job.inputs.values())
        self._why.own_session = request.script is not None
        self._executor = QueryExecutor(
            lanes.first,
            self._why,
            self._judge,
            fingerprint=_fingerprint,
            real=request.real,
            handler=on_event,
            traces=request.out,
            expect=request.expect,
        )

    def _judge(self, faults: Sequence[QueryFault], run: QueryRun) -> SinkVerdict:
        if self._judged is None:
            return SinkVerdict((), ())
        otherwise = self._cut_otherwise is not None and run.cut != self._cut
        judged = (self._cut_otherwise if otherwise else None) or self._judged
        event = event_of(faults)
        if event in (LONGER, TWELVE):
            assert self._more_steps is not None
            judged = self._more_steps.judged(run, without_fault=event is TWELVE)
        judged = judged.fed_again() if event.repeat is not None else judged
        return judged.run(run, may_stand=event.stands_from is not None)

    def result(self) -> Result:
        """The verdict. Raises VacuousError, UsageError, SinkError."""
        executor = self._executor
        clean = self._clean_runs()
        if clean.outcome == "violation":
            findings = Findings(clean, [clean])
            findings.minimal = [CLEAN]
            return self._answer.conclude(executor, findings)
        if self._request.clean_only:
            return self._without_faults(clean)
        if self._request.only:
            return self._concluded(executor.findings_of(self._request.only, clean))
        sampled: list[Execution] = []
        executor.keep = frozenset({REPLAYED.id})
        executor.widen(self._beside)
        self._lanes.first.start_ahead()
        return self._concluded(
            search(executor, self._request, sampled.append, self._deadline), sampled
        )

    def _without_faults(self, clean: Execution) -> Result:
        runs = self._runs
        if self._why.divisible:
            twelve = self._executor.run(frozenset({TWELVE.id}))
            if twelve.outcome == "violation":
                findings = Findings(clean, [clean, twelve])
                findings.minimal = [twelve.schedule]
                return self._concluded(findings)
            runs += 1
        self._tell_of_more_steps()
        return self._answer.without_faults(clean, runs)

    def _concluded(self, findings: Findings, sampled: Sequence[Execution] = ()) -> Result:
        self._tell_of_more_steps()
        return self._answer.conclude(self._executor, findings, sampled)

    def _tell_of_more_steps(self) -> None:
        """What how rows are cut makes another one in more steps is told like the rest of it."""
        if self._more_steps is not None and self._more_steps.varying:
            told = (*self._answer.subject.envelope, *self._more_steps.varying)
            self._answer.subject = replace(self._answer.subject, envelope=told)

    def _beside(self) -> Sequence[QueryRunner] | None:
        def same(a: Sequence[Row], b: Sequence[Row]) -> bool:
            return not differ(self._job.compare, a, b)

        kept = self._executor.kept
        return self._lanes.beside(self._clean, kept, _fingerprint, same, self._left)

    def _expect_the_same_rows(self) -> None:
        """Raises VacuousError when a source of the user's own does not give the same rows for the
        same offsets: whatever follows could be its doing."""
        own = {n: x for n, x in self._job.inputs.items() if isinstance(x, Recorded)}
        own = {name: given for name, given in own.items() if not isinstance(given.source, str)}
        if own:  # what an earlier check has left of it goes
            self._lanes.first.left_by_setup()
        for name in own:
            arguments = {"target": asdict(self._workload.target), "name": name}
            try:
                found = self._warm.ask(REREAD, arguments, self._deadline)
            except DriverError as e:
                raise VacuousError(
                    f"{self._job.name}: the source {name} cannot be read: {e}"
                ) from e
            if not found["rows"]:
                raise VacuousError(
                    f"{self._job.name}: the source {name} gives no rows from its initial offset "
                    "on: it has to go by the offset that it is given, not by one that it keeps "
                    "itself, as of an earlier run"
                )
            if found["differs"]:
                raise VacuousError(
                    f"{self._job.name}: the source {name} gives other rows for the same offsets: "
                    "a replay of a batch would not be one"
                )

    def _clean_runs(self) -> Execution:
        """Runs without faults: what they have in common is what later runs are held against."""
        executor, name = self._executor, self._job.name
        self._expect_the_same_rows()
        first = executor.run_clean()
        run = executor.last
        self._expect_sense(run)
        self._left = self._lanes.first.left_by_setup()
        if all(row in self._left for row in run.rows):  # some may be what every target begins with
            expect_empty(name, self._left)
        if run.outside:
            self._lanes.close(f"it writes outside its workdir, such as {min(run.outside)}")
            first = executor.look_elsewhere(first)
            run = executor.last
        elif not changes_in_sight(run):
            self._lanes.close("its rows are kept neither in its workdir nor behind an endpoint")
        self._clean = run
        executor.why.seen = self._in_sight and not run.outside and changes_in_sight(run)
        # What is kept elsewhere cannot be put back as it was at a crash.
        executor.real = executor.real or not executor.why.seen
        again = executor.run_clean()
        other = executor.last
        self._expect_sense(other)
        if again.fingerprint != first.fingerprint:
            raise VacuousError(
                f"{name}: two runs without faults differ: {difference(run, other)}: nothing can "
                "be concluded"
            )
        rows: dict[str, Sequence[Row]] = {PLAIN.name: run.rows}
        odd = differ(self._job.compare, run.rows, other.rows)
        facts = Facts.of(self._facts(run))
        if odd:
            if wrong := self._wrong_in_the_second(run, other, facts):
                return replace(again, outcome="violation", anomalies=wrong)
            raise VacuousError(f"{name}: two runs without faults differ: {in_two_runs(odd)}")
        variants = self._variants(facts)
        varied = executor.side_by_side(partial(self._run_of, variant) for variant in variants)
        for variant, each in zip(variants, varied, strict=True):
            if not self._stands_still(variant, each):
                rows[variant.name] = self._varied(variant, each)
        found = envelope(self._job.compare, rows)
        self._runs = len(rows) + 1
        # What is another with two steps a batch or after a restart is reported, but no fault may
        # change it: a step is a batch, and who is started again has to come to the same.
        strict = {name: found for name, found in rows.items() if name not in _TOLD_ONLY}
        judging, self._judged = self._expect(run, facts, strict, rows, found.varying)
        self._cut = run.cut
        if judging.by_cut:
            self._cut_otherwise = judging.judged
        if facts.stateful and isinstance(self._job.oracle, Clean | OnePerKey):
            # After a restart a batch without data may be there or not, and timers see it.
            self._cut_otherwise = judging.judged.cut_otherwise(found, list(rows.values()))
        self._more_steps = InMoreSteps(
            self._job.compare,
            self._judged,
            self._cut_otherwise,
            rows,
            self._run_of,
        )
        # In smaller batches other rows may come too late, and which of a key is missing is free.
        once_in_time = isinstance(self._job.oracle, OnePerKey) and facts.watermarks
        enough = any(map(divisible, self._job.inputs.values()))
        self._why.divisible = enough and not once_in_time
        verdict = self._judged.run(run)
        if verdict.anomalies:
            return replace(first, outcome="violation", anomalies=verdict.anomalies)
        window = self._request.window
        self._why.batches = _batches(run)
        self._why.tail = later_batches(run, other, window) | self._ends(facts)
        self._why.head = earlier_batches(run, other, window)
        self._why.without_data = last_without_data(run.cut)
        self._why.read_both(run, other, self._lanes.links.servers)
        baseline = executor.prepared(first, run)
        executor.clean = [baseline, again]
        return baseline

    def _expect(
        self,
        run: QueryRun,
        facts: Facts,
        strict: Mapping[str, Sequence[Row]],
        rows: Mapping[str, Sequence[Row]],
        varying: tuple[str, ...],
    ) -> tuple[Expectation, Judged]:
        """What the oracle and these runs say, of which the answer tells, and what batches that are
        cut as theirs are held against."""
        runs = list(strict.values())
        kept = envelope(self._job.compare, strict)
        warm = partial(self._warm.ask, deadline=self._deadline)
        judging = expectation(self._job, self._workload, facts, kept, warm, runs)
        self._answer.subject = replace(
            self._answer.subject,
            batches=_batches(run),
            envelope=varying,
            oracle=judging.oracle,
            more=(*self._assumptions(rows, facts), *judging.assumptions),
        )
        return judging, judging.judged.settled(runs)

    def _wrong_in_the_second(
        self, run: QueryRun, other: QueryRun, facts: Facts
    ) -> tuple[Anomaly, ...]:
        """What is wrong in a second run without faults, where the first one is right by an oracle
        that does not go by such runs; what it leaves open may be as in either of them."""
        if isinstance(self._job.oracle, Clean):
            return ()
        plain = {PLAIN.name: run.rows}
        _, judged = self._expect(run, facts, {**plain, "once more": other.rows}, plain, ())
        right, wrong = judged.run(run), judged.run(other)
        return () if right.anomalies else wrong.anomalies

    _more_steps: InMoreSteps | None = None
    _runs: int = 0
    _anew: bool = False
    """Whether its query begins its checkpoint anew when it is started again."""

    def _ends(self, facts: Facts) -> frozenset[int]:
        """The last batch, where it does what those before do not: it closes what state keeps open,
        or a query begins its checkpoint anew after it."""
        return frozenset({self._why.batches - 1} if facts.stateful or self._anew else ())

    def _variants(self, facts: Facts) -> list[Variant]:
        """Those that the oracle asks for and that can change something."""
        oracle = self._job.oracle
        asked = oracle.variants if isinstance(oracle, Clean) else VARIANTS
        if any(isinstance(given, Recorded) for given in self._job.inputs.values()):
            asked = tuple(v for v in asked if v not in ("merged", "restart"))
        if not facts.stateful:
            asked = tuple(v for v in asked if v in ("merged", "restart"))
        return [OTHERS[name] for name in asked]

    def _run_of(self, variant: Variant) -> QueryRun:
        self._on_event(Preparing(f"a run without faults, {variant.name}"))
        with self._executor.a_runner() as runner:
            assert isinstance(runner.workload, JobWorkload)
            return runner.of(replace(runner.workload, variant=variant)).run()

    def _stands_still(self, variant: Variant, run: QueryRun) -> bool:
        """Whether its query fails once it is started again in good order: that is one of the faults
        that are tried, and it is found as such."""
        tried = self._why.fed and not self._request.clean_only
        again = variant is OTHERS["restart"] and len(run.starts) > 1
        return tried and again and bool(run.errors) and not run.drained

    def _varied(self, variant: Variant, run: QueryRun) -> list[Row]:
        self._executor.ran |= run.ran
        try:
            self._expect_sense(run)
        except VacuousError as e:
            raise VacuousError(f"{e} (with {variant.name})") from e
        self._anew = self._anew or begins_anew(run.events)
        return list(run.rows)

    def _assumptions(self, rows: Mapping[str, Sequence[Row]], facts: Facts) -> tuple[str, ...]:
        shuffled = "no two attempts at a task that reads a shuffle were there at once"
        zone = "the local time of its driver and its workers is UTC"
        return (
            *([shuffled] if facts.stateful else []),
            *([zone] if self._request.script is None else []),
            f"held against {len(rows) + 1} runs without a fault: {', '.join(rows)}",
            "replays read files in other parts, and topics in the partitions that they have",
            "each feeding step is one micro-batch: the next one is put in place when the last "
            "one is recorded as done",
        )

    def _facts(self, run: QueryRun) -> list[dict[str, Any]]:
        return facts_of(run) if self._request.script is not None else run.facts

    def _expect_sense(self, run: QueryRun) -> None:
        expect_one_query(self._job.name, run)
        expect_an_end(self._job.name, self._workload.endless(run.facts))
        expect_topics_read(self._job.name, self._job.inputs.values(), run)
        if isinstance(self._workload, ScriptWorkload):
            self._workload.expect_checkpoint()
            expect_hooks(self._job.name, run)
        expect_sense(self._job.name, run)
        expect_columns(self._job.name, self._job.compare, run.rows)
        facts = self._facts(run)
        blind = next((each["error"] for each in facts if "error" in each), None)
        if blind is not None:
            raise VacuousError(
                f"{self._job.name}: what its query does cannot be seen: {cause(blind)}"
            )
        if facts and not any(each.get("rows") for each in facts):
            raise VacuousError(f"{self._job.name}: its query has read no row of its inputs")


def _batches(run: QueryRun) -> int:
    """How many micro-batches were recorded, those without data too."""
    steps = {e.step for e in run.events if e.phase == "after"}
    return sum(StepId.parse(step).ends_batch for step in steps)


def _fingerprint(run: QueryRun) -> str:
    """Equal for runs that took the same steps; their rows are compared as the job says."""
    return hashlib.sha256(repr(run.steps).encode()).hexdigest()[:16]
