"""State codecs: what is written is read again, and nothing else is made of it."""

from __future__ import annotations

import dataclasses
import os
import pickle
from collections import Counter, OrderedDict
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine import state_entity
from bettong.engine.codecs.fields import CodecError
from bettong.engine.codecs.state import BytesCodec, DataclassCodec, JsonCodec, PickleCodec
from bettong.lineage.errors import UsageError


@dataclass
class Point:
    x: float = 0.0
    label: str = ""


@dataclass
class Everything:
    whole: int = 0
    real: float = 0.0
    truth: bool = False
    text: str = ""
    data: bytes = b""
    maybe: int | None = None
    numbers: list[int] = field(default_factory=list)
    pair: tuple[str, ...] = ()
    table: dict[str, list[int]] = field(default_factory=dict)
    point: Point = field(default_factory=Point)
    points: list[Point] = field(default_factory=list)
    nested: dict[int, Point | None] = field(default_factory=dict)


int64 = st.integers(-(2**63), 2**63 - 1)
real = st.floats(allow_nan=False)
text = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
points = st.builds(Point, real, text)
everything = st.builds(
    Everything,
    int64,
    real,
    st.booleans(),
    text,
    st.binary(max_size=5),
    st.none() | int64,
    st.lists(int64, max_size=3),
    st.lists(text, max_size=3).map(tuple),
    st.dictionaries(text, st.lists(int64, max_size=2), max_size=3),
    points,
    st.lists(points, max_size=3),
    st.dictionaries(int64, st.none() | points, max_size=3),
)


@given(st.lists(everything, max_size=4))
def test_dataclasses_come_back_as_they_were(entities: list[Everything]) -> None:
    codec = DataclassCodec(Everything)
    column = codec.encode(entities)
    assert column.type == codec.type
    assert codec.decode(column, 1) == entities


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"whole": 2**63}, "whole cannot be written as int64"),
        ({"whole": 1.5}, "Everything.whole holds float, declared int"),
        ({"whole": True}, "Everything.whole holds bool, declared int"),
        ({"real": 1}, "Everything.real holds int, declared float"),
        ({"text": "\ud800"}, "text cannot be written as string"),
        ({"numbers": [1, "2"]}, "Everything.numbers holds '2', declared int"),
        ({"point": None}, "Everything.point holds None, declared Point"),
        ({"points": [Point("no")]}, "Point.x holds 'no', declared float"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, object], line: str) -> None:
    entity = dataclasses.replace(Everything(), **changes)  # type: ignore[arg-type]
    with pytest.raises(CodecError, match=line):
        DataclassCodec(Everything).encode([entity])


def test_classes_that_cannot_be_kept_are_refused() -> None:
    @dataclass
    class Odd:
        what: object = None

    @dataclass
    class Hidden:
        seen: int = field(init=False, default=0)

    with pytest.raises(UsageError, match=r"Odd.what is declared <class 'object'>"):
        DataclassCodec(Odd)
    with pytest.raises(UsageError, match=r"Hidden.seen has init=False"):
        DataclassCodec(Hidden)
    with pytest.raises(UsageError, match="state dict is no dataclass"):
        state_entity(dict)


def test_older_versions_are_migrated() -> None:
    @dataclass
    class Old:
        name: str = ""

    column = DataclassCodec(Old).encode([Old("ann")])
    today = DataclassCodec(
        Point, version=2, migrate={1: lambda old: {"x": 0.5, "label": old["name"]}}
    )
    assert today.decode(column, 1) == [Point(0.5, "ann")]
    with pytest.raises(CodecError, match="raise the codec's version"):
        DataclassCodec(Point).decode(column, 1)
    with pytest.raises(CodecError, match=r"give the codec migrate=\{3: …\}"):
        today.decode(column, 3)


@given(st.binary(max_size=40))
def test_hostile_bytes_make_an_error_or_plain_values(data: bytes) -> None:
    try:
        (value,) = JsonCodec().decode(pa.array([data]), 1)
    except CodecError:
        return
    assert isinstance(value, dict | list | str | int | float | bool | None)


class _Payload:
    def __reduce__(self) -> object:
        return os.putenv, ("BETTONG_HOSTILE", "1")


def test_only_the_pickle_codec_unpickles() -> None:
    hostile = pa.array([pickle.dumps(_Payload())])
    for codec in (JsonCodec(), BytesCodec(lambda e: e, lambda data, version: data.decode())):
        with pytest.raises(CodecError):
            codec.decode(hostile, 1)
    with pytest.raises(CodecError):
        DataclassCodec(Point).decode(hostile, 1)
    assert PickleCodec().decode(PickleCodec().encode([{1: 2}]), 1) == [{1: 2}]


def test_json_refuses_what_it_would_change() -> None:
    with pytest.raises(CodecError, match="JSON does not keep"):
        JsonCodec().encode([{1: "a key that is no text"}])
    assert JsonCodec().decode(JsonCodec().encode([{"a": [1, None]}]), 1) == [{"a": [1, None]}]


@dataclass
class Nested:
    table: dict[str, int] = field(default_factory=dict)
    pair: tuple[str, ...] = ()
    point: Point = field(default_factory=Point)


@dataclass
class NestedAndMore(Nested):
    more: str = ""


def test_a_migration_is_given_fields_as_they_are_declared() -> None:
    column = DataclassCodec(Nested).encode([Nested({"a": 1}, ("b",), Point(2.0, "c"))])
    today = DataclassCodec(NestedAndMore, 2, {1: lambda old: {**old, "more": "d"}})
    assert today.decode(column, 1) == [NestedAndMore({"a": 1}, ("b",), Point(2.0, "c"), "d")]


def test_a_dataclass_within_another_may_get_a_field_with_a_default() -> None:
    @dataclass
    class Small:
        x: int = 0

    @dataclass
    class Large:
        x: int = 0
        y: list[int] = field(default_factory=list)

    @dataclass
    class Strict:
        x: int
        y: int

    def of(inner: type) -> type:
        fields = (inner, list[inner], tuple[inner, ...], dict[float, inner], inner | None)  # type: ignore[valid-type]
        return dataclasses.make_dataclass("Of", [(f"f{n}", f) for n, f in enumerate(fields)])

    small, large = DataclassCodec(of(Small)), DataclassCodec(of(Large))
    column = small.encode([of(Small)(Small(1), [Small(2)], (Small(3),), {0.5: Small(4)}, None)])
    (read,) = large.decode(column, 1)
    values = [getattr(read, name) for name in ("f0", "f1", "f2", "f3", "f4")]
    assert values == [Large(1), [Large(2)], (Large(3),), {0.5: Large(4)}, None]
    assert large.decode(large.encode([read]), 1) == [read]
    for other in (DataclassCodec(of(Strict)), DataclassCodec(of(Point))):
        with pytest.raises(CodecError, match="raise the codec's version"):
            other.decode(column, 1)


@pytest.mark.parametrize(
    "value", [Counter("aab"), [Counter("a")], {"a": (1, 2)}, OrderedDict(a=1), float("nan")]
)
def test_json_refuses_what_would_be_of_another_class(value: object) -> None:
    with pytest.raises(CodecError, match="JSON does not keep"):
        JsonCodec().encode([value])
