"""Outputs that look right and are wrong, and the other way round: values, bags, tables, joins."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.queries.job.compare import Bag, OuterBag, Table
from bettong.harness.queries.job.envelope import columns_of, differ, envelope, in_two_runs
from bettong.harness.queries.job.judge import Judged
from bettong.harness.queries.job.rules import (
    Difference,
    Expected,
    bag_difference,
    latest_of_each,
    table_difference,
)
from bettong.harness.queries.run.observation import QueryRun

Row = dict[str, Any]


def kinds(found: Difference) -> list[str]:
    return sorted(a.kind for a in found.anomalies)


def of_clean_runs(compare: Any, *runs: list[Row], left: tuple[str, ...] = ()) -> Judged:
    """What later runs are held against where clean runs had these rows."""
    names = [f"run {number}" for number in range(len(runs))]
    clean = envelope(compare, dict(zip(names, runs, strict=True)))
    return Judged(compare, clean.expected, None, tuple(columns_of(compare, runs[0])), left)


# --- values


@pytest.mark.parametrize(
    "other",
    [
        "2024-01-01T00:00:30.000Z",
        "2024-01-01T00:00:30.000000+00:00",
        "2024-01-01 00:00:30",
        "2024-01-01T01:00:30+01:00",
    ],
)
def test_a_time_is_the_same_however_it_is_written(other: str) -> None:
    """The batch form gives Python's times, what a job has written as JSON has Spark's."""
    expected = Expected([{"at": "2024-01-01T00:00:30", "window": {"start": "2024-01-01T00:00:30"}}])
    seen = [{"at": other, "window": {"start": other}}]
    assert kinds(bag_difference(expected, seen, ["at", "window"])) == []
    late = [{"at": other.replace(":30", ":31"), "window": {"start": other}}]
    assert kinds(bag_difference(expected, late, ["at", "window"])) == ["Corrupt"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("20240101100", "20240101200"),
        ("2024-01-01T00:00:30.123456789Z", "2024-01-01T00:00:30.123456780Z"),
        ([1], "[1]"),
        ({"a": 1}, '{"a": 1}'),
        ([1, 2], [2, 1]),
        (1, "1"),
        (None, "None"),
        (9007199254740993, 9007199254740992.0),
    ],
)
def test_values_that_only_look_alike_are_not_the_same(one: Any, other: Any) -> None:
    expected = Expected([{"id": "x", "value": one}])
    found = bag_difference(expected, [{"id": "x", "value": other}], ["id", "value"])
    assert kinds(found) == ["Corrupt"]


@pytest.mark.parametrize(("one", "other"), [([1], [1.0]), ({"a": [2]}, {"a": [2.0]}), (-0.0, 0)])
def test_numbers_compare_by_value_inside_of_others_too(one: Any, other: Any) -> None:
    found = bag_difference(Expected([{"value": one}]), [{"value": other}], ["value"])
    assert kinds(found) == []


def test_the_tolerance_is_for_numbers_inside_of_others_too() -> None:
    expected = Expected([{"id": "x", "mean": {"of": [0.3, 1.0]}}])
    for value, wrong in ((0.1 + 0.2, []), (0.31, ["Corrupt"])):
        seen = [{"id": "x", "mean": {"of": [value, 1.0]}}]
        assert kinds(bag_difference(expected, seen, ["id", "mean"], 1e-6)) == wrong


def test_the_tolerance_is_not_for_counts() -> None:
    """It is for floating-point numbers; a count that is one more is another count."""
    expected = Expected([{"user": "a", "n": 1, "mean": 2.5}])
    seen = [{"user": "a", "n": 2, "mean": 2.0}]
    assert kinds(table_difference(expected, seen, ["user"], 1.0)) == ["Corrupt"]
    assert kinds(bag_difference(expected, seen, ["user", "n", "mean"], 1.0)) == ["Loss", "Phantom"]
    near = [{"user": "a", "n": 1, "mean": 2}]
    assert kinds(bag_difference(expected, near, ["user", "n", "mean"], 1.0)) == []


# --- bags


def test_a_row_that_is_there_twice_within_the_tolerance_is_a_duplicate() -> None:
    expected = Expected([{"user": "a", "sum": 0.3}])
    seen = [{"user": "a", "sum": 0.3}, {"user": "a", "sum": 0.1 + 0.2}]
    assert kinds(bag_difference(expected, seen, ["user", "sum"], 1e-6)) == ["Duplicate"]


def test_each_row_that_is_lost_is_told_also_where_one_stands_in_its_place() -> None:
    row = {"user": "a", "n": 1}
    found = bag_difference(Expected([row, row]), [{"user": "a", "n": 2}], ["user", "n"])
    assert kinds(found) == ["Corrupt", "Loss"]


@pytest.mark.parametrize("compare", [Bag(), OuterBag("ads"), Table("ad")])
def test_a_column_that_was_null_in_all_clean_runs_is_judged(compare: Any) -> None:
    """Spark leaves nulls out of JSON: no row of a clean run has the column."""
    judged = of_clean_runs(compare, [{"ad": 1}, {"ad": 2}], left=("ad",))
    assert kinds(judged.difference([{"ad": 1}, {"ad": 2, "click": None}])) == []
    assert kinds(judged.difference([{"ad": 1}, {"ad": 2, "click": 7}])) == ["Corrupt"]


# --- tables


def test_a_cell_that_is_null_in_one_row_is_judged() -> None:
    rows = [{"user": "a", "n": 1}, {"user": "b"}]
    assert kinds(table_difference(Expected(rows), rows, ["user"])) == []
    filled = [rows[0], {"user": "b", "n": 5}]
    assert kinds(table_difference(Expected(rows), filled, ["user"])) == ["Corrupt"]
    assert differ(Table("user"), rows, filled)


def test_of_two_rows_of_a_key_both_are_judged() -> None:
    """A wrong value beside the right one is not just there twice."""
    right, wrong = {"user": "a", "n": 1}, {"user": "a", "n": 9}
    expected = Expected([right])
    assert kinds(table_difference(expected, [right, right], ["user"])) == ["Duplicate"]
    for seen in ([right, wrong], [wrong, right]):
        assert kinds(table_difference(expected, seen, ["user"])) == ["Corrupt", "Duplicate"]


def test_what_lies_between_may_have_free_columns_and_a_tolerance() -> None:
    low, high = {"user": "a", "sum": 0.3, "at": "x"}, {"user": "a", "sum": 5.0, "at": "y"}
    may = Expected([low], [high], free=frozenset({"at"}), between=True)
    for value, wrong in ((2.0, []), (0.3 - 1e-9, []), (0.2, ["Corrupt"])):
        seen = [{"user": "a", "sum": value, "at": "z"}]
        assert kinds(table_difference(may, seen, ["user"], 1e-6)) == wrong


def test_a_corrupt_row_names_no_column_that_is_free() -> None:
    expected = Expected([{"user": "a", "n": 1, "at": 1}], free=frozenset({"at"}))
    (found,) = table_difference(expected, [{"user": "a", "n": 2, "at": 2}], ["user"]).anomalies
    assert (found.expected, found.seen) == ({"n": 1}, {"n": 2})


# --- update mode


def test_the_last_update_is_the_greatest_number_also_where_it_is_written_as_text() -> None:
    updates = [{"user": "a", "n": n, "batch": str(n)} for n in (9, 10)]
    judged = Judged(Table("user", latest="batch"), Expected([{"user": "a", "n": 10}]))
    assert kinds(judged.difference(updates)) == []
    assert kinds(judged.difference([*updates, {"user": "a", "n": 3, "batch": 11}])) == ["Corrupt"]


def test_an_update_whose_order_is_no_number_is_before_those_that_have_one() -> None:
    rows = [{"k": "a", "n": n, "at": at} for n, at in enumerate(("nan", 5, "NaN", None))]
    assert latest_of_each(rows, ["k"], "at") == [rows[1]]
    assert len(latest_of_each([*rows, {**rows[1], "at": "Infinity"}], ["k"], "at")) == 1


def test_last_updates_that_are_equal_in_all_that_is_judged_count_once() -> None:
    """A replayed batch updates a key to what it was, at another time."""
    compare = Table("user", latest="batch", free="written", tolerance=1e-6)
    updates = [
        {"user": "a", "sum": 0.3, "batch": 2, "written": "12:00"},
        {"user": "a", "sum": 0.1 + 0.2, "batch": 2, "written": "12:01"},
    ]
    judged = of_clean_runs(compare, updates[:1])
    assert kinds(judged.difference(updates)) == []
    other = [*updates, {"user": "a", "sum": 0.4, "batch": 2, "written": "12:01"}]
    assert kinds(judged.difference(other)) == ["Corrupt", "Duplicate"]


# --- outer joins


def test_two_rows_of_one_side_that_look_alike_are_judged_by_what_is_expected() -> None:
    """Two ads of a kind, of which one has a click."""
    rows = [{"kind": "k", "click": 7}, {"kind": "k", "click": None}]
    judged = of_clean_runs(OuterBag("ads"), rows, left=("kind",))
    assert kinds(judged.difference(rows)) == []
    assert kinds(judged.difference([*rows, rows[1]])) == ["Duplicate"]


def test_a_free_column_is_no_match() -> None:
    rows = [{"ad": 1, "click": None, "written": 5}]
    expected = Expected([], [*rows, {"ad": 1, "click": 7}], free=frozenset({"written"}))
    compare = OuterBag("ads", free="written")
    judged = Judged(compare, expected, None, ("ad", "click"), ("ad",))
    both = [*rows, {"ad": 1, "click": 7, "written": 6}]
    assert kinds(judged.difference(both)) == ["Phantom"]


def test_rows_that_look_alike_in_what_is_shown_of_them_are_not_the_same() -> None:
    long = "x" * 200
    right = [{"ad": long + "1", "click": 7}, {"ad": long + "1", "click": None}]
    judged = of_clean_runs(OuterBag("ads"), right, left=("ad",))
    expected = Expected(right, [{"ad": long + "2", "click": n} for n in (7, None)])
    judged = Judged(OuterBag("ads"), expected, None, ("ad", "click"), ("ad",))
    assert kinds(judged.difference(right)) == []
    assert kinds(judged.difference([*right, *expected.optional])) == ["Phantom"]


@given(st.permutations([1.0, 1.4, 1.8, 2.2]), st.permutations([1.4, 1.8, 2.2, 2.6]))
def test_rows_within_the_tolerance_are_matched_as_well_as_they_can_be(
    wanted: list[float], found: list[float]
) -> None:
    expected = Expected([{"sum": value} for value in wanted])
    seen = [{"sum": value} for value in found]
    assert kinds(bag_difference(expected, seen, ["sum"], 0.5)) == []
    assert kinds(bag_difference(expected, seen, ["sum"], 0.3)) != []


def test_a_key_that_one_clean_run_has_twice_is_reported() -> None:
    a = {"user": "a", "n": 1}
    assert "user=a" in differ(Table("user"), [a], [a, a])
    assert not differ(Table("user", latest="n"), [a], [a, a])


@pytest.mark.parametrize(
    ("compare", "other", "said"),
    [
        (Bag(), [{"id": 1, "k": "y"}], "declare such a column in free="),
        (Bag("id"), [{"id": 1, "k": "x"}, {"id": 2, "k": "y"}], "have columns of the input do"),
        (Table("k"), [{"id": 1, "k": "y"}], "have columns of the input do"),
        (Table("id"), [{"id": 1, "k": "y"}], "declare such a column in free="),
    ],
)
def test_where_two_runs_alike_differ_it_is_said_what_can_be_done(
    compare: Any, other: list[Row], said: str
) -> None:
    """What is a key, and how many rows there are, no free= helps."""
    assert said in in_two_runs(differ(compare, [{"id": 1, "k": "x"}], other))


# --- a query that does not go on


@pytest.mark.parametrize(
    ("seen", "may_stand", "found"),
    [
        ([{"id": "a", "n": 1}], False, {"Stuck"}),
        ([{"id": "a", "n": 1}], True, set()),
        ([{"id": "a", "n": 1}, {"id": "a", "n": 1}], True, {"Duplicate"}),
        ([{"id": "c", "n": 7}, {"id": "a", "n": 1}], True, {"Phantom"}),
    ],
)
def test_what_stands_still_and_may_has_put_out_nothing_twice(
    seen: list[Row], may_stand: bool, found: set[str]
) -> None:
    judged = of_clean_runs(Bag(), [{"id": "a", "n": 1}, {"id": "b", "n": 2}])
    run = QueryRun(rows=seen, drained=False, errors=["the key has expired"])
    assert judged.run(run, may_stand=may_stand).kinds == found
    silent = QueryRun(rows=seen[:1], drained=False)
    assert "Stuck" in judged.run(silent, may_stand=may_stand).kinds
