from __future__ import annotations

import tempfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bettong.harness.histories.hashing import hash_column
from bettong.harness.histories.json_values import json_array
from bettong.harness.histories.places import places, stable_order
from bettong.harness.histories.spill import Buckets, repeated

texts = st.lists(st.one_of(st.none(), st.text(max_size=40), st.sampled_from(["", "\0", "\0\0"])))


@given(texts, st.integers(0, 3))
def test_hash_of_a_text_does_not_depend_on_its_neighbours_or_its_kind(
    values: list[str | None], skip: int
) -> None:
    array = pa.array(values, pa.string())
    whole = hash_column(array).tolist()
    alone = [hash_column(pa.array([v], pa.string()))[0] for v in values]
    assert whole == alone
    assert hash_column(array.slice(skip)).tolist() == whole[skip:]
    assert hash_column(array.dictionary_encode()).tolist() == whole
    assert hash_column(array.cast(pa.large_string())).tolist() == whole


@given(texts)
@example(["\x03", "\0\0"])
def test_different_texts_have_different_hashes(values: list[str | None]) -> None:
    distinct = list(dict.fromkeys(values))
    assert len(set(hash_column(pa.array(distinct, pa.string())).tolist())) == len(distinct)


def test_equal_numbers_of_all_types_hash_alike() -> None:
    kinds = [pa.int8(), pa.int64(), pa.uint16(), pa.float32(), pa.float64()]
    hashes = {tuple(hash_column(pa.array([1, None, 0, 77], kind)).tolist()) for kind in kinds}
    assert len(hashes) == 1
    nan = hash_column(pa.array([float("nan"), -float("nan"), 0.5, -0.0, 0.0], pa.float64()))
    assert nan[0] == nan[1] != nan[2]
    assert nan[3] == nan[4]


def test_nested_values() -> None:
    a, b = pa.array([{"x": 1, "y": [1]}]), pa.array([{"y": [1], "x": 1}])
    assert hash_column(a)[0] == hash_column(b)[0] != hash_column(pa.array([{"x": 1}]))[0]


AT = datetime(2024, 1, 1)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (pa.array([b"ab"], pa.binary(2)), "b'ab'"),
        (pa.array([[b"ab"]]), ["b'ab'"]),
        (pa.array([[b"\xff"]]), ["b'\\xff'"]),
        (pa.array([[AT]]), ["2024-01-01 00:00:00"]),
        (pa.array([{"at": AT}]), {"at": str(AT)}),
        (pa.array([timedelta(1)]), "1 day, 0:00:00"),
    ],
)
def test_what_python_writes_of_a_value_is_another_value(array: pa.Array, text: object) -> None:
    assert hash_column(array)[0] != hash_column(pa.array([text]))[0]
    assert hash_column(array)[0] != hash_column(json_array([text]))[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([b"ab"], pa.binary(2)), pa.array([b"ab"])),
        (pa.array([b"ab"], pa.binary(2)), pa.array(["ab"])),
        (pa.array([[b"ab"]]), pa.array([["ab"]])),
        (pa.array([3600], pa.time32("s")), pa.array([3600 * 10**6], pa.time64("us"))),
        (pa.array([3600], pa.time32("s")), pa.array(["01:00:00"])),
        (pa.array([[1500]], pa.list_(pa.time32("ms"))), pa.array([["00:00:01.5"]])),
        (pa.array([86400], pa.duration("s")), pa.array([86400 * 10**9], pa.duration("ns"))),
        (
            pa.array([[0]], pa.list_(pa.timestamp("us", "UTC"))),
            pa.array([[0]], pa.list_(pa.timestamp("ms", "Europe/Berlin"))),
        ),
        (pa.array([-(2**63)]), pa.array([-(2.0**63)])),
    ],
)
def test_the_same_value_is_the_same_in_all_types_that_hold_it(
    one: pa.Array, other: pa.Array
) -> None:
    assert hash_column(one)[0] == hash_column(other)[0]


@given(st.lists(st.integers(0, (1 << 32) - 1)))
def test_stable_order(codes: list[int]) -> None:
    array = np.array(codes, np.int64)
    assert stable_order(array).tolist() == np.argsort(array, kind="stable").tolist()


@given(st.integers(1, 9), st.integers(0, 2**32 - 1), st.integers(0, 3000))
def test_places_are_counted_group_by_group(spread: int, seed: int, size: int) -> None:
    draws = np.random.default_rng(seed).random(size)
    groups = (draws ** (10 - spread) * spread * 100).astype(np.int64)  # some with one, some hot
    seen: dict[int, int] = {}
    reported = places(groups, spread * 100)
    for group, place in zip(groups.tolist(), reported.tolist(), strict=True):
        assert place == seen.get(group, 0)
        seen[group] = place + 1


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(0, 2**32 - 1))
def test_repeated_words_are_found_also_among_words_that_share_slots(
    numbers: list[int], seed: int
) -> None:
    few_bits = np.random.default_rng(seed).integers(0, 4, (41, 64), np.uint64)
    shifts = np.arange(0, 64, 2, dtype=np.uint64)
    pool = np.bitwise_or.reduce(few_bits[:, :32] << shifts, axis=1) & np.uint64(0xFF0000FF000000FF)
    words = pool[np.array(numbers, np.int64)]
    with tempfile.TemporaryDirectory() as name:
        buckets = Buckets(256, np.uint64, Path(name), 100, "words")
        buckets.add(words, words >> np.uint64(56))
        reported = repeated(buckets).tolist()
    assert reported == sorted(w for w, n in Counter(words.tolist()).items() if n > 1)
