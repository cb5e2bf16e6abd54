"""When the output of a stream is right: each rule with a comparison that it must refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.queries.job.compare import Bag, OuterBag, Table, expect_columns
from bettong.harness.queries.job.envelope import differ, envelope
from bettong.harness.queries.job.facts import seconds
from bettong.harness.queries.job.judge import Judged, bag_of
from bettong.harness.queries.job.rules import (
    Expected,
    bag_difference,
    between,
    both_matched_and_not,
    late,
    latest_of_each,
    table_difference,
)
from bettong.lineage.errors import UsageError

Row = dict[str, Any]


def kinds(found: Any) -> list[str]:
    anomalies = found if isinstance(found, list) else found.anomalies
    return sorted(a.kind for a in anomalies)


def rows(*pairs: tuple[str, int]) -> list[Row]:
    return [{"user": user, "n": n} for user, n in pairs]


# --- bags


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        (rows(("a", 1), ("b", 2)), []),
        (rows(("b", 2), ("a", 1)), []),
        (rows(("a", 1)), ["Loss"]),
        (rows(("a", 1), ("b", 2), ("b", 2)), ["Duplicate"]),
        (rows(("a", 1), ("b", 2), ("c", 3)), ["Phantom"]),
        (rows(("a", 1), ("b", 4)), ["Corrupt"]),
        ([], ["Loss", "Loss"]),
    ],
)
def test_bags_count_rows_and_not_their_order(seen: list[Row], wrong: list[str]) -> None:
    expected = Expected(rows(("a", 1), ("b", 2)))
    assert kinds(bag_difference(expected, seen, ["user", "n"])) == wrong


def test_a_bag_is_no_set() -> None:
    twice = Expected(rows(("a", 1), ("a", 1)))
    assert kinds(bag_difference(twice, rows(("a", 1), ("a", 1)), ["user", "n"])) == []
    assert kinds(bag_difference(twice, rows(("a", 1)), ["user", "n"])) == ["Loss"]


def test_an_optional_row_may_be_there_once_and_no_more() -> None:
    expected = Expected(rows(("a", 1)), rows(("late", 9)))
    columns = ["user", "n"]
    assert kinds(bag_difference(expected, rows(("a", 1)), columns)) == []
    assert kinds(bag_difference(expected, rows(("a", 1), ("late", 9)), columns)) == []
    more = rows(("a", 1), ("late", 9), ("late", 9))
    assert kinds(bag_difference(expected, more, columns)) == ["Duplicate"]


def test_floats_within_the_tolerance_are_equal_and_beyond_it_are_not() -> None:
    expected = Expected([{"user": "a", "sum": 0.3}])
    for value, wrong in ((0.1 + 0.2, []), (0.31, ["Corrupt"])):
        found = bag_difference(expected, [{"user": "a", "sum": value}], ["user", "sum"], 1e-6)
        assert kinds(found) == wrong


def test_a_free_column_is_not_judged_and_the_others_are() -> None:
    expected = Expected(rows(("a", 1)), free=frozenset({"n"}))
    assert kinds(bag_difference(expected, rows(("a", 7)), ["user", "n"])) == []
    assert kinds(bag_difference(expected, rows(("b", 1)), ["user", "n"])) == ["Loss", "Phantom"]


def test_structs_and_numbers_of_other_types_compare_by_value() -> None:
    expected = Expected([{"window": {"start": "x", "end": "y"}, "n": 1}])
    seen = [{"window": {"end": "y", "start": "x"}, "n": 1.0}]
    assert kinds(bag_difference(expected, seen, ["window", "n"])) == []


_PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=8)


@given(_PAIRS, _PAIRS)
def test_a_bag_is_right_if_and_only_if_its_counts_are(
    wanted: list[tuple[str, int]], seen: list[tuple[str, int]]
) -> None:
    found = bag_difference(Expected(rows(*wanted)), rows(*seen), ["user", "n"])
    assert (not found.anomalies) == (Counter(wanted) == Counter(seen))


# --- tables and update mode


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        (rows(("a", 1), ("b", 2)), []),
        (rows(("a", 1)), ["Loss"]),
        (rows(("a", 1), ("b", 2), ("b", 2)), ["Duplicate"]),
        (rows(("a", 1), ("b", 4)), ["Corrupt"]),
        (rows(("a", 1), ("b", 2), ("c", 1)), ["Phantom"]),
    ],
)
def test_tables_have_one_right_row_a_key(seen: list[Row], wrong: list[str]) -> None:
    assert kinds(table_difference(Expected(rows(("a", 1), ("b", 2))), seen, ["user"])) == wrong


def test_updates_are_folded_and_their_number_is_not_judged() -> None:
    updates = [
        {"user": "a", "n": 1, "batch": 0},
        {"user": "a", "n": 3, "batch": 2},
        {"user": "a", "n": 2, "batch": 1},
        {"user": "a", "n": 3, "batch": 2},
    ]
    judged = Judged(Table("user", latest="batch"), Expected([{"user": "a", "n": 3}]))
    assert kinds(judged.difference(updates)) == []
    assert kinds(judged.difference(updates[:1])) == ["Corrupt"]


def test_two_different_last_updates_of_a_key_are_a_duplicate() -> None:
    updates = [{"user": "a", "n": 3, "batch": 2}, {"user": "a", "n": 4, "batch": 2}]
    assert len(latest_of_each(updates, ["user"], "batch")) == 2
    judged = Judged(Table("user", latest="batch"), Expected([{"user": "a", "n": 3}]))
    assert "Duplicate" in kinds(judged.difference(updates))


@pytest.mark.parametrize(
    ("compare", "said"),
    [
        (Bag("user", "nn"), "did you mean n"),
        (Table(key="usr"), "did you mean user"),
        (Table(key="user", latest="batch"), "latest= .*leave it out .*'batch' is not known"),
    ],
)
def test_a_column_that_no_row_has_is_not_equal_in_all_of_them(compare: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        expect_columns("Mine", compare, rows(("a", 1)))
    expect_columns("Mine", Bag("user", "n"), rows(("a", 1)))


# --- outer joins


def test_a_row_has_its_matches_or_one_row_without_never_both() -> None:
    match, alone = {"ad": 1, "click": 7}, {"ad": 1, "click": None}
    assert both_matched_and_not([match, {**match, "click": 8}], ["ad"]) == []
    assert kinds(both_matched_and_not([match, alone], ["ad"])) == ["Phantom"]
    judged = Judged(OuterBag("ads"), Expected([match]), None, ("ad", "click"), ("ad",))
    assert kinds(judged.difference([match])) == []
    assert "Phantom" in kinds(judged.difference([match, alone]))
    assert kinds(judged.difference([alone])) == ["Corrupt"]
    lonely = Judged(OuterBag("ads"), Expected([alone]), None, ("ad", "click"), ("ad",))
    assert kinds(lonely.difference([alone, alone])) == ["Duplicate"]


# --- rows that may count


def _at(*seconds_: int) -> list[Row]:
    return [{"at": f"2024-01-01T00:00:{s:02d}Z"} for s in seconds_]


def test_a_row_is_late_by_the_watermark_of_earlier_steps_only() -> None:
    steps = {"a": [_at(30, 5), _at(20), _at(21, 50), _at(30)]}
    assert late(steps, {"a": "at"}, {"a": 10}) == {"a": {(1, 0), (3, 0)}}


def test_the_watermark_of_two_sources_is_the_lower_one() -> None:
    steps = {"a": [_at(50), _at(20)], "b": [_at(10), _at(1)]}
    assert late(steps, {"a": "at", "b": "at"}, {"a": 0, "b": 0}) == {"a": set(), "b": {(1, 0)}}


def test_a_source_that_has_sent_nothing_holds_the_watermark_back() -> None:
    steps: dict[str, list[list[Row]]] = {"a": [_at(50), _at(20)], "b": [[], []]}
    assert late(steps, {"a": "at", "b": "at"}, {"a": 0, "b": 0})["a"] == set()


def test_a_group_with_rows_that_may_count_lies_between() -> None:
    low, high = {"user": "a", "n": 2}, {"user": "a", "n": 5}
    assert all(between(low, high, {"user": "a", "n": n}) for n in (2, 3, 5))
    assert not between(low, high, {"user": "a", "n": 6})
    assert not between(low, high, {"user": "b", "n": 3})
    may = Expected([low], [high], between=True)
    assert kinds(table_difference(may, [{"user": "a", "n": 3}], ["user"])) == []
    assert kinds(table_difference(may, [{"user": "a", "n": 6}], ["user"])) == ["Corrupt"]


def test_batch_runs_with_and_without_the_closing_row_say_what_must_and_may_be_there() -> None:
    outputs = {"all": rows(("a", 1), ("far", 1)), "without": rows(("a", 1))}
    expected = bag_of(outputs, ["user", "n"])
    assert (list(expected.must), list(expected.optional)) == (rows(("a", 1)), rows(("far", 1)))


# --- the envelope


def test_runs_that_agree_are_judged_whole() -> None:
    found = envelope(Bag(), {"plain": rows(("a", 1)), "merged": rows(("a", 1))})
    assert (found.varying, found.blind, found.expected.free) == ((), "", frozenset())


def test_a_column_that_varies_is_free_and_reported_and_the_others_are_judged() -> None:
    found = envelope(Bag(), {"plain": rows(("a", 1), ("b", 2)), "merged": rows(("a", 1), ("b", 3))})
    assert found.expected.free == {"n"}
    assert found.varying == ("the column n is another with merged",)
    assert kinds(bag_difference(found.expected, rows(("a", 8), ("b", 9)), ["user", "n"])) == []
    assert kinds(bag_difference(found.expected, rows(("a", 8)), ["user", "n"])) == ["Loss"]


def test_where_every_column_varies_nothing_can_be_judged() -> None:
    found = envelope(Bag(), {"plain": rows(("a", 1)), "merged": rows(("b", 2))})
    assert found.blind == "every column is another with merged: nothing of a row can be judged"


def test_what_makes_every_row_vary_is_named() -> None:
    a, b, other = rows(("a", 1)), rows(("b", 2)), rows(("c", 3), ("d", 4))
    found = envelope(Bag(), {"plain": [*a, *b], "merged": [*a, *b, *b], "restart": other * 2})
    assert found.blind == "no row is the same with restart: nothing can be judged"
    table = envelope(Table("user"), {"plain": a, "merged": a, "restart": rows(("a", 2))})
    assert table.blind.startswith("every value is another, or not there, with restart:")


@pytest.mark.parametrize("chance", [True, False])
def test_many_columns_that_vary_are_no_reason_to_stand_still(chance: bool) -> None:
    """Of thirty columns, all are of chance, or stand in rows in another order each."""
    names, count = [f"c{n}" for n in range(30)], 20

    def run(number: int) -> list[Row]:
        def value(row: int, place: int) -> Any:
            return [row, place, number] if chance else (row + place * number) % count

        return [{name: value(row, n) for n, name in enumerate(names)} for row in range(count)]

    found = envelope(Bag(), {"plain": run(1), "other": run(2)})
    assert found.expected.open
    assert "no row is the same" in found.blind


@given(st.data())
def test_the_fewest_columns_are_freed(data: st.DataObject) -> None:
    names = ["a", "b", "c", "d"]
    cells = st.lists(st.integers(0, 2), min_size=4, max_size=4)
    plain = data.draw(st.lists(cells, min_size=1, max_size=3))
    other = data.draw(st.lists(cells, min_size=len(plain), max_size=len(plain)))
    runs = {"plain": plain, "other": other}
    made = {run: [dict(zip(names, row, strict=True)) for row in runs[run]] for run in runs}
    found = envelope(Bag(), made)

    def alike(kept: Sequence[int]) -> bool:
        one, another = (sorted([row[n] for n in kept] for row in rows) for rows in runs.values())
        return one == another

    fewest = min(n for n in range(5) if any(alike(kept) for kept in combinations(range(4), 4 - n)))
    assert len(found.expected.free) == fewest
    assert alike([n for n, name in enumerate(names) if name not in found.expected.free])


def test_rows_that_vary_in_number_are_reported_and_those_of_every_run_are_judged() -> None:
    found = envelope(Bag(), {"plain": rows(("a", 1), ("a", 2)), "merged": rows(("a", 2))})
    assert "2 with plain, 1 with merged" in found.varying[0]
    judged = Judged(Bag(), found.expected, None, ("user", "n"))
    assert kinds(judged.difference(rows(("a", 1)))) == ["Loss"]
    assert kinds(judged.difference(rows(("a", 2), ("a", 1)))) == []
    assert judged.difference(rows(("a", 2), ("a", 3))).unjudged == ["user=a, n=3"]


@pytest.mark.parametrize(
    ("merged", "told"),
    [(rows(("a", 1), ("b", 2), ("c", 3)), True), (rows(("a", 1), ("c", 3), ("d", 4)), False)],
)
def test_where_rows_are_left_out_of_a_run_it_is_told_what_to_look_at(
    merged: list[Row], told: bool
) -> None:
    found = envelope(Bag(), {"plain": rows(("a", 1), ("b", 2)), "merged": merged})
    advice = "all that is there with plain is there with merged, and more is: look whether a batch"
    assert (advice in found.varying[0]) == told


def test_of_a_table_single_cells_are_freed() -> None:
    a, b = {"user": "a", "n": 1, "first": "x"}, {"user": "b", "n": 2, "first": "y"}
    found = envelope(Table("user"), {"plain": [a, b], "merged": [{**a, "first": "z"}, b]})
    assert found.varying == ("the column first of 1 key(s) is another with merged",)
    judged = Judged(Table("user"), found.expected)
    assert kinds(judged.difference([{**a, "first": "?"}, b])) == []
    assert kinds(judged.difference([a, {**b, "first": "?"}])) == ["Corrupt"]
    assert kinds(judged.difference([{**a, "n": 5}, b])) == ["Corrupt"]


@pytest.mark.parametrize("compare", [Bag(), Table("user")])
@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        (rows(("a", 3), ("b", 1), ("c", 2)), []),
        (rows(("a", 2), ("b", 2), ("c", 3)), ["Duplicate", "Loss"]),
        (rows(("a", 1), ("b", 2), ("c", 4)), ["Loss", "Phantom"]),
        (rows(("a", 1), ("b", 2)), ["Loss"]),
    ],
)
def test_values_that_every_run_deals_to_its_rows_are_there_once(
    compare: Any, seen: list[Row], wrong: list[str]
) -> None:
    """Which row has which number is free; a number that is there twice is another row's."""
    a, b = rows(("a", 1), ("b", 2), ("c", 3)), rows(("a", 2), ("b", 3), ("c", 1))
    found = envelope(compare, {"plain": a, "partitions": b})
    assert found.varying
    assert kinds(Judged(compare, found.expected, None, ("user", "n")).difference(seen)) == wrong


@pytest.mark.parametrize(
    ("plain", "other"), [([1, 2, 3], [2, 3, 4]), ([1, 1, 2], [2, 1, 1]), ([1.5, 2, 3], [3, 2, 1.5])]
)
def test_values_that_are_not_dealt_are_free(plain: list[float], other: list[float]) -> None:
    """Others than before, one for several rows, sums that depend on their order."""

    def output(values: list[float]) -> list[Row]:
        return [{"n": n, "user": user} for n, user in zip(values, "abc", strict=True)]

    found = envelope(Bag(), {"plain": output(plain), "partitions": output(other)})
    assert found.expected.free == {"n"}
    assert kinds(bag_difference(found.expected, output([9, 9, 9]), ["n", "user"])) == []


def test_two_runs_of_the_same_variant_that_differ_are_named_unless_declared() -> None:
    assert differ(Bag(), rows(("a", 1)), rows(("a", 2)))
    assert not differ(Bag("user"), rows(("a", 1)), rows(("a", 2)))


def test_delays_are_read_as_plans_write_them() -> None:
    assert [seconds(x) for x in ("10 minutes", "1 hours 30 minutes", "0 seconds")] == [600, 5400, 0]
