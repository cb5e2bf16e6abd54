"""What the search is told of a run of a sink."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from bettong.harness.faults.errors import ScheduleError
from bettong.harness.queries.faults.wire import WirePoint
from bettong.harness.queries.faults.wire_fault import WireFault
from bettong.harness.queries.run.clients import LONG_S
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.confirmation import DisturbedError
from bettong.harness.queries.search.executor import SinkExecutor
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.sink.rows import Input
from bettong.harness.wire import CutPoint
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Guarantee
from bettong.lineage.search.executor import Execution

CRASH = "crash(driver, before batch=1/commits)"
SOURCE = Input()
RUN_S = 1.4
"""What a run takes where no client has to give up, on a machine with nothing else to do."""


class Runs:
    """Gives the runs that it was made with, one after the other."""

    def __init__(self, *runs: QueryRun) -> None:
        self.left = list(runs)

    def run(self, faults: Sequence[object], **how: object) -> QueryRun:
        assert len(faults) == 1
        return self.left.pop(0)


def execution(*runs: QueryRun, seen: bool = True) -> tuple[Execution, Runs]:
    runner = Runs(*runs)
    why = Why(2, SOURCE.batches, 1)
    why.seen = seen
    executor = SinkExecutor(runner, SOURCE, False, why)  # type: ignore[arg-type]
    return executor.run(frozenset({CRASH})), runner


def whole(**more: object) -> QueryRun:
    rows = [{name: row[name] for name in ("id", "value")} for row in SOURCE.all()]
    return QueryRun(rows=rows, drained=True, **more)  # type: ignore[arg-type]


def test_a_fault_that_did_not_fire_is_tried_once_more_and_that_is_reported() -> None:
    found, runner = execution(whole(not_fired=(CRASH,)), whole(evidence={CRASH: "it died"}))
    assert (found.outcome, runner.left) == ("good", [])
    assert found.note == f"at the first try {CRASH} did not fire"


def test_a_fault_that_never_fires_proves_nothing() -> None:
    missed = whole(not_fired=(CRASH,), errors=["the query did nothing more for 120 s"])
    found, runner = execution(missed, missed)
    assert (found.outcome, runner.left) == ("not-injected", [])
    assert found.not_fired == (CRASH,)
    assert found.note == "the query did nothing more for 120 s"


def test_one_that_fired_is_not_tried_again() -> None:
    found, runner = execution(whole(evidence={CRASH: "it died"}), whole())
    assert (found.outcome, found.note, len(runner.left)) == ("good", "", 1)


def test_rows_that_are_missing_are_a_violation() -> None:
    found, _ = execution(QueryRun(rows=whole().rows[1:], drained=True))
    assert [a.kind for a in found.anomalies] == ["Loss"]
    assert found.outcome == "violation"


def test_a_run_of_several_queries_is_not_judged() -> None:
    """What one of them has not written, the other one may have."""
    found, _ = execution(QueryRun(rows=whole().rows[1:], drained=True, facts=[{"queries": 2}]))
    assert (found.outcome, found.anomalies) == ("unknown", ())
    assert found.note == "it starts 2 streaming queries, and one is judged at a time"


class Asked(Runs):
    """Notes whether crashes were to be SIGKILL."""

    def __init__(self, *runs: QueryRun) -> None:
        super().__init__(*runs)
        self.real: list[object] = []

    def run(self, faults: Sequence[object], **how: object) -> QueryRun:
        self.real.append(how["real"])
        return super().run(faults, **how)


def judged(*runs: QueryRun) -> tuple[SinkExecutor, Execution, Asked]:
    runner = Asked(*runs)
    executor = SinkExecutor(runner, SOURCE, False, Why(2, SOURCE.batches, 1))  # type: ignore[arg-type]
    return executor, executor.run(frozenset({CRASH})), runner


class TwoCores(Asked):
    """Notes after how many runs no driver with two cores is started any more."""

    no_more_after: int | None = None

    def start_no_more_on_two_cores(self) -> None:
        self.no_more_after = len(self.real)


def test_after_the_last_executor_that_is_lost_no_driver_is_started_for_another() -> None:
    lost = [
        f"lost-executor(before batch=1/p=0/a=0/source.middle{end})" for end in ("", ", goes on")
    ]
    runner = TwoCores(*(whole(evidence={id: "lost"}) for id in lost))
    executor = SinkExecutor(runner, SOURCE, False, Why(2, SOURCE.batches, 1))  # type: ignore[arg-type]
    executor.why.known.update(frozenset({id}) for id in (CRASH, *lost))
    executor.attempt(frozenset({lost[0]}))
    assert runner.no_more_after is None
    executor.attempt(frozenset({lost[1]}))
    assert runner.no_more_after == 1


def test_an_exception_of_read_that_only_a_kept_crash_shows_is_no_violation() -> None:
    locked = QueryRun(unreadable="IOError: Could not set lock on file", drained=True)
    _, found, runner = judged(locked, whole(evidence={CRASH: "it died"}))
    assert (found.outcome, found.anomalies, runner.real) == ("unknown", (), [False, True])
    assert "Could not set lock" in found.note


def test_an_exception_of_read_that_a_sigkill_shows_too_is_one() -> None:
    torn = QueryRun(unreadable="ArrowInvalid: not a Parquet file", drained=True)
    _, found, _ = judged(torn, torn)
    assert (found.outcome, found.anomalies[0].seen) == (
        "violation",
        "ArrowInvalid: not a Parquet file",
    )


def test_a_violation_is_confirmed_once_by_a_sigkill() -> None:
    lost = QueryRun(rows=whole().rows[1:], drained=True)
    executor, found, runner = judged(lost, lost)
    assert executor.confirmations.confirm(found) == executor.confirmations.confirm(found)
    assert (executor.confirmations.confirmed, runner.real) == ([frozenset({CRASH})], [False, True])


@pytest.mark.parametrize(
    ("expect", "loses", "enough"),
    [
        ("effectively-once", False, True),
        ("at-least-once", False, False),
        ("at-least-once", True, True),
        ("none", True, False),
    ],
)
def test_the_first_that_is_less_than_expected_is_enough(
    expect: Guarantee, loses: bool, enough: bool
) -> None:
    """One that the level allows ends no search: what lowers it may come next."""
    rows = whole().rows
    broken = QueryRun(rows=rows[1:] if loses else [rows[0], *rows], drained=True)
    executor, found, _ = judged(broken, broken)
    executor.expect = expect
    assert not executor.confirmations.show_less
    executor.confirmations.confirm(found)
    assert executor.confirmations.show_less == enough


def test_a_violation_that_no_sigkill_shows_is_not_confirmed() -> None:
    lost = QueryRun(rows=whole().rows[1:], drained=True)
    executor, found, _ = judged(lost, whole(), whole())
    assert not executor.confirmations.confirm(found).shown
    assert executor.confirmations.confirmed == []


def beside(*alone: QueryRun) -> tuple[SinkExecutor, Execution]:
    """A loss that was seen beside another run and that no SIGKILL has shown, and what runs alone
    show."""
    lost = QueryRun(rows=whole().rows[1:], drained=True)
    executor, found, _ = judged(lost, whole(), whole(), *alone)
    executor.parallel = 2
    assert not executor.confirmations.confirm(found).shown
    return executor, found


def test_a_violation_that_no_run_alone_shows_was_made_by_another_one() -> None:
    executor, found = beside(whole())
    with pytest.raises(DisturbedError, match="it does not show alone") as raised:
        executor.confirmations.account_for(found)
    assert (raised.value.in_sight, raised.value.killed) == (True, False)


def test_a_violation_that_only_a_spared_process_shows_asks_for_kills() -> None:
    executor, found = beside(QueryRun(rows=whole().rows[1:], drained=True))
    with pytest.raises(DisturbedError, match="shows Loss only while its process") as raised:
        executor.confirmations.account_for(found)
    assert (raised.value.in_sight, raised.value.killed) == (True, True)
    executor.real = True
    executor.confirmations.account_for(found)


def test_what_faults_make_a_query_write_elsewhere_puts_it_out_of_sight() -> None:
    executor, found, _ = judged(whole(outside={"/var/spool/1"}, evidence={CRASH: "it died"}))
    with pytest.raises(
        DisturbedError, match=r"it writes outside its workdir, .* /var/spool/1"
    ) as e:
        executor.learn(found)
    assert not e.value.in_sight
    executor.why.seen = False
    executor.learn(found)


@pytest.mark.parametrize(
    ("step", "real"), [("batch=1/sink.file=1.change", True), ("batch=1/sink.file=1.open", False)]
)
def test_a_crash_after_a_librarys_own_write_is_a_kill(step: str, real: bool) -> None:
    asked = []

    class Asked(Runs):
        def run(self, faults: Sequence[object], **how: object) -> QueryRun:
            asked.append(how["real"])
            return super().run(faults, **how)

    runner = Asked(whole(evidence={"it": "died"}))
    executor = SinkExecutor(runner, SOURCE, False, Why(2, SOURCE.batches, 1))  # type: ignore[arg-type]
    executor.run(frozenset({f"crash(driver, before {step})"}))
    assert asked == [real]


@pytest.mark.parametrize(
    ("seen", "beside"),
    [(True, None), (False, ["the process 'sh' worked outside of its workdir, unseen"])],
)
def test_what_a_process_does_where_nothing_is_seen_is_not_known_to_be_one_step(
    seen: bool, beside: list[str] | None
) -> None:
    found, _ = execution(whole(processes={"the process 'sh'"}), seen=seen)
    assert found.outcome == "good"
    assert found.details.get("concurrent") == beside


def test_of_events_a_run_takes_one() -> None:
    executor = SinkExecutor(Runs(), SOURCE, False, Why(2, SOURCE.batches, 1))  # type: ignore[arg-type]
    assert executor.chosen([CRASH, "empty(batch=2)"]) == {CRASH, "empty(batch=2)"}
    with pytest.raises(UsageError, match=r"takes one of empty\(batch=2\) and odd-row\(batch=2\)"):
        executor.chosen(["empty(batch=2)", "odd-row(batch=2)"])


def test_a_request_that_there_is_not_is_told_with_those_that_there_are() -> None:
    why = Why(2, SOURCE.batches, 1)
    point = CutPoint("omit", "db", "db/conn=2/request=5 INSERT", "labels", "x", 1, "INSERT")
    fault = WireFault(point, "late")
    why.wire = [WirePoint(1, ((fault, ""),), 1)]
    executor = SinkExecutor(Runs(), SOURCE, False, why)  # type: ignore[arg-type]
    assert executor.fault(fault.id) == fault
    with pytest.raises(ScheduleError, match=f"no such request.*did you mean {re.escape(fault.id)}"):
        executor.fault("pause(driver, before db/conn=2/request=4 INSERT)")
    with pytest.raises(ScheduleError, match="is not a step"):
        executor.fault("crash(driver, before nowhere at all)")


def test_runs_go_on_alone_until_further_runners_are_there() -> None:
    first, second = Runs(*[whole(evidence={CRASH: "it died"})] * 4), Runs(whole(), whole())
    executor = SinkExecutor(first, SOURCE, False, Why(2, SOURCE.batches, 1))  # type: ignore[arg-type]
    answers = [None, None, [second]]
    executor.widen(lambda: answers.pop(0))  # type: ignore[arg-type, return-value]
    assert (executor.widened(), len(answers)) == (1, 3)  # the likeliest faults are run first
    for _ in range(3):
        executor.run(frozenset({CRASH}))
    window = executor.window_of(1), executor.window_of(2)
    assert [executor.widened(), executor.widened()] == [1, 1]
    assert [executor.widened(), executor.widened()] == [2, 2]
    assert (executor.window_of(1), executor.window_of(2)) == window  # else time would tell
    assert window[0] > window[1] > 1
    assert window[0] * RUN_S > LONG_S  # one lane has work while a client of the other one waits
    assert executor.side_by_side([lambda: "one", lambda: "two"]) == ["one", "two"]
