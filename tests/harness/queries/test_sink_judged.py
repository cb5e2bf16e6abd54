"""What a run of a sink is judged by: all that a reader saw, also where a fault or a row that the
target refuses has changed every row of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.queries.faults.operations import LATER, ODD
from bettong.harness.queries.judge import judge_run
from bettong.harness.queries.run.job import plain
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.executor import SinkExecutor
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.sense import expect_keys, expect_values
from bettong.harness.queries.sink.rows import Input
from bettong.lineage.errors import UsageError

CRASH = "crash(driver, before batch=1/commits)"
SOURCE = Input()
GIVEN = ODD.expected(SOURCE)
ROWS = GIVEN.all()
ODD_ROW = 45


class Runs:
    """Gives the runs that it was made with, one after the other."""

    def __init__(self, *runs: QueryRun) -> None:
        self.left = list(runs)

    def run(self, faults: Sequence[object], **how: object) -> QueryRun:
        return self.left.pop(0)


@pytest.mark.parametrize("lost", ["key", "seq", "value"])
def test_a_column_that_a_fault_takes_from_every_row_is_missed(lost: str) -> None:
    rows = SOURCE.all()
    without = [{name: x for name, x in row.items() if name != lost} for row in rows]
    runner = Runs(QueryRun(rows=rows, drained=True), QueryRun(rows=without, drained=True))
    executor = SinkExecutor(runner, SOURCE, False, Why(2, SOURCE.batches, 1))  # type: ignore[arg-type]
    assert executor.run().outcome == "good"
    found = executor.run(frozenset({CRASH}))
    assert (found.outcome, {a.kind for a in found.anomalies}) == ("violation", {"Corrupt"})


def test_a_column_that_no_run_shows_is_not_missed() -> None:
    rows = [{"id": row["id"]} for row in SOURCE.all()]
    runner = Runs(*(QueryRun(rows=rows, drained=True) for _ in range(2)))
    executor = SinkExecutor(runner, SOURCE, False, Why(2, SOURCE.batches, 1))  # type: ignore[arg-type]
    executor.run()
    assert executor.run(frozenset({CRASH})).outcome == "good"


def with_odd_row(rows: list[dict[str, Any]], *, drained: bool) -> set[str]:
    """The kinds of anomalies of a run in which a row is one that many a target refuses."""
    run = QueryRun(rows=rows, drained=drained, errors=[] if drained else ["it refuses the row"])
    return set(judge_run(run, GIVEN, ordered=False, stands_from=ODD.stands_from).kinds)


def test_a_row_may_be_refused_or_taken_as_it_can_be() -> None:
    cut = [{**row, "key": row["key"][:2]} for row in ROWS]
    assert with_odd_row(ROWS, drained=True) == set()
    assert with_odd_row(cut, drained=True) == set()
    assert with_odd_row(ROWS[:40], drained=False) == set()
    assert with_odd_row(ROWS[:ODD_ROW], drained=False) == set()


def test_nothing_goes_on_without_the_row() -> None:
    assert with_odd_row([*ROWS[:ODD_ROW], *ROWS[ODD_ROW + 1 :]], drained=True) == {"Loss"}


@pytest.mark.parametrize("drained", [True, False])
def test_other_rows_are_not_written_twice_for_it(drained: bool) -> None:
    """A batch that fails as a whole is written row by row: what had been written is there twice."""
    rows = ROWS if drained else ROWS[:ODD_ROW]
    assert with_odd_row([*rows, ROWS[40]], drained=drained) == {"Duplicate"}


def test_other_rows_are_not_changed_for_it() -> None:
    changed = [{**row, "value": -1} if n == 44 else row for n, row in enumerate(ROWS)]
    assert with_odd_row(changed, drained=True) == {"Corrupt"}


def test_a_query_that_stands_still_before_it_has_come_to_the_row_has_lost_others() -> None:
    assert with_odd_row([], drained=False) == {"Loss"}
    assert with_odd_row(ROWS[1:40], drained=False) == {"Loss"}


@pytest.mark.parametrize(
    ("written", "errors", "shown"),
    [
        (40, ["the key has expired"], set()),  # batch 1 was written before the replay
        (20, ["the key has expired"], set()),
        (19, ["the key has expired"], {"Loss"}),
        (40, [], {"Loss"}),
    ],
)
def test_a_query_may_stand_still_and_say_why_where_its_replay_comes_too_late(
    written: int, errors: list[str], shown: set[str]
) -> None:
    rows = SOURCE.all()
    late = QueryRun(rows=rows[:written], drained=False, errors=errors)
    runner = Runs(QueryRun(rows=rows, drained=True), late)
    executor = SinkExecutor(runner, SOURCE, False, Why(2, SOURCE.batches, 1))  # type: ignore[arg-type]
    executor.run()
    assert {a.kind for a in executor.run(frozenset({LATER.id})).anomalies} == shown


@pytest.mark.parametrize(
    "value", [7, 7.0, "7", b"7", Decimal(7), "7.0", bytearray(b"7"), memoryview(b" 7")]
)
def test_a_number_counts_however_it_is_written(value: object) -> None:
    assert plain({"id": "m/000000", "value": value}) == {"id": "m/000000", "value": 7}


@pytest.mark.parametrize("value", [7.5, Decimal("7.5")])
def test_a_number_is_not_cut_to_the_right_one(value: object) -> None:
    assert plain({"id": "m/000000", "value": value})["value"] == 7.5


@given(st.integers(-(10**30), 10**30))
def test_a_number_of_any_size_is_itself(number: int) -> None:
    for value in (number, str(number), Decimal(number)):
        assert plain({"id": "m/000000", "value": value})["value"] == number


@pytest.mark.parametrize("value", [None, float("nan")])
def test_no_number_is_none(value: object) -> None:
    assert plain({"id": "m/000000", "value": value}) == {"id": "m/000000", "value": None}


@pytest.mark.parametrize("value", ["", "v=7", b"7;8", float("inf"), [7]])
def test_what_is_no_number_is_said_in_words(value: object) -> None:
    with pytest.raises(ValueError, match=r"read\(\) returned .* as value, which is no number: re"):
        plain({"id": "m/000000", "value": value})


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_text_counts_in_bytes_too(kind: Callable[[bytes], object]) -> None:
    row = {"id": kind(b"m/000000"), "key": kind(b"k0")}
    assert plain(row) == {"id": "m/000000", "key": "k0"}


@pytest.mark.parametrize("lost", ["key", "seq", "value"])
def test_a_column_that_is_empty_in_every_row_is_no_pass(lost: str) -> None:
    """Read under a wrong name, or never written: without a fault nothing of it is there."""
    rows = [plain({**row, lost: None}) for row in SOURCE.all()]
    with pytest.raises(UsageError, match=rf"S: read\(\) returns None as `{lost}` in every row: "):
        expect_values("S", rows)
    expect_values("S", [plain(SOURCE.all()[0]), *rows])
    expect_values("S", [plain({"id": row["id"]}) for row in rows])
    assert judge_run(QueryRun(rows=rows, drained=True), SOURCE, False).kinds == {"Corrupt"}


def test_an_order_of_rows_without_a_key_is_none() -> None:
    with pytest.raises(UsageError, match=r"S: ordered = True, but read\(\) returns .* `key`"):
        expect_keys("S", [{"id": "m/000000"}])
    expect_keys("S", [{"id": "m/000000"}, {"id": "m/000001", "key": "k1"}])
