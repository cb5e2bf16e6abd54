"""In which order the oracle lets streams meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine import interpret
from bettong.engine.state.planned import PlannedBatch
from bettong.harness.checkers import Record, check_outputs
from bettong.harness.checkers.oracle import (
    OracleError,
    as_noted,
    as_told,
    by_number,
    expected_outputs,
    seen_outputs,
)
from bettong.scenarios.applications.readings import app as readings
from bettong.scenarios.applications.running_sum import app as one_stream
from bettong.scenarios.applications.running_sum_merged import app as two_streams

A, B = [b"k,1", b"k,2", b"k,3"], [b"k,100", b"k,200"]


def notes(*ends: tuple[int, int]) -> list[PlannedBatch]:
    starts = [(0, 0), *ends[:-1]]
    return [
        PlannedBatch(
            n,
            {"amounts": a, "corrections": b},
            {"amounts": c, "corrections": d},
        )
        for n, ((a, b), (c, d)) in enumerate(zip(starts, ends, strict=True))
    ]


def expected(*ends: tuple[int, int]) -> list[tuple[str, str]]:
    sent = {"amounts": A, "corrections": B}
    found = expected_outputs(
        two_streams, interpret(two_streams, sent, as_noted(sent, notes(*ends)))
    )
    return [(str(r.id), str(r.value)) for r in found]


def test_streams_meet_as_was_noted() -> None:
    silent = expected((2, 0), (3, 1), (3, 2))
    assert [value for _, value in silent] == ["k 1", "k 3", "k 103", "k 106", "k 306"]
    level = expected((1, 1), (2, 2), (3, 2))
    assert [value for _, value in level] == ["k 1", "k 101", "k 103", "k 303", "k 306"]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=6))
def test_every_accepted_message_is_expected_once_whatever_was_noted(
    steps: list[tuple[int, int]],
) -> None:
    ends, at = [], (0, 0)
    for a, b in steps:
        at = (min(3, at[0] + a), min(2, at[1] + b))
        ends.append(at)
    ids = [ident for ident, _ in expected(*ends)] if ends else [i for i, _ in expected((3, 2))]
    assert sorted(ids) == [
        *(f"amounts/{n}" for n in range(3)),
        *(f"corrections/{n}" for n in range(2)),
    ]
    assert [i for i in ids if i.startswith("amounts")] == [f"amounts/{n}" for n in range(3)]


def test_what_is_noted_beyond_what_was_accepted_is_not_expected() -> None:
    assert len(expected((9, 9))) == 5


def test_notes_that_do_not_follow_on_each_other_tell_no_order() -> None:
    gap = [notes((1, 1))[0], PlannedBatch(1, {"amounts": 2, "corrections": 1}, {})]
    with pytest.raises(OracleError, match="the streams' order is not known"):
        as_noted({"amounts": A, "corrections": B}, gap)
    with pytest.raises(OracleError, match="the note of batch 1 begins at"):
        as_noted({"amounts": A, "corrections": B}, notes((1, 1), (2, 2))[1:])


def test_of_one_stream_notes_change_nothing() -> None:
    sent = {"amounts": A}
    wrong = [PlannedBatch(4, {"amounts": 2}, {"amounts": 9})]
    by_notes = interpret(one_stream, sent, as_noted(sent, wrong))
    by_numbers = interpret(one_stream, sent, by_number(sent, 2))
    assert expected_outputs(one_stream, by_notes) == expected_outputs(one_stream, by_numbers)


def test_keys_that_are_bytes_are_expected_as_sinks_show_them() -> None:
    rows = expected_outputs(readings, interpret(readings, {"readings": [b"7,0,1"]}))
    latest = next(row for row in rows if str(row.id).endswith("@latest"))
    assert latest.key == "\x00\x07@latest"


def test_what_is_told_counts_whatever_was_worked_out() -> None:
    worked_out = [Record("a/0", "k", "1"), Record("a/1", "k", "2"), Record("a/2", "k", "3")]
    told = as_told(worked_out, {"a/3": "9", "a/2": "3", "a/0": "7"})
    assert told == [Record("a/0", "k", "7"), Record("a/2", "k", "3"), Record("a/3", None, "9")]


def test_bytes_that_are_no_text_are_not_the_letters_that_stand_for_them() -> None:
    """A reader of the row makes something else of each."""
    sent = {"readings": [b"7,0,1", b"7,300,200"]}
    right = [r.value for r in expected_outputs(readings, interpret(readings, sent))]
    binary = next(value for value in right if isinstance(value, dict))
    text = next(value for value in right if isinstance(value, str))
    letters = binary["base64"]

    def seen(row: dict[str, Any]) -> Any:
        (record,) = seen_outputs({"all": [{"id": "readings/0", "key": None, **row}]})
        return record.value

    assert seen({"base64": letters}) == binary
    assert seen({"data": letters}) != binary
    assert seen({"data": letters, "base64": letters}) != binary
    assert seen({"data": text}) == text
    assert seen({"base64": text}) != text
    assert seen({}) is None


def test_a_key_that_is_no_text_is_not_the_one_that_was_expected_at_any_number_of_sinks() -> None:
    """A key is a text: what groups by it takes the number 7 for another one."""
    rows = [{"id": "a/0", "key": "7", "data": "x"}]
    wrong = [{"id": "a/0", "key": 7, "data": "x"}]
    sinks: list[dict[str, Iterable[Mapping[str, Any]]]] = [{}, {"other": []}]
    for others in sinks:
        right = seen_outputs({"all": rows, **others})
        assert check_outputs(right, right).verdict == "valid"
        assert check_outputs(right, seen_outputs({"all": wrong, **others})).verdict == "invalid"
