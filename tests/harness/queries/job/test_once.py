"""Deduplication: which row of a key is kept is free, what the job makes of it is not."""

from __future__ import annotations

from typing import Any

import pytest

from bettong.harness.queries.job.compare import Bag
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
