"""From the runs of a sink to its result: level, counterexamples, coverage."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from bettong.harness.checkers import guarantee_of, satisfies
from bettong.harness.faults.step_ids import CONCURRENT
from bettong.harness.queries import counterexample, describe
from bettong.harness.queries.advice import advise
from bettong.harness.queries.faults.operations import OperationalEvent, event_of
from bettong.harness.queries.faults.wire import taken_for_granted
from bettong.harness.queries.request import Request
from bettong.harness.queries.search.confirmation import named
from bettong.harness.queries.search.executor import QueryExecutor
from bettong.harness.queries.search.search import shows_more
from bettong.harness.queries.sense import DATED_ANEW, in_turn, undated
from bettong.harness.queries.sink.never_ran import (
    NeverRan,
    handlers_never_ran,
    in_words,
    never_ran,
    unmet_in_words,
)
from bettong.lineage.counted import counted
from bettong.lineage.results import (
    Counterexample,
    Coverage,
    Guarantee,
    Result,
    Run,
    Verdict,
    of_each_kind,
)
from bettong.lineage.search.executor import Execution
from bettong.lineage.search.findings import Findings

_ANOMALIES_SHOWN = 50
_ANOMALIES_OF_A_RUN = 5
_SOME = 5
_MOST_ASKED = 3
"""So many others of one way of failing are shown again, where the first one does not show."""
_SECOND = (
    "; a second one fires while the first is recovered from, in the first task if in any, at the "
    "last request that changes something if at any, or at the same place of the next batch where "
    "the driver dies amid files or before Spark records a batch"
)
_REACH = {
    "sink": "give the sink `batches` or `batch_rows` that reach them, or check it without them",
    "job": "give its inputs rows or steps that reach them, or check it without them",
}
_IN_THE_MIDST = "crashes were tried where Python's open() and sqlite3 change it, not in the midst "


@dataclass(frozen=True)
class Subject:
    """What is judged.

    Attributes:
        ordered: whether the order of rows is judged.
        rows: in each batch, where Bettong makes them.
        batches: of a run.
        oracle: what says which output is right, where the job does.
        envelope: what of its output depends on how batches are cut, a sentence each.
        file: the user's own, where lines that never ran are told.
        own_session: whether its Spark session is its own, as a script's is.
        more: what the verdict takes for granted beside what all verdicts do.
    """

    name: str
    kind: Literal["sink", "job"]
    ordered: bool = False
    rows: int = 0
    batches: int = 0
    oracle: str = ""
    envelope: tuple[str, ...] = ()
    file: Path | None = None
    own_session: bool = False
    more: tuple[str, ...] = ()


@dataclass
class QueryVerdict:
    """Draws the conclusion. The clock begins when it is made."""

    request: Request
    subject: Subject
    _begun: float = field(default_factory=time.monotonic)
    _started_at: str = field(
        default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds")
    )

    def unknown(self, reason: str) -> Result:
        """Nothing can be concluded."""
        return self._result("unknown", reason)

    def skipped(self, missing: str) -> Result:
        """Nothing was run, because the machine lacks what the sink needs."""
        return self._result("unknown", f"skipped: {missing}", details={"skipped": missing})

    def conclude(
        self,
        executor: QueryExecutor,
        findings: Findings,
        sampled: Sequence[Execution] = (),
        anew: Sequence[tuple[OperationalEvent, Execution]] = (),
    ) -> Result:
        """The result of a search.

        Each way of failing counts only when it shows again with every crash a SIGKILL. Raises
        DisturbedError.
        """
        executions = findings.executions
        if self.request.out is not None and self.request.replayed is None:
            counterexample.clear(self.request.out)
        violations = [findings.execution(schedule) for schedule in findings.minimal]
        violations = [x for each in violations for x in executor.without_its_crash(each)]
        executions += [x for x in violations if x not in executions]
        shown, missed, denied = self._shown_again(executor, violations)
        kinds = {a.kind for e, _ in shown for a in e.anomalies}
        guarantee = guarantee_of(kinds)
        unsure = [_unjudged(e) for e in executions if e.blind]
        unsure += (f"{named(e.schedule)}: a SIGKILL does not show it" for e in denied)
        unsure += _unlike(executor, executions, sampled)
        late = [f"{named(e.schedule)}: no time was left to show it by SIGKILL" for e in missed]
        disordered = self.subject.ordered and "Reorder" in kinds
        held = satisfies(guarantee, self.request.expect) and not disordered
        verdict: Verdict = "valid" if held else "invalid"
        left = not (findings.complete or self.request.only or violations == [findings.baseline])
        beside = {who for e in executions for who in e.details.get(CONCURRENT, ())}
        if any(e.details.get(DATED_ANEW) for e in executions):
            beside = undated(beside)
        unreached, reach = self._unreached(executor), _REACH[self.subject.kind]
        untried = in_words([x for x in unreached if x.matter], reach)
        never = in_words(unreached, reach)
        unmet = unmet_in_words(self._unmet(executor))
        if verdict == "valid" and (unsure or missed or left or beside or untried):
            verdict = "unknown"
        if verdict == "unknown":
            guarantee = guarantee_of(kinds | {a.kind for e in missed for a in e.anomalies})
        torn = [seen for e in executions for seen in e.details.get("torn", ())]
        if verdict == "unknown" and missed:
            reason = _unconfirmed(self.subject.name, missed, self.request)
        else:
            lowered = describe.lowered(len(violations), len(shown))
            doubts = [*unsure, *late]
            ended = _ended(self.request) if findings.spent else ""
            reason = self._reason(
                guarantee, lowered, doubts, left, disordered, beside, untried, ended
            )
        return self._result(
            verdict,
            reason,
            guarantee=guarantee,
            ordering="per-key" if self.subject.ordered and not disordered else "none",
            anomalies=of_each_kind(shown[0][0].anomalies, _ANOMALIES_SHOWN) if shown else (),
            counterexamples=tuple(reported for _, reported in shown),
            coverage=_coverage(executor, findings),
            runs=tuple(_line(e) for e in executions),
            assumptions=(
                *([never] if never else []),
                *([unmet] if unmet else []),
                *self._assumptions(executor, sampled, violations),
            ),
            details={
                "atomic": "torn" if torn else "no part of a batch was seen",
                "torn": torn[:3],
                **({"unconfirmed": [sorted(e.schedule) for e in missed]} if missed else {}),
                **({CONCURRENT: sorted(beside)} if beside else {}),
                **({"never_ran": never} if never else {}),
                "folded": _folded(executor),
                "folded_and_run": [named(e.schedule) for e in sampled],
                **self._anew(anew),
                **self._of_a_job(),
            },
        )

    def _shown_again(
        self, executor: QueryExecutor, violations: Sequence[Execution]
    ) -> tuple[list[tuple[Execution, Counterexample]], list[Execution], list[Execution]]:
        """What SIGKILLs show of each way of failing: those that are shown, those for which no time
        was left, and those that are not shown."""
        ways = self._ways(executor, violations)
        confirm = executor.confirmations.confirm
        with ThreadPoolExecutor(executor.parallel) as pool:
            list(pool.map(confirm, [first for first, *_ in ways]))
        standing = [_shown_of(way, executor, violations) for way in ways]
        chosen = list({e.schedule: e for e in standing}.values())
        confirmed = [confirm(e) for e in chosen]
        found = [(e, self._counterexample(executor, e)) for e in chosen]
        shown = [(e, reported) for e, reported in found if reported is not None]
        missed = [e for e, c in zip(chosen, confirmed, strict=True) if not (c.shown or c.in_time)]
        denied = [e for e, reported in found if reported is None and e not in missed]
        return shown, missed, denied

    def _result(self, verdict: Verdict, reason: str, **more: Any) -> Result:
        return Result(
            scenario=self.subject.name,
            kind=self.subject.kind,
            verdict=verdict,
            expected=self.request.expect,
            reason=reason,
            started_at=self._started_at,
            duration_s=round(time.monotonic() - self._begun, 3),
            **more,
        )

    def without_faults(self, clean: Execution, runs: int) -> Result:
        """What runs without faults show: what depends on how batches are cut. No level was asked
        for, and none is found."""
        varies, name = len(self.subject.envelope), self.subject.name
        note = f"{name} gives the same"
        if varies:
            some = f"{counted(varies, 'thing')} of its output depend{'s' * (varies == 1)}"
            note = f"{name}: {some} on how batches are cut,"
        result = self._result(
            "valid",
            f"{note} in {runs} runs without a fault; no fault was tried",
            runs=(_line(clean),),
            coverage=Coverage(executions=runs),
            assumptions=self.subject.more,
            details=self._of_a_job(),
        )
        return replace(result, expected=None)

    def _of_a_job(self) -> dict[str, object]:
        if self.subject.kind != "job":
            return {}
        return {"oracle": self.subject.oracle, "envelope": list(self.subject.envelope)}

    def _anew(self, anew: Sequence[tuple[OperationalEvent, Execution]]) -> dict[str, object]:
        """What became of rows when the checkpoint was lost: another question, answered apart."""
        reported = {}
        for event, execution in anew:
            if execution.blind:
                words = execution.note or f"{event.id} did not take place"
                reported[event.id] = {"guarantee": "unknown", "words": words}
                continue
            found = execution.anomalies
            level = guarantee_of({a.kind for a in found})
            text = describe.explain([event], found, self.subject.rows, False) if found else ""
            reported[event.id] = {"guarantee": level, "words": text}
        return {"new_checkpoint": reported} if reported else {}

    def _reason(
        self,
        guarantee: Guarantee,
        lowered: str,
        unsure: Sequence[str],
        left: bool,
        disordered: bool,
        beside: Collection[str],
        untried: str,
        ended: str,
    ) -> str:
        level = f"is {guarantee}" if guarantee != "none" else "gives no guarantee"
        reported = f"{self.subject.name} {level}"
        if disordered:
            reported += ", and the order of rows of one key is lost"
        if lowered and (disordered or guarantee != "effectively-once"):
            reported += f": {lowered}"
            if guarantee == "none":
                return reported
            if self.request.first and left:
                return f"{reported}; the search ended with the first, and it may be less"
            if ended:
                return f"{reported}; {ended}: it may be less"
            if beside:
                return f"{reported}; it may be less: {in_turn(beside)}"
            if unsure:
                return f"{reported}; {_unclear(unsure)}, and it may be less"
            return f"{reported}; it may be less: {untried}" if untried else reported
        doubt = in_turn(beside) if beside else _unclear(unsure) if unsure else ""
        if self.request.only and not doubt:
            return f"{reported} as far as this one fault set shows"
        doubts = [text for text in (doubt, ended or ("" if doubt else untried)) if text]
        if doubts:
            return f"{reported} as far as seen; {'; '.join(doubts)}"
        return f"{reported} under every fault set within the bounds"

    def _unreached(self, executor: QueryExecutor) -> list[NeverRan]:
        """What no run has reached of the code that ran; one fault set alone reaches little, and
        says nothing of the rest."""
        if self.subject.file is None or self.request.only:
            return []
        return never_ran(executor.ran, self.subject.file)

    def _unmet(self, executor: QueryExecutor) -> list[NeverRan]:
        """What handles errors that came in no run; the same of one fault set alone."""
        if self.subject.file is None or self.request.only:
            return []
        return handlers_never_ran(executor.ran, self.subject.file)

    def _assumptions(
        self,
        executor: QueryExecutor,
        sampled: Sequence[Execution],
        violations: Sequence[Execution],
    ) -> tuple[str, ...]:
        request = self.request
        alone = sum(bool(e.schedule) and not executor.goes_on(e) for e in violations)
        kept = (
            "the state kept at its exact moment, while its process lives on; every counterexample "
            f"was shown again by SIGKILL, and so {_killed_too(request)}"
        )
        folded = executor.why.equivalence.folded
        reported = [
            f"at most {request.faults} faults together, in the first {request.window} of "
            f"{self.subject.batches} batches{self._of_rows()}{_besides(executor.why.tail)}"
            + (_SECOND if request.faults > 1 else ""),
            f"a crash is {'SIGKILL' if executor.real else kept}",
            "what the sink keeps is in env.workdir or behind its endpoints; crashes in the midst "
            "of writing a file were tried where Python's open() writes it; what other libraries "
            "write was hit between the lines of the query's own code, not within one"
            if executor.why.seen
            else "what the sink keeps was not followed: it is outside of env.workdir, or runs "
            "beside each other disturbed it; "
            + (_IN_THE_MIDST if executor.why.elsewhere else "no crash was tried in the midst ")
            + "of writing it, and no fault set was taken to leave the same behind as another one",
            "a driver that was taken for dead was held where it writes, asks or looks at files, as "
            "the docs on checking a sink list it, not between any two lines, and went on at the "
            f"latest when its successor had ended all {self.subject.batches} batches: what a later "
            "one would take away, such as an old marker, was still there",
        ]
        if request.faults > 1 and alone:
            reported.append(
                f"no further fault was tried beside one of the {counted(alone, 'fault set')} that "
                "lower the level by themselves: together they may lower it more"
            )
        reported.append(
            "a replay was made 25 hours later by the clock of Python and of Spark's SQL, not by a "
            "server's: no key may be made of the time there, such as by DEFAULT CURRENT_DATE"
        )
        if executor.in_turn:
            reported.append(
                "what its function gives to threads and waits for went on one piece at a time: in "
                "each second batch as soon as it was given, in the others not before it was waited "
                "for, the last one first; what pieces do to each other while they go on at the "
                "same time was not tried"
            )
        reported += taken_for_granted(executor.why.wire)
        reported += self.subject.more
        if folded:
            reported.append(
                f"{len(folded)} fault sets were not run because one that leaves the same behind "
                f"was: files, and what servers had been sent; {len(sampled)} of them were run as "
                "a check"
            )
        if executor.why.unasked:
            reported.append(
                f"without a fault the query asks nothing of {', '.join(executor.why.unasked)} over "
                "the link: no request to it was hit"
            )
        if executor.why.not_read:
            reported.append(
                f"what is said to {', '.join(executor.why.not_read)} could not be read: what is "
                "sent until there is an answer counts as one request; without encryption, such as "
                "with sslmode=disable, each one is known"
            )
        odd = executor.why.not_placeable
        if odd:
            reported.append(
                f"{len(odd)} request(s) that runs without a fault do not make equally were "
                f"left alone: {', '.join(odd[:_SOME])}"
            )
        if self.subject.own_session:
            reported.append(
                "its Spark session is its own: lost executors and more cores were not tried"
            )
        elif not executor.why.in_tasks:
            reported.append(
                "its tasks leave nothing behind themselves: two attempts of one at once, "
                "lost executors and more cores were not tried"
            )
        return tuple(reported)

    def _of_rows(self) -> str:
        return f" of {self.subject.rows} rows" if self.subject.rows else ""

    def _ways(
        self, executor: QueryExecutor, violations: Sequence[Execution]
    ) -> list[list[Execution]]:
        """The violations of each way of failing, the same ones every time: kinds of anomalies, and
        mechanism; the smallest first, then the earliest. Two faults together only show something
        when none alone shows the same."""
        times = executor.why.times
        first = sorted(
            violations,
            key=lambda e: (
                len(e.schedule),
                [times.get(i, 0) for i in sorted(e.schedule)],
                sorted(e.schedule),
            ),
        )
        chosen: dict[tuple[frozenset[str], frozenset[str]], list[Execution]] = {}
        for e in first:
            kinds = frozenset(a.kind for a in e.anomalies)
            how = frozenset(executor.fault(id).mechanism for id in e.schedule)
            if len(e.schedule) < 2 or not any(kinds <= seen for seen, _ in chosen):
                chosen.setdefault((kinds, how), []).append(e)
        return list(chosen.values())

    def _counterexample(
        self, executor: QueryExecutor, execution: Execution
    ) -> Counterexample | None:
        """The violation, when it shows again with every crash a SIGKILL."""
        confirmation = executor.confirmations.confirm(execution)
        if not confirmation.shown:
            return None
        faults = [executor.fault(id) for id in sorted(execution.schedule)]
        ids = tuple(fault.id for fault in faults)
        kinds = frozenset(a.kind for a in execution.anomalies)
        failed, layout = bool(execution.details.get("failed")), confirmation.layout
        rows = event_of(faults).rows_of(self.subject.rows)
        return Counterexample(
            faults=ids,
            anomalies=of_each_kind(execution.anomalies, _ANOMALIES_SHOWN),
            schedule={"faults": list(ids)},
            replay=counterexample.command(self.request, ids),
            words=describe.explain(faults, execution.anomalies, rows, layout, failed),
            advice=advise(faults, kinds, layout, failed),
            trace=execution.trace,
        )


def _shown_of(
    way: Sequence[Execution], executor: QueryExecutor, violations: Sequence[Execution]
) -> Execution:
    """The violation that stands for a way of failing: the first one, unless a SIGKILL shows only
    another one, as where it is chance who of two drivers is the faster one. Raises
    DisturbedError."""
    confirmations = executor.confirmations
    first, *others = way
    found = confirmations.confirm(first)
    if found.shown:
        return first
    if not found.in_time:
        return _like_it(first, executor, violations)
    confirmations.account_for(first)
    others.sort(key=lambda e: e.schedule not in confirmations.confirmed)
    return next((e for e in others[:_MOST_ASKED] if confirmations.confirm(e).shown), first)


def _like_it(
    late: Execution, executor: QueryExecutor, violations: Sequence[Execution]
) -> Execution:
    """A violation with the same anomalies that had been shown again before the time was up; the
    same one if there is none."""
    kinds = {a.kind for a in late.anomalies}
    shown = (e for e in violations if e.schedule in executor.confirmations.confirmed)
    return next((e for e in shown if {a.kind for a in e.anomalies} == kinds), late)


def _unlike(
    executor: QueryExecutor, executions: Sequence[Execution], sampled: Sequence[Execution]
) -> list[str]:
    """Fault sets that show more than the one that stands for them: what else was folded is in
    doubt then."""
    known = {e.schedule: e for e in executions}
    folded = executor.why.equivalence.folded
    stand = [(e, known.get(folded.get(e.schedule, e.schedule), e)) for e in sampled]
    return [
        f"{named(e.schedule)} was taken to leave the same behind as {named(x.schedule)}, and shows "
        "more: so may others"
        for e, x in stand
        if shows_more(e, x)
    ]


def _unclear(unsure: Sequence[str]) -> str:
    return f"{counted(len(unsure), 'fault set')} could not be judged, the first one {unsure[0]}"


def _unjudged(execution: Execution) -> str:
    """Which run showed nothing of its faults, and why."""
    missing = f"{' and '.join(execution.not_fired)} did not fire" if execution.not_fired else ""
    return f"{named(execution.schedule)}: {'; '.join(filter(None, (missing, execution.note)))}"


def _ended(request: Request) -> str:
    """That the budget did not last, how large it was, and what to do."""
    return (
        f"the budget ended before all fault sets were tried ({request.budget}): give it more, or "
        "make the same call again, which goes on"
    )


def _unconfirmed(name: str, missed: Sequence[Execution], request: Request) -> str:
    """What was seen, and nobody had the time to show again."""
    seen = ", ".join(sorted({a.kind for e in missed for a in e.anomalies}))
    return (
        f"{name}: a counterexample was seen and not confirmed, for the budget ended "
        f"({request.budget}) before a SIGKILL could show it again: "
        f"{'; '.join(named(e.schedule) for e in missed)} ({seen}); give it more time"
    )


def _folded(executor: QueryExecutor) -> dict[str, list[str]]:
    """For each fault set that stands for others, those others; a sample of them."""
    found: dict[str, list[str]] = {}
    for equal, run in executor.why.equivalence.folded.items():
        names = found.setdefault(named(run), [])
        if len(names) < _SOME:
            names.append(named(equal))
    return found


def _coverage(executor: QueryExecutor, findings: Findings) -> Coverage:
    executions = findings.executions
    outcomes = [e.outcome for e in executions]
    injected = [e.outcome for e in executions if e.schedule]
    return replace(
        findings.coverage,
        goals=len(findings.baseline.lineage.goals),
        supports=outcomes.count("good"),
        injected=len(injected) - injected.count("not-injected"),
        not_injected=injected.count("not-injected"),
        pruned=len(executor.why.equivalence.folded),
        combinations=len(findings.baseline.lineage.faults),
        executions=len(executions),
        violated=outcomes.count("violation"),
    )


def _line(execution: Execution) -> Run:
    run = execution.to_run()
    sample = of_each_kind(run.anomalies, _ANOMALIES_OF_A_RUN)
    return replace(run, anomalies=sample, seconds=round(run.seconds, 3))


def _killed_too(request: Request) -> str:
    """What that does no harm was shown by SIGKILL as well."""
    if request.only:
        return "was this fault set"
    return (
        f"were crashes around commits/{request.window - 1}, and the last ones amid what the "
        "query's own code does before, that do no harm"
    )


def _besides(tail: frozenset[int]) -> str:
    """Which batches after the window faults fire in too."""
    batches = ", ".join(map(str, sorted(tail)))
    unlike = f"in batch {batches} for what no batch before does, and " if batches else ""
    return f", {unlike}in each of the others a crash before Spark records it"
