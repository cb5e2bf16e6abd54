"""Values are put together again as they were, whatever they are made of."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine.batch.values import pack_values, unpack_values


class Quote(NamedTuple):
    symbol: str
    bid: float
    inner: tuple[int, str] = (1, "a")


class Wrapped(namedtuple("Wrapped", "a b")):  # has room for more than its fields
    pass


def there_and_back(values: list[Any]) -> Any:
    packed = pack_values(values)
    everything = np.arange(len(values))
    pickled = packed.pickled(everything)
    return unpack_values(packed.shape, len(values), packed.columns, pickled)


plain = st.one_of(st.integers(), st.text(), st.binary(), st.none(), st.booleans())
quotes = st.builds(
    Quote, st.text(), st.floats(allow_nan=False), st.tuples(st.integers(), st.text())
)


@given(
    st.one_of(
        st.lists(plain, min_size=1),
        st.lists(quotes, min_size=1),
        st.lists(st.tuples(quotes, plain), min_size=1),
        st.lists(st.lists(st.integers()), min_size=1),
    )
)
def test_values_come_back_as_they_were(values: list[Any]) -> None:
    back = there_and_back(values)
    assert back == values
    assert list(map(type, back)) == list(map(type, values))


def test_fields_of_named_tuples_are_columns() -> None:
    packed = pack_values([Quote("a", 1.0), Quote("b", 2.0)])
    assert packed.shape == {"named": ["plain", "plain", ["plain", "plain"]]}
    assert packed.objects == [Quote]


@pytest.mark.parametrize("more", ["x", None])
def test_tuples_with_attributes_of_their_own_keep_them(more: str | None) -> None:
    value = Wrapped(1, 2)
    value.more = more  # type: ignore[attr-defined]
    (back,) = there_and_back([value])
    assert (back, back.more) == (value, more)
