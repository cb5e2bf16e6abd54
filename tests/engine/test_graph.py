"""Graphs that cannot run are refused with the name of the step."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine import (
    Application,
    GraphError,
    application,
    computation,
    decoder,
    encoder,
    key_extractor,
    sink,
    source,
    state_computation,
    state_entity,
)
from bettong.engine.batch.items import KeyColumn
from bettong.engine.functions import Function
from bettong.engine.keys import KeyTypeError, bounds, canonical, hash_bytes, parse, partition_of
from bettong.lineage.errors import UsageError


@dataclass
class Count:
    count: int = 0


@decoder
def text(data: bytes) -> str:
    return data.decode()


@computation
def loud(value: str) -> str:
    return value.upper()


@key_extractor
def itself(value: str) -> str:
    return value


@state_computation(state=Count)
def count(value: str, seen: Count) -> int:
    seen.count += 1
    return seen.count


@encoder
def encoded(value: object) -> bytes:
    return str(value).encode()


OUT = sink("out", encoded)


def test_levels_and_depths_are_found() -> None:
    keyed = source("lines", text).key_by(itself)
    counted = keyed.to(count)
    app = application("two", counted.to_sink(OUT), keyed.to(loud).done())
    assert isinstance(app, Application)
    assert app.levels == 1
    assert [n.name for n in app.sources] == ["lines"]
    assert [n.name for n in app.sinks] == ["out"]
    assert [s.name for s in app.states] == ["Count"]


def test_state_needs_a_key() -> None:
    with pytest.raises(GraphError, match="step count keeps state but its messages have no key"):
        source("lines", text).to(count)
    keyed, plain = source("lines", text).key_by(itself), source("others", text)
    with pytest.raises(GraphError, match="step count keeps state"):
        keyed.merge(plain).to(count)


def test_names_twice_are_refused() -> None:
    stream = source("lines", text)
    with pytest.raises(GraphError, match="two steps are called loud: give one of them name="):
        application("a", stream.to(loud).to(loud).to_sink(OUT))
    with pytest.raises(GraphError, match="two steps are called out: merge the streams"):
        application("a", stream.to_sink(OUT), stream.to(loud).to_sink(OUT))
    with pytest.raises(GraphError, match="two steps are called lines: build both pipelines"):
        application("a", stream.to_sink(OUT), source("lines", text).done())
    application("a", stream.to(loud).to(loud, name="louder").to_sink(OUT))


def test_pipelines_need_an_end_and_applications_a_pipeline() -> None:
    with pytest.raises(GraphError, match="application a has no pipeline"):
        application("a")
    with pytest.raises(GraphError, match="the pipeline after step loud has no end"):
        application("a", source("lines", text).to(loud))


def test_functions_that_cannot_travel_are_refused() -> None:
    lock = threading.Lock()

    @computation
    def locked(value: str) -> str:
        with lock:
            return value

    with pytest.raises(GraphError, match="step locked: its function cannot be sent to a worker"):
        application("a", source("lines", text).to(locked).to_sink(OUT))


def test_a_state_cannot_be_reached_again() -> None:
    keyed = source("lines", text).key_by(itself)
    again = keyed.to(count).key_by(itself, name="again").to(count, name="count_again")
    with pytest.raises(GraphError, match="step count_again comes after step count and shares its"):
        application("a", again.to_sink(OUT))


def test_states_that_are_shared_crosswise_are_refused() -> None:
    first, second = (state_entity(Count, name=name) for name in ("first", "second"))

    def using(name: str, state: object) -> Function:
        def step(value: str, seen: Count) -> str:
            return value

        step.__name__ = name
        return state_computation(state=state)(step)  # type: ignore[arg-type]

    keyed = source("lines", text).key_by(itself)
    one = keyed.to(using("a1", first)).to(using("a2", second)).done()
    other = keyed.to(using("b2", second)).to(using("b1", first)).done()
    with pytest.raises(GraphError, match="states are shared in a cycle among the steps"):
        application("a", one, other)


def test_functions_must_be_marked_as_what_they_do() -> None:
    stream = source("lines", text)
    with pytest.raises(GraphError, match=r"\.to\(\) takes a function marked with"):
        stream.to(itself)
    with pytest.raises(GraphError, match="marked @key_extractor"):
        stream.key_by(loud)
    with pytest.raises(GraphError, match="marked @decoder"):
        source("lines", loud)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="loud is marked twice"):
        encoder(loud)
    with pytest.raises(UsageError, match="length_fmt '>H' takes 2 bytes, header_length is 4"):
        decoder(length_fmt=">H")
    with pytest.raises(GraphError, match="a stream's name is"):
        source("two words", text)


@pytest.mark.parametrize("key", ["", "they", "é", b"", b"\x00", 0, -7, 10**30])
def test_keys_have_one_canonical_form(key: str | bytes | int) -> None:
    assert parse(canonical(key)) == key
    hashed = hash_bytes(canonical(key))
    for partitions in (1, 3, 64):
        low, high = bounds(partition_of(hashed, partitions), partitions)
        assert low <= hashed < high


@pytest.mark.parametrize("key", [1.0, None, ("a",), True, "\ud800"])
def test_other_keys_are_refused(key: object) -> None:
    with pytest.raises(KeyTypeError):
        canonical(key)  # type: ignore[arg-type]


def test_text_bytes_and_numbers_are_different_keys() -> None:
    assert len({canonical(k) for k in ("1", b"1", 1)}) == 3
    for data in (b"", b"x1", b"i01", b"i1_0", b"s\xff"):
        with pytest.raises(KeyTypeError):
            parse(data)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1), st.integers(1, 10_000))
def test_columns_of_keys_know_their_partitions(hashes: list[int], count: int) -> None:
    column = KeyColumn(np.zeros(0, np.int64), [b""] * len(hashes), np.array(hashes, np.uint64))
    assert column.partitions(count).tolist() == [partition_of(h, count) for h in hashes]
