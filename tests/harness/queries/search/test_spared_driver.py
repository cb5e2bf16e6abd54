"""A driver that is spared at its crash may know what a dead one does not: some crashes are made
again by SIGKILL, and where they show more every crash is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bettong.harness.queries.faults.kinds import parse_fault
from bettong.harness.queries.lanes import undisturbed
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.confirmation import DisturbedError
from bettong.harness.queries.search.equivalence import CandidateFault
from bettong.harness.queries.search.executor import SinkExecutor
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.search.search import check_spared, log_of
from bettong.harness.queries.sink.rows import Input
from bettong.lineage.faults import CLEAN
from bettong.lineage.results import Result
from bettong.lineage.search.executor import Execution
from bettong.lineage.search.findings import Findings

SOURCE = Input()
ROWS = SOURCE.all()
BEFORE, AFTER = (f"crash(driver, {phase} batch=1/commits)" for phase in ("before", "after"))
LATE = "pause(driver, from before batch=1/commits until after batch=3/commits)"


class Remembers:
    """Its rows are whole while its process is spared; a SIGKILL at these faults shows others.

    Attributes:
        last: how many kills there had been when drivers began to be replaced no more.
    """

    def __init__(self, killed: str, rows: list[dict[str, object]]) -> None:
        self.killed, self.rows = killed, rows
        self.kills: list[str] = []
        self.spared = ROWS
        self.last: list[int] = []
        self.fires = True

    def run(self, faults: Sequence[object], **how: object) -> QueryRun:
        (id,) = [fault.id for fault in faults]  # type: ignore[attr-defined]
        if how["real"]:
            self.kills.append(id)
        dies = how["real"] and id == self.killed
        missed = () if self.fires or not dies else (id,)
        return QueryRun(
            rows=self.rows if dies else self.spared,
            drained=True,
            evidence={id: "it did"},
            not_fired=missed,
        )

    def start_no_more(self) -> None:
        self.last.append(len(self.kills))


def searched(runner: Remembers, *found: str, real: bool = False) -> tuple[SinkExecutor, Findings]:
    why = Why(2, SOURCE.batches, 1)
    executor = SinkExecutor(runner, SOURCE, False, why, real=real)  # type: ignore[arg-type]
    executions = [executor.run(frozenset({id})) for id in found]
    return executor, Findings(Execution(CLEAN, "good"), executions, complete=True)


@pytest.mark.parametrize(
    ("crash", "rows", "kind"), [(BEFORE, ROWS * 2, "Duplicate"), (AFTER, ROWS[:-1], "Loss")]
)
def test_what_only_a_kill_shows_asks_for_kills(
    crash: str, rows: list[dict[str, object]], kind: str
) -> None:
    executor, findings = searched(Remembers(crash, rows), BEFORE, AFTER)
    with pytest.raises(DisturbedError, match=f"shows {kind} only when its process dies") as raised:
        check_spared(executor, findings)
    assert (raised.value.in_sight, raised.value.killed) == (True, True)


def test_a_crash_that_another_one_stands_for_is_made_again_too() -> None:
    runner = Remembers(AFTER, ROWS[:-1])
    executor, findings = searched(runner, BEFORE)
    executor.why.equivalence.folded[frozenset({AFTER})] = frozenset({BEFORE})
    with pytest.raises(DisturbedError):
        check_spared(executor, findings)


def test_what_a_kill_shows_as_well_is_believed() -> None:
    runner = Remembers("none", [])
    check_spared(*searched(runner, BEFORE, AFTER))
    assert runner.kills == [BEFORE, AFTER]
    assert runner.last == [1]  # nobody needs the driver that would follow the last one


AMID = "crash(driver, before batch=1/sink.file=1.rename)"
ASKED = "crash(driver, before db/COMMIT=2)"


def candidates(*placed: tuple[str, int, int]) -> list[CandidateFault]:
    return [CandidateFault(parse_fault(id), id, batch, time) for id, batch, time in placed]


def test_of_a_batch_the_last_crash_amid_its_files_and_the_last_amid_its_requests_stand_out() -> (
    None
):
    why = Why(2, SOURCE.batches, 1)
    why._alone = candidates(
        ("crash(driver, before batch=0/sink.file=9.rename)", 0, 1),
        (AMID, 1, 6),
        ("crash(driver, before batch=1/sink.file=0.open)", 1, 5),
        (BEFORE, 1, 7),
        ("crash(driver, after db/BEGIN=2)", 1, 8),
        (ASKED, 1, 9),
        ("omit(db/COMMIT=2)", 1, 9),
        ("crash(driver, awaiting db/COMMIT=2)", 1, 10),
    )
    assert [fault.id for fault in why.last_amid(1)] == [AMID, ASKED]


def test_what_a_part_of_a_batch_has_left_in_memory_asks_for_kills() -> None:
    executor, findings = searched(Remembers(AMID, ROWS * 2), BEFORE, AMID, AFTER)
    check_spared(executor, findings)
    executor.why._alone = candidates((AMID, 1, 6), (BEFORE, 1, 7))
    with pytest.raises(DisturbedError, match="shows Duplicate only when its process dies"):
        check_spared(executor, findings)


def test_drivers_are_replaced_as_long_as_something_is_to_be_shown_again() -> None:
    runner = Remembers("none", [])
    executor, findings = searched(runner, BEFORE, AFTER)
    findings.minimal = [frozenset({LATE})]
    check_spared(executor, findings)
    assert (runner.kills, runner.last) == ([BEFORE, AFTER], [])


def test_nothing_is_made_again_where_every_crash_is_a_kill_or_none_was_tried() -> None:
    for runner, found, real in (
        (Remembers("none", []), (BEFORE, AFTER), True),
        (Remembers("none", []), (LATE,), False),
    ):
        asked = searched(runner, *found, real=real)
        runner.kills.clear()
        check_spared(*asked)
        assert runner.kills == []


@pytest.mark.parametrize(
    ("rows", "kinds"), [(ROWS * 2, {"Duplicate"}), (ROWS[:-1], {"Loss"}), (ROWS, set())]
)
def test_the_one_fault_set_that_is_asked_for_is_what_a_kill_shows(
    rows: list[dict[str, object]], kinds: set[str]
) -> None:
    runner = Remembers(AFTER, rows)
    executor, _ = searched(runner)
    found = executor.run_only(frozenset({AFTER}))
    assert {a.kind for a in found.anomalies} == kinds
    assert ("by SIGKILL; while its process lives on all is right" in found.note) == bool(kinds)
    assert runner.kills == [AFTER]


def test_a_kill_that_shows_more_than_what_was_seen_counts() -> None:
    runner = Remembers(AFTER, [*ROWS[:-1], *ROWS[:3]])
    runner.spared = ROWS * 2
    found = searched(runner)[0].run_only(frozenset({AFTER}))
    assert {a.kind for a in found.anomalies} == {"Duplicate", "Loss"}
    assert found.note == "by SIGKILL; while its process lives on Duplicate shows"


def test_what_a_kill_does_not_show_is_left_to_be_shown_again() -> None:
    runner = Remembers(AFTER, ROWS)
    runner.spared = ROWS * 2
    found = searched(runner)[0].run_only(frozenset({AFTER}))
    assert {a.kind for a in found.anomalies} == {"Duplicate"}


def test_a_kill_that_shows_nothing_of_the_one_fault_set_leaves_it_unknown() -> None:
    runner = Remembers(AFTER, ROWS)
    runner.fires = False
    found = searched(runner)[0].run_only(frozenset({AFTER}))
    assert (found.outcome, found.not_fired) == ("not-injected", (AFTER,))


def test_nothing_is_asked_twice_that_kills_nobody() -> None:
    runner = Remembers("none", [])
    searched(runner)[0].run_only(frozenset({LATE}))
    assert runner.kills == []


class _Lanes:
    def __init__(self) -> None:
        self.closed: list[str] = []

    def close(self, why: str) -> None:
        self.closed.append(why)


@pytest.mark.parametrize("logged", [False, True])
def test_it_is_asked_again_until_runs_show_their_own_only(logged: bool, tmp_path: Path) -> None:
    request = Request("format:parquet", out=tmp_path)
    log = log_of(request, seen=True)
    assert log is not None
    log.touch()
    raised = [
        DisturbedError("killed", in_sight=True, killed=True),
        DisturbedError("unseen", in_sight=False),
    ]
    if not logged:
        raised.insert(0, DisturbedError("beside", in_sight=True))
    asked: list[tuple[bool, bool]] = []

    def judge(request: Request, in_sight: bool) -> Result:
        asked.append((request.real, in_sight))
        if len(asked) <= len(raised):
            raise raised[len(asked) - 1]
        return Result(scenario="it", kind="sink", verdict="valid")

    lanes = _Lanes()
    assert undisturbed(request, lanes, judge).verdict == "valid"  # type: ignore[arg-type]
    assert asked[-3:] == [(False, True), (True, True), (True, False)]
    assert lanes.closed[-2:] == ["killed", "unseen"]
    assert log.exists() == logged
