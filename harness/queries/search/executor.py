"""A query as the search of ``lineage/`` sees it: run a fault set, judge it, say why it held."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from bettong.harness.events import Handler, RunJudged, ignore, search_progress
from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.step_ids import CONCURRENT
from bettong.harness.queries.faults.crash_points import is_change
from bettong.harness.queries.faults.kinds import parse_fault
from bettong.harness.queries.faults.operations import LATER, LONGER, TWELVE, event_of
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.judge import SinkVerdict, fingerprint, judge_run
from bettong.harness.queries.raised import cause
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.run.runner import QueryRunner
from bettong.harness.queries.search.confirmation import (
    OTHER_LAYOUT,
    Confirmations,
    DisturbedError,
    is_less,
    named,
)
from bettong.harness.queries.search.free_runners import FreeRunners
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.search.moments import tried_again
from bettong.harness.queries.sense import DATED_ANEW, dated, dated_anew, several
from bettong.harness.queries.sink.ran_lines import RanLine
from bettong.harness.queries.sink.rows import Input, judged_fields
from bettong.lineage.errors import UsageError
from bettong.lineage.faults import CLEAN, FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.nearest import did_you_mean
from bettong.lineage.results import Guarantee, Outcome
from bettong.lineage.search.events import Executed, SearchEvent
from bettong.lineage.search.executor import BudgetSpentError, Execution
from bettong.lineage.search.findings import Findings

T = TypeVar("T")

_RAN = "ran"
"""Of an execution, the lines that ran as they do in no run without faults: it may come from the log
of the search."""
_ALONE = 3
"""So many fault sets are run before others go on beside them: the likeliest, which the start of
further drivers is not to slow down."""
_SINGLE, _TOGETHER = 48, 4
"""So many are put up before what the first of them teaches is taken in, single ones and others, to
keep two lanes busy while one of them waits. What a single fault teaches rules out no other one, so
that there are enough of them for as long as a client may take to give up."""


Judge = Callable[[Sequence[QueryFault], QueryRun], SinkVerdict]


@dataclass
class QueryExecutor:
    """Runs fault sets on one query, as many at a time as there are runners.

    Attributes:
        runner: the first one.
        why: reads lineage out of runs.
        judge: judges a run by what it was given, under these faults.
        fingerprint: equal for clean runs that are alike.
        clean: executions of clean runs that were made before the search asks for them.
        last: the latest run that was settled.
        traces: where the traces of runs that are not good are kept, if anywhere.
        expect: the level that the query has to have.
        runs: how many were judged.
        kept: the run of ``keep``, a fault set, once there was one.
        confirmations: of violations.
        ran: lines of the user's code that any run has begun.
        in_turn: whether in any run threads of a batch went on one after the other.
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
    expect: Guarantee = "effectively-once"
    runs: int = 0
    keep: FaultSet = CLEAN
    kept: QueryRun | None = None
    parallel: int = 1
    ran: set[RanLine] = field(default_factory=set)
    in_turn: bool = False
    _more: Callable[[], Sequence[QueryRunner] | None] | None = None
    _alone: int = _ALONE
    confirmations: Confirmations = field(init=False)
    _free: FreeRunners = field(init=False)
    _begun: set[FaultSet] = field(default_factory=set)
    _tried: set[FaultSet] = field(default_factory=set)
    _ran_clean: set[RanLine] = field(default_factory=set)
    _broken: list[FaultSet] = field(default_factory=list)
    _runs: dict[FaultSet, QueryRun] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._free = FreeRunners(self.runner)
        self.confirmations = Confirmations(self)

    def widen(self, more: Callable[[], Sequence[QueryRunner] | None]) -> None:
        """From some runs on use further runners as well; ``more`` begins to start them, and gives
        None until they are there: runs go on meanwhile."""
        self._more = more

    def add(self, runners: Sequence[QueryRunner]) -> None:
        """Use further runners as well; nothing may be under way."""
        for runner in runners:
            self._free.add(runner)
        self.parallel += len(runners)

    def a_runner(self) -> AbstractContextManager[QueryRunner]:
        """One that nobody uses, for a run without faults, once there is one."""
        return self._free.taken_for(())

    def widened(self) -> int:
        """How many runs may be under way, with the further runners where it is their time; to be
        asked while none is."""
        if self._more is not None and self._alone <= 0:
            runners = self._more()
            if runners is None:
                return self.parallel
            self._more = None
            self.add(runners)
        return self.parallel

    def window_of(self, faults: int) -> int:
        """How many sets of so many faults are put up before what the first of them teaches is taken
        in: always as many, whatever the number of runners, and whether further ones are there."""
        return _SINGLE if faults == 1 else _TOGETHER

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        """Run with exactly these faults, and learn from it."""
        return self.settled(self.attempt(schedule))

    def run_clean(self) -> Execution:
        """Run without faults; once more where Spark has tried a task again, as it does by itself
        on a busy machine."""
        execution = self.run()
        if execution.outcome == "good" and tried_again(self.last):
            execution = self.run()
        return execution

    def look_elsewhere(self, first: Execution) -> Execution:
        """Take what the query's code changes outside of its workdir for steps as well, where two
        runs without faults do that alike; the first of these, else ``first`` as before."""
        run = self.last
        self.runner.look_elsewhere(True)
        wider = self.run_clean()
        wider_run = self.last
        if wider_run.drained and self.run_clean().fingerprint == wider.fingerprint:
            self.why.elsewhere, self.last = True, wider_run
            return wider
        self.runner.look_elsewhere(False)
        self.last = run
        return first

    def side_by_side(self, work: Iterable[Callable[[], T]]) -> list[T]:
        """The results of what runs, as many at a time as there are runners, while nothing else is
        under way; raises what the first of them raises."""
        if self.parallel == 1:
            return [each() for each in work]
        with ThreadPoolExecutor(self.parallel) as threads:
            under_way = [threads.submit(each) for each in work]
        return [ended.result() for ended in under_way]

    def last_side_by_side(self, work: Sequence[Callable[[], T]]) -> list[T]:
        """The same of what is run last: drivers that die then are replaced no more, for those that
        are there are enough."""
        last = max(len(work) - self.parallel, 0)
        results = self.side_by_side(work[:last])
        if work:
            self._free.start_no_more()
        return results + self.side_by_side(work[last:])

    def attempt(self, schedule: FaultSet = CLEAN, real: bool = False) -> Execution:
        """Run with exactly these faults, replays dealt out in another way; once more when one of
        them did not fire, so that a hitch of the machine does not leave it untried. What the
        run teaches is left to :meth:`settled`, so that several may be under way.

        Args:
            real: every crash is a SIGKILL, as where the executor's are.
        """
        if not schedule and self.clean:
            return self.clean.pop(0)
        real = real or self.real
        self._begun.add(schedule)
        faults = [self.fault(id) for id in sorted(schedule)]
        run, note = self._replayed(faults, real), ""
        if run.not_fired:
            note = f"at the first try {' and '.join(run.not_fired)} did not fire"
            run = self._replayed(faults, real)
        unread = ""
        if run.unreadable and faults and not real and not run.not_fired:
            run, unread = self._read_again(faults, run)
        verdict = self.judge(faults, run)
        self._runs[schedule] = run
        self.ran |= run.ran
        self.in_turn |= run.in_turn
        if not schedule:
            self._ran_clean |= run.ran
        more = run.ran - self._ran_clean
        anomalies, outcome = verdict.anomalies, _outcome(verdict)
        beside = run.concurrent if self.why.seen else run.concurrent | _unseen(run.processes)
        if not schedule:
            beside = beside | dated(run.events, datetime.now().astimezone())
        later = schedule == {LATER.id} and dated_anew(run.events, datetime.now().astimezone())
        if run.not_fired:
            outcome, note = "not-injected", cause(run.errors[-1]) if run.errors else ""
        elif verdict.malformed or unread:
            anomalies, outcome, note = (), "unknown", verdict.malformed or unread
        elif run.queries > 1:
            note = f"it starts {several(run.queries)}"
            anomalies, outcome = (), "unknown"
        return Execution(
            schedule,
            outcome,
            anomalies=anomalies,
            evidence=run.evidence,
            not_fired=run.not_fired,
            fingerprint=self.fingerprint(run) if not schedule else "",
            seconds=round(run.seconds, 3),
            note=note,
            details={
                "torn": [a.seen for a in verdict.torn],
                "failed": bool(run.errors),
                **({"outside": sorted(run.outside)} if run.outside else {}),
                **({CONCURRENT: sorted(beside)} if beside else {}),
                **({DATED_ANEW: True} if later else {}),
                **({_RAN: sorted(more)} if more else {}),
            },
        )

    def settled(self, execution: Execution) -> Execution:
        """The execution with its lineage and all that depends on what was learned before it; to
        be called in the order in which fault sets were put up, whichever run ended first."""
        schedule = execution.schedule
        run = self._runs.pop(schedule, None)
        if run is None:
            return execution  # settled already
        self.last = run
        if schedule and schedule == self.keep:
            self.kept = run
        faults = [self.fault(id) for id in sorted(schedule)]
        good, goes_on = execution.outcome == "good", self.goes_on(execution)
        execution = replace(
            execution,
            lineage=self.why.lineage(faults, run) if goes_on and schedule else Lineage(),
            trace=None if good else self._keep_trace(schedule, run),
            details={**execution.details, "equivalence": self.why.news()},
        )
        self.runs += 1
        if schedule:
            self._tried.add(schedule)
            if execution.outcome == "violation" and not goes_on:
                self._broken.append(schedule)
        self.handler(RunJudged(run.id, execution.to_run(), self.runs, self._planned()))
        self._alone -= bool(schedule)
        return execution

    def goes_on(self, execution: Execution) -> bool:
        """Whether what fails beside these faults matters still: they have done no harm, or such as
        the level that is expected allows."""
        kinds = {a.kind for a in execution.anomalies}
        if execution.outcome != "violation" or self.expect == "none":
            return execution.outcome == "good"
        return not is_less(kinds, self.expect)

    def _planned(self) -> int | None:
        """How many runs there will be as far as is known; None before the search."""
        if not self.why.known:
            return None
        left = self.why.known - self._tried
        return self.runs + sum(not any(less <= x for less in self._broken) for x in left)

    def _read_again(self, faults: Sequence[QueryFault], run: QueryRun) -> tuple[QueryRun, str]:
        """A run after which read() failed, made again with every crash a SIGKILL: what only the
        first one shows may be what its driver has left open, and proves nothing."""
        again = self._with_runner(faults, replay_layout=OTHER_LAYOUT, real=True)
        if again.unreadable:
            return again, ""
        return run, f"read() failed: {cause(run.unreadable)}; after a SIGKILL it does not"

    def _replayed(self, faults: Sequence[QueryFault], real: bool) -> QueryRun:
        real = _is_killed(faults, real)
        return self._with_runner(faults, replay_layout=OTHER_LAYOUT, real=real)

    def _with_runner(
        self, faults: Sequence[QueryFault], *, replay_layout: int, real: bool
    ) -> QueryRun:
        with self._free.taken_for(faults) as runner:
            if any(fault.loses_executor for fault in faults) and not self._two_cores_to_come():
                runner.start_no_more_on_two_cores()
            run = runner.run(faults, replay_layout=replay_layout, real=real)
        self.ran |= run.ran
        self.in_turn |= run.in_turn
        return run

    def _two_cores_to_come(self) -> bool:
        """Whether a fault set is known, and not begun, that needs a driver with two cores."""
        return any(
            fault.loses_executor or fault.cores
            for schedule in self.why.known - self._begun
            for fault in map(self.fault, schedule)
        )

    def on_event(self, event: SearchEvent) -> None:
        """Take in what the search has run, and pass on how far it has come."""
        if isinstance(event, Executed):
            self._take_in(event.execution)
        search_progress(self.handler)(event)

    def _take_in(self, execution: Execution) -> None:
        """Learn; the first violation of its kinds is confirmed at once."""
        self.learn(execution)
        if execution.outcome == "violation":
            self.confirmations.confirm_first(execution)

    def learn(self, execution: Execution) -> None:
        """Take in an execution, a fresh one or one from the log. Raises DisturbedError when its
        faults have made the query write where no run without them does: what it keeps there
        outlives the run, and nobody has looked at it."""
        self.why.learn(execution.details.get("equivalence", {}))
        self.ran.update(RanLine(*line) for line in execution.details.get(_RAN, ()))
        outside = execution.details.get("outside")
        if execution.schedule and outside and self.why.seen:
            raise DisturbedError(
                f"under {named(execution.schedule)} it writes outside its workdir, such as "
                f"{outside[0]}",
                in_sight=False,
            )

    def killed(self, faults: Sequence[QueryFault], layout: int) -> SinkVerdict:
        """What the faults show when every crash is a SIGKILL."""
        return self.judge(faults, self._with_runner(faults, replay_layout=layout, real=True))

    def alone(self, faults: Sequence[QueryFault]) -> SinkVerdict | None:
        """What the faults show while nothing else is under way; None where nothing ever is."""
        if self.parallel == 1:
            return None
        with self._free.alone_for(faults) as runner:
            run = runner.run(faults, replay_layout=OTHER_LAYOUT, real=_is_killed(faults, self.real))
        return self.judge(faults, run)

    def findings_of(self, asked: Iterable[str], clean: Execution) -> Findings:
        """What the one set of faults that is asked for shows. Raises what :meth:`chosen` and
        :meth:`run_only` do."""
        chosen = self.chosen(asked)
        found = self.run_only(chosen)
        findings = Findings(clean, [found])
        findings.minimal = [chosen] if found.outcome == "violation" else []
        return findings

    def without_its_crash(self, violation: Execution) -> list[Execution]:
        """A violation in more batches, or what shows the same in so many without a crash; both
        where the crash shows more."""
        if violation.schedule != {LONGER.id}:
            return [violation]
        try:
            alone = self.run(frozenset({TWELVE.id}))
        except BudgetSpentError:
            return [violation]
        if alone.outcome != "violation":
            return [violation]
        shown, without = ({a.kind for a in e.anomalies} for e in (violation, alone))
        return [alone] if shown <= without else [alone, violation]

    def run_only(self, schedule: FaultSet) -> Execution:
        """The one set of faults that is asked for, run once more with every crash a SIGKILL: a
        driver whose process is spared may keep in its memory what dies with it. Where that shows
        more, or nothing of its faults, it is the SIGKILL's run, which says so. Raises
        DisturbedError as :meth:`learn` does."""
        spared = self.run(schedule)
        self.learn(spared)
        faults = [self.fault(id) for id in sorted(schedule)]
        if self.real or spared.blind or not any(fault.crashes for fault in faults):
            return spared
        killed = self.settled(self.attempt(schedule, real=True))
        self.learn(killed)
        shown, more = ({a.kind for a in e.anomalies} for e in (spared, killed))
        if not killed.blind and more <= shown:
            return spared if shown else _with_both(killed, spared)
        if killed.blind and shown:
            return spared  # which is still to be shown again
        seen = f"{' and '.join(sorted(shown))} shows" if shown else "all is right"
        note = f"by SIGKILL; while its process lives on {seen}"
        note = f"{killed.note}; {note}" if killed.note else note
        return _with_both(replace(killed, note=note), spared)

    def fault(self, id: str) -> QueryFault:
        """The fault of an id; raises ScheduleError."""
        on_wire = self.why.on_wire
        if id in on_wire:
            return on_wire[id]
        try:
            return parse_fault(id)
        except ScheduleError as e:
            at = [f"{fault.place}/" for fault in on_wire.values() if fault.on_wire]
            if not any(endpoint in id for endpoint in at):
                raise
            hint = did_you_mean(id, on_wire) or f"there are: {', '.join(list(on_wire)[:6])}, …"
            raise ScheduleError(
                f"{id!r}: without faults there is no such request, or it is hit otherwise; {hint}"
            ) from e

    def chosen(self, ids: Iterable[str]) -> FaultSet:
        """The one fault set that is asked for; raises ScheduleError, and UsageError for events of
        which a run takes one only: the others would count as survived."""
        faults = [self.fault(id) for id in ids]
        events = [fault.id for fault in faults if fault.operational]
        if len(events) > 1:
            raise UsageError(f"--only: a run takes one of {' and '.join(events)}: ask one by one")
        return frozenset(fault.id for fault in faults)

    def prepared(self, clean: Execution, run: QueryRun) -> Execution:
        """A clean execution with its lineage, for the search."""
        ready = replace(clean, lineage=self.why.lineage([], run))
        return replace(ready, details={**clean.details, "equivalence": self.why.news()})

    def _keep_trace(self, schedule: FaultSet, run: QueryRun) -> str | None:
        if self.traces is None:
            return None
        digest = blake2b("\n".join(sorted(schedule)).encode(), digest_size=4).hexdigest()
        name = f"traces/{digest}.jsonl"  # the same when a search goes on that was interrupted
        run.write_trace(self.traces / name)
        return name


def _with_both(execution: Execution, other: Execution) -> Execution:
    """An execution, which knows who was at work at the same time in another one too."""
    beside = {who for e in (execution, other) for who in e.details.get(CONCURRENT, ())}
    more = {CONCURRENT: sorted(beside)} if beside else {}
    return replace(execution, details={**execution.details, **more})


def _unseen(processes: Collection[str]) -> set[str]:
    """What these have done where what a query keeps is not seen: in how many steps nobody knows."""
    return {f"{process} worked outside of its workdir, unseen" for process in processes}


def _outcome(verdict: SinkVerdict) -> Outcome:
    return "violation" if verdict.anomalies else "good"


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
        expect: Guarantee = "effectively-once",
    ) -> None:
        fields: set[str] = set()

        def judge(faults: Sequence[QueryFault], run: QueryRun) -> SinkVerdict:
            event = event_of(faults)
            if not faults:
                fields.update(judged_fields(run.rows))
            return judge_run(run, event.expected(source), ordered, event.stands_from, fields)

        super().__init__(
            runner, why, judge, real=real, handler=handler, traces=traces, expect=expect
        )


def _is_killed(faults: Sequence[QueryFault], real: bool) -> bool:
    """Whether every crash of a run is a SIGKILL."""
    return real or any(map(_in_midst_of_library, faults))


def _in_midst_of_library(fault: QueryFault) -> bool:
    """Whether the driver dies where a library has changed files past Python: what that keeps in the
    memory of a process that lives on, such as a database that is open, would be found again."""
    return fault.crashes and fault.recovers_from is not None and is_change(fault.recovers_from)
