"""Histograms keep what they say they keep."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine.metrics.histogram import Histogram

durations = st.lists(st.integers(0, 2**53), min_size=1, max_size=60)


def of(values: list[int]) -> Histogram:
    made = Histogram()
    made.add_all(np.array(values, np.int64))
    return made


@given(durations, st.floats(0.01, 1))
def test_a_quantile_is_right_to_a_64th(values: list[int], part: float) -> None:
    exact = sorted(values)[max(1, int(np.ceil(part * len(values)))) - 1]
    reported = of(values).quantile(part)
    assert exact <= reported <= exact + exact / 64


@given(durations, durations)
def test_histograms_add_up(first: list[int], second: list[int]) -> None:
    both = of(first)
    both.merge(Histogram.from_json(of(second).to_json()))
    assert both.to_json() == of(first + second).to_json()
    assert both.count == len(first) + len(second)
    assert both.total == sum(first) + sum(second)


@given(durations, st.integers(0, 2**53))
def test_counts_below_a_bound_are_never_too_many(values: list[int], bound: int) -> None:
    reported = of(values).at_most(bound)
    assert (
        sum(v <= bound - bound / 64 for v in values) <= reported <= sum(v <= bound for v in values)
    )


def test_one_by_one_is_the_same_as_all_at_once() -> None:
    one_by_one = Histogram()
    for value in (5, 1000, 1000, 123_456_789):
        one_by_one.add(value)
    assert one_by_one.to_json() == of([5, 1000, 1000, 123_456_789]).to_json()


def test_nothing_seen() -> None:
    assert Histogram().quantile(0.99) == 0
