"""When values of an output are the same: an equivalence, whatever they are made of."""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bettong.harness.queries.job.host import plain
from bettong.harness.queries.job.values import canonical, near, number_of

_TEXTS = st.text('0123456789-:TZ .+[]{}",', max_size=12)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(_TEXTS, parts, max_size=3),
    max_leaves=6,
)


@given(_VALUES)
def test_a_value_is_the_same_after_it_was_json(value: Any) -> None:
    again = json.loads(json.dumps(value))
    assert canonical(again) == canonical(value)
    assert hash(canonical(again)) == hash(canonical(value))
    assert near(value, again, 0.0)
    assert near(value, again, 0.1)


@given(_TEXTS, _TEXTS)
def test_texts_that_are_no_times_are_the_same_if_they_are_equal(one: str, other: str) -> None:
    if "T" not in one and "-" not in one:
        assert (canonical(one) == canonical(other)) == (one == other)


@given(st.datetimes(min_value=datetime(2, 1, 1)), st.integers(-14 * 60, 14 * 60))
def test_a_time_is_the_same_in_every_zone(at: datetime, minutes: int) -> None:
    at = at.replace(tzinfo=UTC)
    there = at.astimezone(timezone(timedelta(minutes=minutes)))
    assert near(at.isoformat(), there.isoformat(), 0.0)
    later = at + timedelta(microseconds=1) if at.year < 9000 else at - timedelta(microseconds=1)
    assert not near(at.isoformat(), later.isoformat(), 0.0)


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_a_struct_is_the_same_with_its_nulls_and_without_as_sparks_json_has_it(
    tolerance: float,
) -> None:
    whole = {"name": "a", "mail": None, "parts": [{"x": 1, "y": None}]}
    assert near(whole, {"name": "a", "parts": [{"x": 1}]}, tolerance)
    assert not near(whole, {"name": "a", "mail": "m", "parts": [{"x": 1}]}, tolerance)
    assert not near({"mail": None}, None, tolerance)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
@example(Decimal("12345678901234567890123456789012.345678"))
def test_a_decimal_is_read_as_what_json_has_of_it_and_as_no_other(value: Decimal) -> None:
    assert Decimal(str(number_of(value))) == value
    next_one = value + Decimal("0.000001")
    if len(str(value)) < 16:
        assert canonical(number_of(value)) == canonical(json.loads(str(value)))
        assert canonical(number_of(value)) != canonical(number_of(next_one))


@pytest.mark.parametrize(
    ("value", "text"), [("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")]
)
def test_what_is_no_number_is_the_same_as_sparks_json_writes_it(value: str, text: str) -> None:
    """Spark's rows have Python's floats, its JSON has texts."""
    row = plain({"mean": float(value), "of": [float(value)]})
    for tolerance in (0.0, 0.1):
        assert near(row, {"mean": text, "of": [text]}, tolerance)
        assert near(row, json.loads(json.dumps({"mean": float(value), "of": [float(value)]})), 0.0)
        assert not near(row, {"mean": None, "of": [text]}, tolerance)
        assert not near(row, {"mean": "", "of": [text]}, tolerance)


@given(st.floats(-1e6, 1e6, width=32))
def test_a_float_of_four_bytes_is_the_same_as_a_row_and_as_text(value: float) -> None:
    """A row of Spark's has the double that it is, JSON and CSV the shortest text of it."""
    shortest = next(
        short
        for digits in range(1, 10)
        if _four_bytes(short := float(f"{value:.{digits}g}")) == value
    )
    assert near(value, shortest, 0.0)
    assert near({"price": value}, {"price": shortest}, 0.1)


def test_doubles_that_are_near_each_other_are_not_the_same() -> None:
    """Only a value that is one of four bytes is the short text of it."""
    assert near(0.10000000149011612, 0.1, 0.0)
    assert not near(0.1 + 0.2, 0.3, 0.0)
    assert not near(0.1000000015, 0.1, 0.0)
    assert not near(0.10000000149011612, 0.10000001639127731, 0.0)
    assert not near(16777216.0, 16777220.0, 0.0)
    assert near(16777216.0, 16777216, 0.0)


def _four_bytes(value: float) -> float:
    (again,) = struct.unpack("f", struct.pack("f", value))
    return float(again)


def test_keys_of_a_map_are_the_same_as_sparks_json_writes_them() -> None:
    row = plain({"seen": {True: 1, False: 0}, "of": {1: "a"}, "at": {Decimal("1.50"): 1}})
    written = {"seen": {"true": 1, "false": 0}, "of": {"1": "a"}, "at": {"1.50": 1}}
    assert near(row, written, 0.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (10, "INTERVAL '0 00:00:10' DAY TO SECOND"),
        (-90061.5, "INTERVAL '-1 01:01:01.5' DAY TO SECOND"),
        (0, "INTERVAL '0 00:00:00' DAY TO SECOND"),
    ],
)
def test_a_length_of_time_is_the_same_as_sparks_json_writes_it(seconds: float, text: str) -> None:
    row = plain({"lasted": timedelta(seconds=seconds)})
    assert near(row, {"lasted": text}, 0.0)
    assert not near(row, {"lasted": text.replace(":0", ":1")}, 0.0)


@given(st.floats(-10, 10), st.floats(-10, 10), st.floats(0, 1))
def test_near_is_as_far_as_the_tolerance(a: float, b: float, tolerance: float) -> None:
    assert near(a, b, tolerance) == (abs(a - b) <= tolerance)
    assert near([{"x": a}], [{"x": b}], tolerance) == near(a, b, tolerance)
