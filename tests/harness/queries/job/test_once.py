"""Deduplication: which row of a key is kept is free, what the job makes of it is not."""

from __future__ import annotations

from typing import Any

import pytest

from bettong.harness.queries.job.compare import Bag, Table
from bettong.harness.queries.job.judge import Judged
from bettong.harness.queries.job.once import Once, one_of_each_key
from bettong.harness.queries.job.rules import Difference, Expected

Row = dict[str, Any]
ORDERS = [{"id": "x", "amount": 1}, {"id": "x", "amount": 2}, {"id": "y", "amount": 3}]
Y = {"id": "y", "amount": 3, "double": 6}


def kinds(found: Difference) -> list[str]:
    return sorted(a.kind for a in found.anomalies)


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        ([{"id": "x", "at": 1}, {"id": "y", "at": 3}], []),
        ([{"id": "x", "at": 2}, {"id": "y", "at": 3}], []),
        ([{"id": "x", "at": 1}, {"id": "x", "at": 2}, {"id": "y", "at": 3}], ["Duplicate"]),
        ([{"id": "x", "at": 1}], ["Loss"]),
        ([{"id": "x", "at": 9}, {"id": "y", "at": 3}], ["Corrupt"]),
        ([{"id": "x", "at": 1}, {"id": "y", "at": 3}, {"id": "z", "at": 1}], ["Phantom"]),
    ],
)
def test_one_of_the_rows_of_each_key_is_kept(seen: list[Row], wrong: list[str]) -> None:
    offered = [{"id": "x", "at": 1}, {"id": "x", "at": 2}, {"id": "y", "at": 3}]
    judged = Judged(Bag(), Expected(()), Once(("id",), offered))
    assert kinds(judged.difference(seen)) == wrong


def test_a_row_that_has_lost_a_column_is_none_of_the_rows_of_its_key() -> None:
    once = Once(("id",), [{"id": "x", "at": 1}, {"id": "x", "at": 2}, {"id": "y", "at": 3}])
    assert kinds(once.difference([{"id": "x"}, {"id": "y"}])) == []
    assert kinds(once.difference([{"id": "x", "at": 1}, {"id": "y"}])) == ["Corrupt"]


def test_a_time_may_be_written_in_several_ways_and_a_free_column_be_anything() -> None:
    given = [{"id": "x", "at": "2024-01-01T00:00:00.000000Z"}]
    seen = [{"id": "x", "at": "2024-01-01T00:00:00"}], [{"id": "x", "at": "2024-01-01T00:00:01"}]
    once = Once(("id",), given)
    assert [kinds(once.difference(rows)) for rows in seen] == [[], ["Corrupt"]]
    free = Once(("id",), given, free=frozenset({"at"}))
    assert kinds(free.difference(seen[1])) == []


def doubled(amount: int, double: int) -> Row:
    return {"id": "x", "amount": amount, "double": double}


def test_a_column_of_the_jobs_own_that_is_made_otherwise_is_corrupt() -> None:
    once = Once(("id",), ORDERS).held_against([[doubled(1, 2), Y]], ["double"])
    assert kinds(once.difference([doubled(1, 2), Y])) == []
    found = once.difference([doubled(1, 3), Y])
    assert kinds(found) == ["Corrupt"]
    assert (found.anomalies[0].expected, found.anomalies[0].seen) == ({"double": 2}, {"double": 3})
    assert found.anomalies[0].note == "double made otherwise than without a fault"


def test_of_a_row_that_no_clean_run_kept_the_transform_says_what_the_job_makes() -> None:
    once = Once(("id",), ORDERS).held_against([[doubled(1, 2), Y]], ["double"])
    unknown = once.difference([doubled(2, 4), Y])
    assert (kinds(unknown), unknown.unjudged) == ([], ["id=x, amount=2, double=4"])
    once = once.asked([doubled(1, 2), doubled(2, 4), Y])
    assert once.difference([doubled(2, 4), Y]) == Difference()
    assert kinds(once.difference([doubled(2, 2), Y])) == ["Corrupt"]


def test_where_rows_of_a_key_cannot_be_told_apart_nothing_is_made_up() -> None:
    """Which of them was kept cannot be seen, and the job may make something else of each."""
    once = Once(("id",), ORDERS).held_against([[{"id": "x", "double": 2}]], ["double"])
    found = once.difference([{"id": "x", "double": 4}, {"id": "y", "double": 6}])
    assert kinds(found) == []
    assert "id=x, double=4" in found.unjudged


def test_a_transform_that_makes_other_rows_than_are_written_says_nothing() -> None:
    once = Once(("id",), ORDERS).held_against([[doubled(1, 2), Y]], ["double"])
    as_text = [{**row, "double": str(row["double"])} for row in (doubled(1, 2), Y)]
    assert once.asked(as_text) is once


def test_what_clean_runs_make_of_the_same_row_in_several_ways_is_free() -> None:
    first, other = {"id": "x", "batch": 0, "n": 1}, {"id": "x", "batch": 1, "n": 1}
    once = Once(("id",), [{"id": "x"}]).held_against([[first], [other]], ["batch", "n"])
    assert once.own == ("n",)
    assert kinds(once.difference([{"id": "x", "batch": 9, "n": 1}])) == []
    assert kinds(once.difference([{"id": "x", "batch": 0, "n": 2}])) == ["Corrupt"]


def test_a_row_that_is_fed_again_may_be_of_the_later_batch() -> None:
    kept = {"id": "y", "amount": 3, "double": 6, "batch": 0}
    once = Once(("id",), ORDERS[2:]).held_against([[kept]], ["double", "batch"]).asked([Y])
    later = {**kept, "batch": 1}
    assert kinds(once.difference([later])) == ["Corrupt"]
    assert kinds(once.fed_again().difference([later])) == []
    assert kinds(once.fed_again().difference([{**later, "double": 7}])) == ["Corrupt"]


def test_each_row_of_a_key_is_in_a_set_of_its_own() -> None:
    assert one_of_each_key([*ORDERS, ORDERS[0]], ["id"]) == [[ORDERS[0], ORDERS[2]], [ORDERS[1]]]


def test_a_value_where_its_row_has_a_null_is_corrupt() -> None:
    """A row that is fed may leave columns out, which are null then."""
    once = Once(("id",), [{"id": "x"}, {"id": "y", "amount": 2}])
    assert kinds(once.difference([{"id": "x"}, {"id": "y", "amount": 2}])) == []
    filled = [{"id": "x", "amount": 99}, {"id": "y", "amount": 2}]
    assert kinds(once.difference(filled)) == ["Corrupt"]


def test_a_column_that_all_rows_have_lost_is_missed() -> None:
    once = Once(("id",), ORDERS).held_against([[ORDERS[0], ORDERS[2]]], [])
    lost = [{"id": "x"}, {"id": "y"}]
    assert kinds(once.difference(lost)) == ["Corrupt", "Corrupt"]
    assert kinds(once.fed_again().difference(lost)) == ["Corrupt", "Corrupt"]


def test_a_column_that_no_clean_run_has_is_none_of_the_rows() -> None:
    once = Once(("id",), ORDERS).held_against([[ORDERS[0], ORDERS[2]]], [])
    assert kinds(once.difference([ORDERS[0], {**ORDERS[2], "error": "x"}])) == ["Corrupt"]
    assert kinds(once.difference([ORDERS[0], {**ORDERS[2], "error": None}])) == []


def test_numbers_that_can_be_read_as_times_are_none() -> None:
    once = Once(("id",), [{"id": "x", "number": "20240101100"}])
    assert kinds(once.difference([{"id": "x", "number": "20240101200"}])) == ["Corrupt"]


def test_a_column_of_the_jobs_own_that_is_null_in_some_rows_is_judged() -> None:
    """Spark leaves nulls out of JSON."""
    x, y = {"id": "x", "amount": 1}, {"id": "y", "amount": 3, "note": "odd"}
    once = Once(("id",), ORDERS).held_against([[x, y]], ["note"])
    assert kinds(once.difference([x, y])) == []
    assert kinds(once.difference([{**x, "note": None}, y])) == []
    assert kinds(once.difference([{**x, "note": "odd"}, y])) == ["Corrupt"]


def test_a_row_with_a_null_is_not_taken_for_another_row_of_its_key() -> None:
    given = [{"id": "x", "amount": 1}, {"id": "x", "amount": None}]
    once = Once(("id",), given).held_against([[doubled(1, 2)]], ["double"])
    found = once.difference([{"id": "x", "double": 2}])
    assert (kinds(found), found.unjudged) == ([], ["id=x, double=2"])


def test_a_number_that_the_job_reads_as_another_is_near_it() -> None:
    """0.1 as a FLOAT is 0.10000000149."""
    given, seen = [{"id": "x", "price": 0.1}], [{"id": "x", "price": 0.10000000149}]
    assert kinds(Once(("id",), given, tolerance=1e-6).difference(seen)) == []
    assert kinds(Once(("id",), given).difference(seen)) == ["Corrupt"]


def test_only_the_columns_that_are_named_are_compared() -> None:
    once = Once(("id",), ORDERS[2:], columns=("id",))
    assert kinds(once.difference([{"id": "y", "amount": 4}])) == []
    assert kinds(Once(("id",), ORDERS[2:]).difference([{"id": "y", "amount": 4}])) == ["Corrupt"]


def test_a_key_whose_rows_may_all_be_dropped_may_be_missing() -> None:
    once = Once(("id",), ORDERS, late=frozenset({("y",)}))
    assert kinds(once.difference([ORDERS[0]])) == []
    assert kinds(once.difference([ORDERS[0], ORDERS[2]])) == []
    assert kinds(once.difference([ORDERS[2]])) == ["Loss"]


def test_rows_further_apart_than_the_delay_may_both_be_kept() -> None:
    once = Once(("id",), ORDERS, most={("x",): 2})
    assert kinds(once.difference(ORDERS)) == []
    assert kinds(once.difference([*ORDERS, ORDERS[0]])) == ["Duplicate"]
    assert kinds(once.difference([*ORDERS, ORDERS[2]])) == ["Duplicate"]


def test_updates_of_a_key_are_folded() -> None:
    once = Once(("id",), ORDERS, free=frozenset({"batch"}))
    judged = Judged(Table("id", latest="batch"), Expected(()), once)
    updates = [{**ORDERS[0], "batch": 0}, {**ORDERS[1], "batch": 1}, {**ORDERS[2], "batch": 0}]
    assert kinds(judged.difference(updates)) == []
    assert kinds(judged.difference([*updates, {**ORDERS[0], "batch": 1}])) == ["Duplicate"]
