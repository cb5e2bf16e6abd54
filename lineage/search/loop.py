"""The search: run, ask why it went well, put up the smallest faults that could prevent it, run.

One loop for protocols and real systems (Alvaro, Rosen, Hellerstein 2015). A run that stays good
adds its lineage, which rules out every hypothesis that leaves it intact. The search ends when no
hypothesis is left within the bounds, at a violation, or with the budget.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from time import monotonic

from bettong.lineage.errors import UsageError
from bettong.lineage.faults import CLEAN, Bounds, FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.results import Coverage
from bettong.lineage.search.events import Advanced, Executed, Handler, ignore
from bettong.lineage.search.executor import BudgetSpentError, Execution, Executor
from bettong.lineage.search.findings import Findings, break_the_goal
from bettong.lineage.search.hypotheses import Hypotheses, minimal
from bettong.lineage.search.journal import Journal
from bettong.lineage.search.modes import Mode
from bettong.lineage.search.under_way import UnderWay

TURNS: tuple[Mode, ...] = ("asked", "hunt", "kept", "given")
"""These take turns, because each finds violations that another would find late."""
DEAR: tuple[Mode, ...] = ("hunt", "present")
"""The same where runs are dear: of the smallest sets the latest, and any."""
REST: tuple[Mode, ...] = ("present", "absent")
_AHEAD = (16, 3)
"""Of schedules of one fault, and of several, that are put up one by one, so many are under way for
each run that can go on at a time: later ones run while the oldest takes its time. Single faults
teach little about one another."""
_EARLY = 2
"""So many sets are put up ahead of smaller ones at a time."""
_BUDGET = re.compile(r"(\d+)(s|m|h)?$")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop without an answer: after so many executions or seconds, whichever is first.

    Attributes:
        runs: so many executions.
        seconds: so much time.
        ends: the moment of the monotonic clock, in seconds, at which the time is up: infinite
            until it has :meth:`begun`, or without a limit.
    """

    runs: int | None = None
    seconds: float | None = None
    ends: float = math.inf

    @classmethod
    def parse(cls, text: str | None) -> Budget:
        """``200`` is so many runs, ``90s``, ``5m``, ``1h`` so much time; raises UsageError."""
        if text is None:
            return cls()
        found = _BUDGET.match(text)
        if found is None or int(found[1]) == 0:
            raise UsageError(
                f"--budget {text}: write a number of runs, or a time such as 90s or 5m"
            )
        number, unit = int(found[1]), found[2]
        return cls(runs=number) if unit is None else cls(seconds=number * _SECONDS[unit])

    def begun(self) -> Budget:
        """The same with its time running: from now, unless it runs already."""
        if self.seconds is None or self.ends < math.inf:
            return self
        return replace(self, ends=monotonic() + self.seconds)

    def __str__(self) -> str:
        """As it is written on a command line: ``--budget 90s``; empty without a limit."""
        if self.seconds is not None:
            return f"--budget {self.seconds:g}s"
        return "" if self.runs is None else f"--budget {self.runs}"

    def spent(self, runs: int) -> bool:
        """Whether so many executions have used it up, or its time is up, which has begun."""
        return (self.runs is not None and runs >= self.runs) or monotonic() >= self.ends


@dataclass(slots=True)
class _Search:
    executor: Executor
    bounds: Bounds
    budget: Budget
    find_all: bool
    journal: Journal | None
    on_event: Handler
    canonical: Callable[[FaultSet], FaultSet] | None
    alike: Callable[[FaultSet], Iterable[FaultSet]] | None
    smallest_first: bool
    suggest: Callable[[], Iterable[FaultSet]] | None
    ahead: Callable[[], Iterable[FaultSet]] | None
    settle: Callable[[Execution], Execution] | None
    enough: Callable[[], bool] | None
    at_a_time: Callable[[int], int] | None
    once_more: int
    allowed: Callable[[Execution], bool]
    began: float = field(default_factory=monotonic)
    done: list[Execution] = field(default_factory=list)
    tried: dict[FaultSet, Execution] = field(default_factory=dict)
    violations: list[FaultSet] = field(default_factory=list)
    to_first: int | None = None
    drawn: int = 0
    pruned: int = 0
    suggested: set[FaultSet] = field(default_factory=set)
    early: set[FaultSet] = field(default_factory=set)
    """What was put up ahead of smaller sets."""
    size: int = 1
    """Of how many faults the smallest hypothesis was last."""

    def suggestions(self) -> list[FaultSet]:
        """What is suggested now and was not put up before."""
        return [s for s in (self.suggest() if self.suggest else ()) if s not in self.suggested]

    def spent(self) -> bool:
        """Whether the budget is used up."""
        return self.budget.spent(len(self.done))

    def done_with(self) -> bool:
        """Whether nothing more is to be started: there is enough, or the budget is used up."""
        found = bool(self.violations) and not self.find_all
        return found or self.spent() or self.has_enough()

    def has_enough(self) -> bool:
        """Whether what was found so far is enough."""
        return bool(self.enough and self.enough())

    def most_under_way(self, size: int) -> int:
        """How many schedules of so many faults may be put up before what the first of them teaches
        is taken in."""
        most = self.at_a_time(size) if self.at_a_time else self.executor.parallel
        if not self.at_a_time and most > 1:
            most *= _AHEAD[size > 1]
        left = most if self.budget.runs is None else self.budget.runs - len(self.done)
        return max(1, min(most, left))

    def run(self, schedule: FaultSet) -> Execution:
        """Run one schedule while nothing else is under way, and keep what came of it."""
        under_way = UnderWay(self.executor, self.journal)
        under_way.start(schedule)
        return self.keep(*under_way.oldest())

    def settled(self, execution: Execution) -> Execution:
        """A fresh execution, complete."""
        return self.settle(execution) if self.settle else execution

    def keep(self, execution: Execution, from_log: bool) -> Execution:
        """Complete an execution that is a fresh one, keep it and report it."""
        execution = execution if from_log else self.settled(execution)
        told = execution.outcome == "violation" or not execution.schedule
        kept = execution if told else replace(execution, lineage=Lineage())  # large, and learned
        self.done.append(kept)
        self.tried[execution.schedule] = kept
        if execution.outcome == "violation":
            self.violations.append(execution.schedule)
            if self.to_first is None:
                self.to_first = len(self.done)
        event = Executed(execution, len(self.done), from_log)
        if self.journal:
            self.journal.on_event(event)
        self.on_event(event)
        return execution

    def minimal(self) -> list[FaultSet]:
        """Violating sets of which no proper subset violates, other than in a way that is allowed
        and shows less."""
        return minimal(self.violations, self._hides)

    def _hides(self, less: FaultSet, more: FaultSet) -> bool:
        fewer, kinds = ({a.kind for a in self.tried[s].anomalies} for s in (less, more))
        return kinds <= fewer or not self.allowed(self.tried[less])

    def advanced(self) -> None:
        """Say how far the search has come."""
        self.on_event(Advanced(len(self.done), len(self.violations), self.drawn, self.pruned))


def search(
    executor: Executor,
    bounds: Bounds,
    *,
    canonical: Callable[[FaultSet], FaultSet] | None = None,
    alike: Callable[[FaultSet], Iterable[FaultSet]] | None = None,
    smallest_first: bool = False,
    suggest: Callable[[], Iterable[FaultSet]] | None = None,
    ahead: Callable[[], Iterable[FaultSet]] | None = None,
    settle: Callable[[Execution], Execution] | None = None,
    enough: Callable[[], bool] | None = None,
    at_a_time: Callable[[int], int] | None = None,
    once_more: int = 0,
    allowed: Callable[[Execution], bool] = lambda violation: False,
    budget: Budget = Budget(),
    find_all: bool = False,
    log: Path | None = None,
    question: str = "",
    system: str = "",
    fault_space: int | None = None,
    on_event: Handler = ignore,
) -> Findings:
    """Search for the smallest fault sets within the bounds that break a goal.

    ``find_all``: go on after the first violation until all minimal ones are known.
    ``canonical``: gives a schedule that is equivalent to the one put up; it is run instead, unless
    it has been.
    ``alike``: gives schedules that are equivalent to one that is run, of those that are known:
    they are not put up after it.
    ``smallest_first``: put up no larger set while a smaller one is left: where a run is dear, all
    that single faults teach is learned before two are tried together.
    ``suggest``: gives sets that are likely to break something; those of them that are hypotheses
    are put up before others that are no smaller.
    ``ahead``: gives sets that are likely too, however large, none of them twice: now and then one
    of them that is a hypothesis is put up although smaller ones are left.
    ``settle``: completes a fresh execution, in the order in which schedules were put up whichever
    run ended first: for what must not depend on that.
    ``enough``: asked after each execution; the search ends when it says so.
    ``at_a_time``: of schedules of so many faults so many may be under way; what they teach is
    taken in in the order in which they were put up, whichever has ended first. So what is put up
    next hangs on what so many before it have taught and on nothing else, and the same is tried
    however many runs go on at a time and however long each of them takes. Without it there are
    more under way the more can go on at a time.
    ``once_more``: of schedules that were not injected, so many are run again when all others have
    been run, while nothing else is under way: for those that hang on how fast something is.
    ``allowed``: says of a violation that it is one which may happen: what else breaks beside its
    faults is searched for all the same, and counts where it shows more.
    ``log``: file to which every execution is written, and from which a search goes on that was
    interrupted; ``question`` names what is asked, so that a log is not used for another one, and
    ``system`` what it is asked of, so that nothing is answered for one that has been changed.
    ``fault_space``: size of the space, for the coverage, when it is known.
    ``on_event``: given each execution, once the log has it, and how far the search has come.

    Raises BettongError when the executor does; UsageError when the log is another question's.
    """
    journal = Journal(log, question, system) if log is not None else None
    work = _Search(
        executor,
        bounds,
        budget.begun(),
        find_all,
        journal,
        on_event,
        canonical,
        alike,
        smallest_first,
        suggest,
        ahead,
        settle,
        enough,
        at_a_time,
        once_more,
        allowed,
    )
    started = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        findings = _searched(work)
        stopped = find_all and work.spent() and not findings.complete
        if journal and findings.verdict != "unknown" and not stopped:
            journal.end()
    finally:
        if journal:
            journal.close()
    findings.started_at = started
    findings.seconds = monotonic() - work.began
    findings.coverage = _coverage(work, findings, fault_space)
    return findings


def _searched(work: _Search) -> Findings:
    baseline = work.run(CLEAN)
    findings = Findings(baseline, work.done)
    if baseline.outcome == "violation":
        findings.conclude("invalid", "the clean run breaks the goal: no fault is needed")
        findings.minimal = [CLEAN]
        return findings
    if baseline.outcome != "good":
        why = baseline.note or "its precondition does not hold"
        findings.conclude("unknown", f"the clean run is {baseline.outcome}: {why}")
        return findings
    if baseline.fingerprint:
        again = work.settled(work.executor.run(CLEAN))
        work.done.append(again)
        if again.outcome == "violation":
            work.to_first = len(work.done)
            findings.conclude(
                "invalid",
                "the second clean run breaks the goal, which the first one did not: it comes and "
                "goes, and no fault is needed",
            )
            findings.minimal = [CLEAN]
            return findings
        if again.fingerprint != baseline.fingerprint or again.outcome != "good":
            why = again.note or "their outputs or steps differ"
            findings.conclude("unknown", f"two clean runs are not alike: {why}")
            return findings
    if not baseline.lineage.goals:
        findings.conclude("unknown", "the clean run reached no goal: nothing was tested")
        return findings
    with Hypotheses(baseline.lineage, work.bounds, work.spent) as hypotheses:
        _explore(work, hypotheses, findings)
        findings.solver_seconds = hypotheses.solver_seconds
        findings.hypotheses_seconds = hypotheses.seconds
    return findings


def _explore(work: _Search, hypotheses: Hypotheses, findings: Findings) -> None:
    with UnderWay(work.executor, work.journal) as under_way:
        try:
            left = not _try_all(work, hypotheses, under_way)
            if not left and _try_once_more(work, hypotheses):
                left = not _try_all(work, hypotheses, under_way)
        except BudgetSpentError:
            left = True
        under_way.leave()
        with suppress(BudgetSpentError):
            # How far what is behind has come hangs on how fast it was.
            if not (work.at_a_time and work.has_enough()):
                _take_in(work, hypotheses, under_way, all_of_them=True)
    if work.violations and not work.find_all:
        with suppress(BudgetSpentError):
            _shrink(work, hypotheses)
    findings.minimal = work.minimal()
    blind = [e for e in work.done if e.blind]
    findings.complete = not left and not blind
    findings.spent = left and not work.has_enough()
    if work.violations:
        findings.conclude("invalid", break_the_goal(findings.minimal))
    elif left:
        findings.conclude("unknown", f"the budget ended after {len(work.done)} executions")
    elif blind:
        names = "; ".join(", ".join(sorted(e.schedule)) or "clean" for e in blind[:3])
        findings.conclude(
            "unknown", f"{len(blind)} planned runs were {blind[0].outcome}, such as {names}"
        )
    else:
        findings.conclude("valid", "no fault set within the bounds is left that breaks the goal")


def _try_all(work: _Search, hypotheses: Hypotheses, under_way: UnderWay) -> bool:
    """Put up one hypothesis after the other, until there is enough; whether none is left."""
    source = _draw(work, hypotheses)
    while not work.done_with():
        room = not under_way or len(under_way) < work.most_under_way(under_way.size)
        schedule = _next(work, hypotheses, source, under_way) if room else None
        if schedule is not None:
            under_way.start(schedule)
            continue
        if room:
            # All that is known was drawn; what is under way may put up more.
            source = _draw(work, hypotheses)
        if not under_way:
            return True
        _take_in(work, hypotheses, under_way, all_of_them=room)
        work.advanced()
    return False


def _try_once_more(work: _Search, hypotheses: Hypotheses) -> bool:
    """Run again what was not injected, and take in what it shows now; whether it shows anything."""
    missed = [e for e in work.done if e.outcome == "not-injected" and e.schedule]
    shown = False
    for execution in missed[: work.once_more]:
        if work.done_with():
            break
        again = work.run(execution.schedule)
        if again.blind:
            work.done.pop()  # that says the same once more
            continue
        work.done[:] = [e for e in work.done if e is not execution]
        _learn(work, hypotheses, again)
        shown = True
    return shown


def _next(
    work: _Search, hypotheses: Hypotheses, source: Iterator[FaultSet], under_way: UnderWay
) -> FaultSet | None:
    """The next schedule to start; None when there is none before what is under way has ended."""
    for drawn in source:
        early = drawn in work.early
        if work.smallest_first and under_way and len(drawn) > under_way.size and not early:
            break  # what the smaller ones teach may rule it out; it can be drawn again
        work.drawn += 1
        hypotheses.exclude(drawn)
        schedule = work.canonical(drawn) if work.canonical else drawn
        for same in work.alike(schedule) if work.alike else ():
            hypotheses.exclude(same)
        if schedule in work.tried or schedule in under_way:
            work.pruned += 1
            continue
        hypotheses.exclude(schedule)
        return schedule
    return None


def _take_in(
    work: _Search, hypotheses: Hypotheses, under_way: UnderWay, *, all_of_them: bool
) -> None:
    """Learn from the oldest execution, or from all of them one after the other, until there is
    enough."""
    while under_way:
        _learn(work, hypotheses, work.keep(*under_way.oldest()))
        if not all_of_them or work.has_enough():
            return


def _learn(work: _Search, hypotheses: Hypotheses, execution: Execution) -> None:
    if execution.outcome == "violation" and not work.allowed(execution):
        hypotheses.exclude_supersets(execution.schedule)
    elif execution.outcome in ("good", "vacuous", "violation"):
        hypotheses.extend(execution.lineage)


def _draw(work: _Search, hypotheses: Hypotheses) -> Iterator[FaultSet]:
    """Hypotheses, one after the other; the caller may have run what came before."""
    hunted: FaultSet = CLEAN
    while True:
        drawn = False
        for mode in DEAR if work.smallest_first else TURNS:
            yield from _likely(work, hypotheses)
            yield from _ahead(work, hypotheses)
            schedule = None
            before = work.tried.get(hunted)
            good = before is not None and before.outcome == "good"
            if mode == "hunt" and hunted and good and not work.smallest_first:
                # what else would break the run that has stayed good?
                schedule = hypotheses.extending(hunted, mode)
            schedule = schedule or hypotheses.smallest(mode)
            if schedule is not None and len(schedule) > work.size:
                work.size = len(schedule)
                yield from _likely(work, hypotheses)
                schedule = hypotheses.smallest(mode)
            if schedule is not None:
                drawn = True
                hunted = schedule if mode == "hunt" else hunted
                yield schedule
        if drawn:
            continue
        for mode in REST:
            schedule = hypotheses.smallest(mode)
            if schedule is not None:
                yield schedule
                break
        else:
            return


def _likely(work: _Search, hypotheses: Hypotheses) -> Iterator[FaultSet]:
    """What is suggested and is a hypothesis no larger than the smallest was."""
    for schedule in work.suggestions():
        if len(schedule) <= work.size:
            work.suggested.add(schedule)
            if hypotheses.admits(schedule):
                yield schedule


def _ahead(work: _Search, hypotheses: Hypotheses) -> Iterator[FaultSet]:
    """The first hypotheses of what is suggested although smaller ones may be left."""
    likely = (s for s in (work.ahead() if work.ahead else ()) if hypotheses.admits(s))
    for schedule in islice(likely, _EARLY):
        work.early.add(schedule)
        yield schedule


def _shrink(work: _Search, hypotheses: Hypotheses) -> None:
    """Make the smallest violation so far minimal: no proper subset breaks the goal."""
    while not work.spent():
        smallest = work.minimal()[0]
        for fault in sorted(smallest):
            less = smallest - {fault}
            if less and less not in work.tried:
                schedule: FaultSet | None = less
                break
        else:
            schedule = hypotheses.within(smallest, "absent")
        if schedule is None:
            return
        hypotheses.exclude(schedule)
        _learn(work, hypotheses, work.run(schedule))


def _coverage(work: _Search, findings: Findings, space: int | None) -> Coverage:
    outcomes = [e.outcome for e in work.done]
    planned = [e for e in work.done if e.schedule]
    executions = len(work.done)
    return Coverage(
        goals=len(findings.baseline.lineage.goals),
        supports=outcomes.count("good"),
        hypotheses=work.drawn,
        injected=sum(1 for e in planned if not e.not_fired and e.outcome != "not-injected"),
        not_injected=sum(1 for e in planned if e.not_fired or e.outcome == "not-injected"),
        vacuous=outcomes.count("vacuous"),
        pruned=space - executions if space is not None and findings.complete else work.pruned,
        combinations=space or 0,
        executions=executions,
        fault_space=space,
        violated=outcomes.count("violation"),
        to_first=work.to_first,
        complete=findings.complete,
    )
