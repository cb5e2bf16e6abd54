"""Where a driver wakes amid its successor's operations on files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.queries.search.amid_files import BEGINS, SHOWS, Operation, amid_files


def batch(number: int, *operations: str) -> list[Operation]:
    """Each is a kind and a file, as in ``open staged``."""
    split = [operation.split() for operation in operations]
    return [(f"batch={number}/{n}.{kind}", kind, on) for n, (kind, on) in enumerate(split, 1)]


BEAT = ("open beat", "rename beat")
STAGED = ("open staged", "open aside", "rename rows", "remove staged")
TWO = ("begin db", "commit db", "begin db", "commit db")


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (("open rows", "write rows"), [("1.open", "2.write")]),
        (("open rows",), [("1.open", "1.open")]),
        (("remove rows",), []),
        (
            (*BEAT, *STAGED),
            [
                *((f"{n}", "6.remove") for n in ("1.open", "2.rename", "3.open", "4.open")),
                ("5.rename", "6.remove"),
                ("1.open", "2.rename"),
                ("2.rename", "2.rename"),
                *((f"{n}", "5.rename") for n in ("1.open", "2.rename", "3.open", "4.open")),
                ("5.rename", "5.rename"),
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
    ids=["one", "at its only one", "nothing begun", "a file aside", "transactions"],
)
def test_it_stands_at_each_kind_of_file_and_wakes_at_what_comes_after(
    operations: tuple[str, ...], found: list[tuple[str, str]]
) -> None:
    pairs = amid_files(batch(1, *operations), batch(2, *operations))
    assert [(a.removeprefix("batch=1/"), b.removeprefix("batch=2/")) for a, b in pairs] == found
    assert list(amid_files(batch(1, *operations), [])) == []


kinds = st.sampled_from((*BEGINS, *SHOWS, "write", "remove"))
operations = st.lists(st.builds("{} {}".format, kinds, st.sampled_from("ab")), max_size=12)


@given(operations, operations)
def test_there_are_few_and_each_wakes_after_the_first_operation(
    own: list[str], following: list[str]
) -> None:
    first, second = batch(1, *own), batch(2, *following)
    pairs = list(amid_files(first, second))
    assert len(pairs) <= 12
    assert len(set(pairs)) == len(pairs)
    for start, until in pairs:
        assert start in [step for step, kind, _ in first if kind in (*BEGINS, *SHOWS)]
        assert until in [step for step, _, _ in second[min(1, len(second) - 1) :]]
