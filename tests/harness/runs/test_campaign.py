"""What many runs say together, with runs that are made up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bettong.harness.checkers import Record, check_outputs, undecided
from bettong.harness.faults.kinds import Crash
from bettong.harness.faults.point import Point
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs import campaign as module
from bettong.harness.runs.campaign import Budget, Campaign, run_campaign
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.counterexample import CounterexampleFile
from bettong.harness.runs.record import RunRecord
from bettong.harness.scenario import Scenario
from bettong.lineage.results import Guarantee, Result
from bettong.lineage.trace import TraceEvent

SCENARIO = Scenario("made_up", "made up", "no:app", lambda: b"one", advice="repair it")
GOOD = (Record("m/0", None, "x"),)
A, B, C = (Crash("driver", Point(f"batch={i}/commits")) for i in range(3))


def seen(
    schedule: Schedule,
    *,
    lost: bool = False,
    fired: bool = True,
    steps: tuple[str, ...] = ("a",),
    replay_changed: bool = False,
) -> RunRecord:
    judgement = check_outputs(GOOD, () if lost else GOOD)
    missing = () if fired else schedule.ids[:1]
    outcome = "violation" if lost else "not-injected" if missing else "good"
    return RunRecord(
        schedule,
        outcome,  # type: ignore[arg-type]
        [TraceEvent(step, "before", "driver") for step in steps],
        judgement,
        replay_changed,
        {},
        missing,
        outputs=(("m/0", "x"),),
    )


Behaviour = Callable[[Schedule, int], RunRecord]


class Bench:
    """Campaigns whose runs behave as asked."""

    def __init__(self, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.out = out
        self.ran: list[tuple[tuple[str, ...], bool]] = []
        self.used: list[Any] = []
        self.spared: list[bool] = []
        self._monkeypatch = monkeypatch

    def campaign(self, behaviour: Behaviour, backends: int = 1) -> Campaign:
        def run_once(
            backend: Any, scenario: Any, schedule: Schedule, folder: Any, asked: Asked, sent: Any
        ) -> RunRecord:
            assert asked.trace is not None
            asked.trace.write_text("")
            self.used.append(backend)
            self.ran.append((schedule.ids, asked.replay))
            self.spared.append(asked.spares_jvm)
            return behaviour(schedule, len(self.ran))

        self._monkeypatch.setattr(module, "run_once", run_once)
        first, *beside = (
            SimpleNamespace(
                toxiproxy=SimpleNamespace(kind="embedded"),
                proxies=SimpleNamespace(restarts=[]),
                runs=None,
                limits=(),
            )
            for _ in range(backends)
        )
        return Campaign(first, SCENARIO, self.out, {"lines": [b"one"]}, beside=beside)  # type: ignore[arg-type]

    def run(
        self,
        behaviour: Behaviour,
        *faults: Crash,
        expected: Guarantee = "effectively-once",
        **options: Any,
    ) -> Result:
        schedules = [Schedule((fault,)) for fault in faults]
        options.setdefault("clean_runs", 1)
        campaign = self.campaign(behaviour)
        campaign.expected = expected
        return run_campaign(campaign, lambda _: schedules, **options)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    yield Bench(tmp_path, monkeypatch)


def test_all_good_is_valid_and_counts(bench: Bench) -> None:
    result = bench.run(lambda schedule, _: seen(schedule), A, B, clean_runs=2)
    assert (result.verdict, result.guarantee) == ("valid", "effectively-once")
    coverage = result.coverage
    assert (coverage.executions, coverage.injected, coverage.complete) == (4, 2, True)
    assert Result.from_dict(result.to_dict()) == result
    assert sorted(p.name for p in (bench.out / "traces").iterdir()) == [
        "clean-1.jsonl",
        "clean-2.jsonl",
    ]


def test_what_is_wrong_without_a_fault_is_invalid_at_once(bench: Bench) -> None:
    result = bench.run(lambda schedule, _: seen(schedule, lost=True), A)
    assert (result.verdict, result.counterexamples[0].faults) == ("invalid", ())
    assert len(bench.ran) == 1


def test_a_fault_that_never_fires_makes_it_unknown_and_the_steps_that_there_were_are_named(
    bench: Bench,
) -> None:
    taken = ("batch=0/sink.commit", "gateway.append/lines/3")

    def behaviour(schedule: Schedule, _: int) -> RunRecord:
        return seen(schedule, fired=A not in schedule.faults, steps=taken)

    result = bench.run(behaviour, A, B)
    assert result.verdict == "unknown"
    assert "did not fire: the run had no step batch=0/commits" in result.reason
    assert result.reason.endswith("batch=0/sink.commit, gateway.append/lines/3")
    assert result.coverage.not_injected == 1


def test_another_random_schedule_stands_in_for_one_that_cannot_be_injected(bench: Bench) -> None:
    def behaviour(schedule: Schedule, _: int) -> RunRecord:
        return seen(schedule, fired=A not in schedule.faults)

    assert bench.run(behaviour, A, B, C, wanted=2).verdict == "valid"
    assert bench.run(behaviour, A, B, wanted=2).verdict == "unknown"


def test_nothing_stands_in_for_a_random_schedule_whose_run_cannot_be_judged(bench: Bench) -> None:
    """It has fired, and may have broken everything."""

    def behaviour(schedule: Schedule, _: int) -> RunRecord:
        found = seen(schedule)
        if A not in schedule.faults:
            return found
        judgement = undecided("the checker own failed: no such column")
        return replace(found, outcome="unknown", judgement=judgement, note=judgement.reason)

    result = bench.run(behaviour, A, B, C, wanted=2)
    assert (result.verdict, result.reason) == ("unknown", "the checker own failed: no such column")
    assert not result.coverage.complete


def test_two_clean_runs_that_differ_make_it_unknown_and_are_distinguished(bench: Bench) -> None:
    def behaviour(schedule: Schedule, number: int) -> RunRecord:
        return seen(schedule, steps=("a",) if number == 1 else ("a", "b"))

    result = bench.run(behaviour, A, clean_runs=2)
    assert result.verdict == "unknown"
    assert result.reason == "two clean runs differ: steps taken in one only: b"


def test_a_violation_is_shrunk_to_what_is_needed_and_can_be_replayed(bench: Bench) -> None:
    def behaviour(schedule: Schedule, _: int) -> RunRecord:
        return seen(schedule, lost=B in schedule.faults)

    campaign = bench.campaign(behaviour)
    result = run_campaign(campaign, lambda _: [Schedule((A, B, C))], clean_runs=1)
    (found,) = result.counterexamples
    assert (result.verdict, found.faults, found.advice) == ("invalid", (B.id,), "repair it")
    file = CounterexampleFile.read(Path(found.replay.removeprefix("bettong replay ")))
    assert (file.scenario, file.schedule) == ("made_up", Schedule((B,)))
    assert result.anomalies[0].kind == "Loss"


def test_what_the_level_asked_for_allows_is_no_violation(bench: Bench) -> None:
    def behaviour(schedule: Schedule, _: int) -> RunRecord:
        found = seen(schedule, lost=C in schedule.faults)
        if A not in schedule.faults:
            return found
        return replace(found, outcome="violation", judgement=check_outputs(GOOD, GOOD * 2))

    allowed = bench.run(behaviour, A, B, expected="at-least-once")
    assert (allowed.verdict, allowed.guarantee) == ("valid", "at-least-once"), allowed.reason
    assert (allowed.coverage.injected, allowed.coverage.violated) == (2, 0)
    assert "what was wrong in 1 of the runs at-least-once allows" in allowed.reason
    assert {a.kind for a in allowed.anomalies} == {"Duplicate"}
    assert bench.run(behaviour, A, B).verdict == "invalid"
    lost = bench.run(behaviour, A, B, C, expected="at-least-once")
    assert (lost.verdict, lost.guarantee) == ("invalid", "none")
    assert {a.kind for a in lost.anomalies} == {"Loss"}
    assert [example.faults for example in lost.counterexamples] == [(C.id,)]


def test_the_budget_ends_it_unknown_with_what_is_left(bench: Bench) -> None:
    result = bench.run(lambda schedule, _: seen(schedule), A, B, C, budget=Budget(runs=2))
    assert (result.verdict, result.coverage.executions) == ("unknown", 2)
    assert result.reason == "the budget ended with 2 schedules not run"


def test_what_a_forced_replay_alone_breaks_is_not_blamed_on_other_faults(bench: Bench) -> None:
    bench.run(lambda schedule, number: seen(schedule, replay_changed=number == 1), A, B)
    assert [replay for _, replay in bench.ran] == [True, False, False]


def test_as_many_runs_go_on_at_a_time_as_there_are_backends(bench: Bench) -> None:
    together = threading.Barrier(2, timeout=60)

    def behave(schedule: Schedule, _: int) -> RunRecord:
        if schedule.faults:
            together.wait()
        return seen(schedule)

    campaign = bench.campaign(behave, backends=2)
    result = run_campaign(campaign, lambda _: [Schedule((A,)), Schedule((B,))], clean_runs=1)
    assert result.verdict == "valid"
    assert result.coverage.injected == 2
    assert bench.used[1] is not bench.used[2]


def spared_first(spared: str, killed: str) -> Callable[[Schedule, int], RunRecord]:
    """A driver's crash whose first run, the JVM spared, has one outcome, and the next another."""

    def behaviour(schedule: Schedule, number: int) -> RunRecord:
        if not schedule.faults:
            return seen(schedule)
        outcome = spared if number == 2 else killed
        found = seen(schedule, lost=outcome == "violation")
        evidence = dict.fromkeys(schedule.ids, "killed")
        return replace(found, outcome=outcome, evidence=evidence, jvms_spared=int(number == 2))

    return behaviour


def test_a_violation_with_a_spared_jvm_is_told_when_a_whole_kill_shows_it(bench: Bench) -> None:
    result = bench.run(spared_first("violation", "violation"), A)
    assert (result.verdict, len(bench.ran)) == ("invalid", 3)
    assert bench.spared == [True, True, False]


@pytest.mark.parametrize("killed", ["good", "not-injected", "unknown"])
def test_one_that_a_whole_kill_does_not_show_is_unknown(bench: Bench, killed: str) -> None:
    result = bench.run(spared_first("violation", killed), A)
    assert (result.verdict, result.counterexamples) == ("unknown", ())
    assert f"Loss when the driver's JVM was spared, and {killed} when" in result.reason


def test_what_is_not_known_with_a_spared_jvm_is_asked_again(bench: Bench) -> None:
    result = bench.run(spared_first("unknown", "good"), A)
    assert (result.verdict, len(bench.ran)) == ("valid", 3)


def test_what_is_good_with_a_spared_jvm_is_run_once_and_said(bench: Bench) -> None:
    result = bench.run(spared_first("good", "violation"), A)
    assert (result.verdict, len(bench.ran)) == ("valid", 2)
    assert any("in 1 of 1 runs" in assumption for assumption in result.assumptions)


def test_a_replay_spares_no_jvm(bench: Bench) -> None:
    campaign = bench.campaign(lambda schedule, _: seen(schedule))
    campaign.spares_jvm = False
    campaign.run(Schedule((A,)))
    assert bench.spared == [False]
