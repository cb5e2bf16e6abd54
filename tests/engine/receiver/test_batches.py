from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bettong.engine.receiver.batches import Batches


@given(st.lists(st.integers(0, 30)))
def test_it_is_a_set(numbers: list[int]) -> None:
    found = Batches()
    for number in numbers:
        found.add(number)
    assert [n for n in range(32) if n in found] == sorted(set(numbers))
    assert bool(found) == bool(numbers)
    if numbers:
        assert found.last == max(numbers)
    starts = [n for n in set(numbers) if n - 1 not in numbers]
    assert [first for first, _ in found.ranges] == sorted(starts), "as few ranges as can be"
    assert Batches(found.ranges).ranges == found.ranges
