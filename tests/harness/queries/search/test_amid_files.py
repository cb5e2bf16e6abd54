"""Where a driver wakes amid its successor's operations on files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.queries.search.amid_files import (
    BEGINS,
    REMOVES,
    SHOWS,
    Operation,
    amid_files,
    amid_replay,
    begun,
)
from bettong.harness.queries.sink.file_steps import STATEMENTS


def batch(number: int, *operations: str) -> list[Operation]:
    """Each is a kind and a file, as in ``open staged``."""
    split = [operation.split() for operation in operations]
    return [(f"batch={number}/{n}.{kind}", kind, on) for n, (kind, on) in enumerate(split, 1)]


BEAT = ("open beat", "rename beat")
STAGED = ("open staged", "open aside", "rename rows", "remove staged")
LOADED = ("open aside", "rename aside", "begin db", "commit db", "remove aside")
ALONE = ("create db", "insert aside", "insert rows", "delete aside")
TWO = ("begin db", "commit db", "begin db", "commit db")


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (("open rows", "write rows"), [("1.open", "2.write")]),
        (("open rows",), [("1.open", "1.open")]),
        (("remove rows",), [("1.remove", "1.remove")]),
        (("write rows",), []),
        (
            (*BEAT, *STAGED),
            [
                (start, until)
                for until in ("6.remove", "2.rename", "5.rename")
                for start in (*("1.open", "2.rename", "3.open", "4.open", "5.rename", "6.remove"),)
            ],
        ),
        (
            LOADED,
            [
                (start, until)
                for until in ("5.remove", "2.rename", "3.begin")
                for start in ("1.open", "2.rename", "3.begin", "5.remove")
            ],
        ),
        (
            ALONE,
            [
                (start, until)
                for until in ("4.delete", "2.insert", "3.insert")
                for start in ("1.create", "2.insert", "3.insert", "4.delete")
            ],
        ),
        (
            TWO,
            [
                ("1.begin", "4.commit"),
                ("3.begin", "4.commit"),
                ("1.begin", "3.begin"),
                ("3.begin", "3.begin"),
            ],
        ),
    ],
    ids=[
        *("one", "at its only one", "what it removes", "nothing begun", "a file aside"),
        *("what is loaded", "statements", "transactions"),
    ],
)
def test_it_stands_at_each_kind_of_file_and_wakes_amid_the_next_batch(
    operations: tuple[str, ...], found: list[tuple[str, str]]
) -> None:
    pairs = amid_files(batch(1, *operations), batch(2, *operations))
    assert [(a.removeprefix("batch=1/"), b.removeprefix("batch=2/")) for a, b in pairs] == found
    assert list(amid_files(batch(1, *operations), [])) == []


@pytest.mark.parametrize(
    ("following", "wakes"),
    [
        (("open aside", "rename rows"), ["2.rename"]),
        (("open aside", "rename rows", "open last", "rename last"), ["4.rename", "2.rename"]),
        (("open rows", "write rows"), []),
        (("begin db", "commit db"), []),
    ],
    ids=["one file", "a file and a marker", "nothing aside", "a transaction"],
)
def test_it_stands_where_it_lists_what_it_tidies_up(
    following: tuple[str, ...], wakes: list[str]
) -> None:
    second = batch(2, *following)
    pairs = list(amid_files([], second, ["1.look", "2.look"]))
    assert pairs == [(look, f"batch=2/{wake}") for wake in wakes for look in ("1.look", "2.look")]


def test_it_wakes_where_the_next_batch_reads_what_it_has_put_aside() -> None:
    first, second = (batch(n, "rename aside", "remove aside") for n in (1, 2))
    found = [until for _, until in amid_files(first, second, reads=["batch=2/1.look"])]
    assert found == ["batch=2/2.remove"] * 2 + ["batch=2/1.look"] * 2
    assert list(amid_files([], second, reads=["batch=2/1.look"])) == []


@pytest.mark.parametrize(
    ("operations", "kinds"),
    [
        (("write rows", "write rows"), ["open", "write"]),
        (("open aside", "write aside", "rename rows"), ["open", "write", "rename"]),
        (("truncate rows", "write rows", "write beat"), ["open", "write", "open"]),
    ],
    ids=["opened before", "opened in it", "cut first"],
)
def test_the_first_write_to_what_was_opened_before_the_batch_begins_it(
    operations: tuple[str, ...], kinds: list[str]
) -> None:
    assert [kind for _, kind, _ in begun(batch(1, *operations))] == kinds


HELD = (*BEGINS, *SHOWS, *REMOVES, *STATEMENTS)
kinds = st.sampled_from((*HELD, "write", "commit"))
operations = st.lists(st.builds("{} {}".format, kinds, st.sampled_from("ab")), max_size=12)


@given(operations, operations)
def test_there_are_few_and_each_wakes_after_the_first_operation(
    own: list[str], following: list[str]
) -> None:
    first, second = batch(1, *own), batch(2, *following)
    pairs = list(amid_files(first, second))
    assert len(pairs) <= 20
    assert len(set(pairs)) == len(pairs)
    for start, until in pairs:
        assert start in [step for step, kind, _ in first if kind in HELD]
        assert until in [step for step, _, _ in second[min(1, len(second) - 1) :]]


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (("open rows", "write rows"), [("1.open", "2.write")]),
        (("open rows",), []),
        (("begin db", "commit db"), []),
        ((), []),
        (
            STAGED,
            [
                *((f"{n}", "3.rename") for n in ("1.open", "2.open")),
                *((f"{n}", "4.remove") for n in ("1.open", "2.open", "3.rename")),
            ],
        ),
        (TWO, [("1.begin", "3.begin")]),
    ],
    ids=["one", "nothing later", "a lock", "no files", "a file aside", "transactions"],
)
def test_in_one_batch_it_wakes_later_than_it_stood_still(
    operations: tuple[str, ...], found: list[tuple[str, str]]
) -> None:
    pairs = amid_replay(batch(1, *operations))
    assert [(a.removeprefix("batch=1/"), b.removeprefix("batch=1/")) for a, b in pairs] == found


@given(operations)
def test_in_one_batch_there_are_fewer_pairs(own: list[str]) -> None:
    steps = [step for step, _, _ in batch(1, *own)]
    pairs = list(amid_replay(batch(1, *own)))
    assert len(set(pairs)) == len(pairs) <= 10
    assert all(steps.index(start) < steps.index(until) for start, until in pairs)
