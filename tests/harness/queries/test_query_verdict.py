"""What is concluded of what a search has seen, and of what nobody had the time to show again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bettong.harness.faults.step_ids import CONCURRENT
from bettong.harness.queries.faults.operations import NEW_CHECKPOINT, NEW_ROWS
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.executor import SinkExecutor
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.sink.rows import Input
from bettong.harness.queries.verdict import QueryVerdict, Subject
from bettong.lineage.faults import CLEAN
from bettong.lineage.results import Guarantee, Result
from bettong.lineage.search.events import Executed
from bettong.lineage.search.executor import BudgetSpentError, Execution
from bettong.lineage.search.findings import Findings
from bettong.lineage.search.loop import Budget

CRASH = "crash(driver, before batch=1/commits)"
SOURCE = Input()
LOST = QueryRun(rows=[dict(row) for row in SOURCE.all()][1:], drained=True)


class EndsInTime:
    """Gives the first runs; for all others the time is up."""

    def __init__(self, most: int = 1) -> None:
        self.runs = 0
        self.most = most

    def run(self, faults: Sequence[object], **how: object) -> QueryRun:
        self.runs += 1
        if self.runs > self.most:
            raise BudgetSpentError("the time is up")
        return LOST


def concluded(parallel: int) -> Result:
    why = Why(2, SOURCE.batches, 1)
    executor = SinkExecutor(EndsInTime(), SOURCE, False, why)  # type: ignore[arg-type]
    found = executor.run(frozenset({CRASH}))
    executor.parallel = parallel
    executor.on_event(Executed(found, 1, from_log=False))
    clean = Execution(CLEAN, "good")
    findings = Findings(clean, [clean, found], minimal=[found.schedule])
    return QueryVerdict(Request("s.py:S"), Subject("S", "sink")).conclude(executor, findings)


@pytest.mark.parametrize("parallel", [1, 2])
def test_it_is_told_and_proves_nothing(parallel: int) -> None:
    result = concluded(parallel)
    assert (result.verdict, result.guarantee) == ("unknown", "at-most-once")
    assert result.counterexamples == ()
    assert result.details["unconfirmed"] == [[CRASH]]
    assert "a counterexample was seen and not confirmed" in result.reason
    assert f"{CRASH} (Loss)" in result.reason
    assert [run.faults for run in result.runs if run.outcome == "violation"] == [(CRASH,)]


def test_another_one_that_was_shown_again_in_time_stands_for_it() -> None:
    """The earliest one of a way of failing is reported, and another one was seen first."""
    why = Why(2, SOURCE.batches, 1)
    executor = SinkExecutor(EndsInTime(3), SOURCE, False, why)  # type: ignore[arg-type]
    later = executor.run(frozenset({"crash(driver, before batch=2/commits)"}))
    executor.on_event(Executed(later, 1, from_log=False))
    earlier = executor.run(frozenset({CRASH}))
    executor.on_event(Executed(earlier, 2, from_log=False))
    clean = Execution(CLEAN, "good")
    findings = Findings(clean, [clean, later, earlier])
    findings.minimal = [later.schedule, earlier.schedule]
    result = QueryVerdict(Request("s.py:S"), Subject("S", "sink")).conclude(executor, findings)
    assert (result.verdict, result.guarantee) == ("invalid", "at-most-once")
    assert [c.faults for c in result.counterexamples] == [tuple(later.schedule)]


def test_one_that_stands_for_several_ways_of_failing_is_shown_once() -> None:
    """A crash and a zombie lose the same, and there was time to show one crash again."""
    executor = SinkExecutor(EndsInTime(4), SOURCE, False, Why(2, SOURCE.batches, 1))  # type: ignore[arg-type]
    zombie = "pause(driver, from batch=1/commits until after batch=3/commits)"
    found = []
    for id in ("crash(driver, before batch=2/commits)", CRASH, zombie):
        found.append(executor.run(frozenset({id})))
        executor.on_event(Executed(found[-1], len(found), from_log=False))
    clean = Execution(CLEAN, "good")
    findings = Findings(clean, [clean, *found], minimal=[e.schedule for e in found])
    result = QueryVerdict(Request("s.py:S"), Subject("S", "sink")).conclude(executor, findings)
    assert (result.verdict, result.guarantee) == ("invalid", "at-most-once")
    assert [c.faults for c in result.counterexamples] == [tuple(found[0].schedule)]


class SometimesShows:
    """Rows are lost under all faults, and where every crash is a SIGKILL only under this one."""

    def __init__(self, shown: str) -> None:
        self.shown = shown

    def run(self, faults: Sequence[QueryFault], real: bool = False, **how: object) -> QueryRun:
        shows = not real or self.shown in {fault.id for fault in faults}
        return LOST if shows else QueryRun(rows=ROWS, drained=True)


@pytest.mark.parametrize("place", range(4))
def test_another_one_that_a_sigkill_shows_stands_for_one_that_is_shown_by_chance(
    place: int,
) -> None:
    """Such as where two drivers are woken at once, and the faster one decides."""
    ids = [
        f"pause(driver, from batch=1/sink.file={n}.open until batch=3/commits)" for n in range(4)
    ]
    runner: Any = SometimesShows(ids[place])
    executor = SinkExecutor(runner, SOURCE, False, Why(2, SOURCE.batches, 1))
    clean = Execution(CLEAN, "good")
    found = [executor.run(frozenset({id})) for id in ids]
    findings = Findings(clean, [clean, *found], minimal=[each.schedule for each in found])
    result = QueryVerdict(Request("s.py:S"), Subject("S", "sink")).conclude(executor, findings)
    assert (result.verdict, result.guarantee) == ("invalid", "at-most-once"), result.reason
    assert [c.faults for c in result.counterexamples] == [(ids[place],)]


ROWS = [dict(row) for row in SOURCE.all()]
SWAPPED = QueryRun(rows=[ROWS[5], *ROWS[1:5], ROWS[0], *ROWS[6:]], drained=True)
"""Two rows of one key in the wrong order."""


class Shows:
    """Gives the same run each time."""

    def __init__(self, run: QueryRun) -> None:
        self.shown = run

    def run(self, faults: Sequence[object], **how: object) -> QueryRun:
        return self.shown


def judged_by(run: QueryRun, *, ordered: bool, request: Request, **more: bool) -> Result:
    """What is concluded where this run is seen under a crash, again and again."""
    why = Why(2, SOURCE.batches, 1)
    runner: Any = Shows(run)
    executor = SinkExecutor(runner, SOURCE, ordered, why, expect=request.expect)
    found = executor.run(frozenset({CRASH}))
    clean = Execution(CLEAN, "good")
    spent = more.get("spent", False)
    findings = Findings(clean, [clean, found], complete=not spent, spent=spent)
    findings.minimal = [found.schedule] if found.anomalies else []
    subject = Subject("S", "sink", ordered=ordered)
    return QueryVerdict(request, subject).conclude(executor, findings)


def test_what_the_budget_left_untried_is_not_said_to_hold() -> None:
    run = QueryRun(rows=ROWS, drained=True)
    asked = Request("s.py:S", budget=Budget.parse("2m"))
    result = judged_by(run, ordered=False, request=asked, spent=True)
    assert result.verdict == "unknown"
    ended = "the budget ended before all fault sets were tried (--budget 120s): give it more"
    assert f"as far as seen; {ended}" in result.reason
    assert "every fault set" not in result.reason


def test_what_makes_it_unsure_does_not_hide_that_the_budget_ended() -> None:
    why = Why(2, SOURCE.batches, 1)
    executor = SinkExecutor(Shows(LOST), SOURCE, False, why)  # type: ignore[arg-type]
    day = "files are named by the day (2026-11-30"
    clean = Execution(CLEAN, "good", details={CONCURRENT: [day]})
    request = Request("s.py:S", budget=Budget.parse("2m"))
    result = QueryVerdict(request, Subject("S", "sink")).conclude(
        executor, Findings(clean, [clean], spent=True)
    )
    assert result.verdict == "unknown"
    assert f"{day}): a replay on the next day" in result.reason
    assert "the budget ended before all fault sets were tried (--budget 120s)" in result.reason


def test_a_promised_order_that_is_broken_is_no_pass() -> None:
    result = judged_by(SWAPPED, ordered=True, request=Request("s.py:S"))
    assert (result.verdict, result.guarantee, result.ordering) == (
        "invalid",
        "effectively-once",
        "none",
    )
    assert [a.kind for a in result.anomalies] == ["Reorder"]
    assert result.reason == (
        "S is effectively-once, and the order of rows of one key is lost: 1 minimal fault set "
        "lowers it"
    )


def test_an_order_that_nobody_promised_is_not_judged() -> None:
    result = judged_by(SWAPPED, ordered=False, request=Request("s.py:S"))
    assert (result.verdict, result.ordering) == ("valid", "none")


@pytest.mark.parametrize("complete", [True, False])
def test_a_level_that_was_found_in_part_of_the_search_is_said_to_be_the_most(
    complete: bool,
) -> None:
    result = judged_by(LOST, ordered=False, request=Request("s.py:S"), spent=not complete)
    assert (result.verdict, result.guarantee) == ("invalid", "at-most-once")
    assert ("it may be less" in result.reason) is not complete


def test_a_lost_checkpoint_that_could_not_be_judged_has_no_level() -> None:
    why = Why(2, SOURCE.batches, 1)
    executor = SinkExecutor(Shows(LOST), SOURCE, False, why)  # type: ignore[arg-type]
    clean = Execution(CLEAN, "good")
    blind = Execution(frozenset({NEW_CHECKPOINT.id}), "unknown", note="a row has no id")
    whole = Execution(frozenset({NEW_ROWS.id}), "good")
    request = Request("s.py:S", also=("new-checkpoint",))
    result = QueryVerdict(request, Subject("S", "sink")).conclude(
        executor,
        Findings(clean, [clean], complete=True),
        anew=[(NEW_CHECKPOINT, blind), (NEW_ROWS, whole)],
    )
    assert result.details["new_checkpoint"] == {
        NEW_CHECKPOINT.id: {"guarantee": "unknown", "words": "a row has no id"},
        NEW_ROWS.id: {"guarantee": "effectively-once", "words": ""},
    }


@pytest.mark.parametrize(
    ("expect", "faults", "verdict", "said"),
    [
        ("effectively-once", 2, "invalid", True),
        ("effectively-once", 1, "invalid", False),
        ("at-least-once", 2, "valid", False),
    ],
)
def test_what_was_not_tried_beside_a_fault_that_lowers_the_level_is_said(
    expect: Guarantee, faults: int, verdict: str, said: bool
) -> None:
    """At-least-once under each fault alone is not yet at-least-once under two: where that is
    expected the search goes on."""
    twice = QueryRun(rows=[*ROWS, ROWS[0]], drained=True)
    asked = Request("s.py:S", expect=expect, faults=faults)
    result = judged_by(twice, ordered=False, request=asked)
    assert result.verdict == verdict
    assert any("no further fault was tried beside" in x for x in result.assumptions) is said


def test_what_is_done_at_once_is_no_pass() -> None:
    """No crash has a place between what two threads do, so that none was survived there."""
    run = QueryRun(rows=ROWS, drained=True, concurrent={"the thread 'late' did open a"})
    result = judged_by(run, ordered=False, request=Request("s.py:S"))
    assert (result.verdict, result.guarantee) == ("unknown", "effectively-once")
    assert result.reason.startswith(
        "S is effectively-once as far as seen; its code does several things at once "
        "(the thread 'late' did open a)"
    )
    assert result.details["concurrent"] == ["the thread 'late' did open a"]


def test_what_is_done_at_once_may_lower_a_level_that_was_found() -> None:
    run = QueryRun(rows=[*ROWS, ROWS[0]], drained=True, concurrent={"a thread"})
    for expect, verdict in (("effectively-once", "invalid"), ("at-least-once", "unknown")):
        request = Request("s.py:S", expect=expect)  # type: ignore[arg-type]
        result = judged_by(run, ordered=False, request=request)
        assert (result.verdict, result.guarantee) == (verdict, "at-least-once")
        assert "it may be less: its code does several things at once (a thread)" in result.reason


@pytest.mark.parametrize(
    ("varying", "said"),
    [
        ((), "J gives the same in 5 runs without a fault; no fault was tried"),
        (("n",), "J: 1 thing of its output depends on how batches are cut, in 5 runs without"),
        (("n", "m"), "J: 2 things of its output depend on how batches are cut, in 5 runs without"),
    ],
)
def test_what_depends_on_how_batches_are_cut_is_counted(
    varying: tuple[str, ...], said: str
) -> None:
    subject = Subject("J", "job", envelope=varying)
    clean = Execution(CLEAN, "good")
    result = QueryVerdict(Request("j.py:J", contract="job"), subject).without_faults(clean, 5)
    assert result.reason.startswith(said)
    assert result.expected is None
