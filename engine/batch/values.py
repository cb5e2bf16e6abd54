"""Values of messages as Arrow columns where they are plain, pickled where they are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from typing import Any, cast

import pyarrow as pa

from bettong.engine.batch.items import IntArray, Values

_PLAIN: dict[type, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    str: pa.string(),
    bytes: pa.binary(),
}
_WIDEST_TUPLE = 16

Shape = Any
"""How values are put together again: "array" is a column, "plain" takes a
column, "pickle" a pickled list, "none" is
None for each message, a list of shapes makes tuples, and {"named": shapes} makes objects of a
pickled class of tuples, such as a NamedTuple."""


@dataclass(frozen=True)
class PackedValues:
    """Values taken apart.

    Attributes:
        shape: how they are put together again.
        columns: for each "plain" in the shape, in order.
        objects: for each "pickle" in the shape its values, for each "named" its class, in order.
    """

    shape: Shape
    columns: list[pa.Array]
    objects: list[Sequence[Any] | type]

    def pickled(self, places: IntArray) -> list[bytes]:
        """The objects at these places, pickled."""
        at = places.tolist()
        return [
            _pickle(o if isinstance(o, type) else list(map(o.__getitem__, at)))
            for o in self.objects
        ]


def pack_values(values: Values) -> PackedValues:
    """Take values apart."""
    if isinstance(values, pa.Array):
        return PackedValues("array", [values], [])
    packed = PackedValues(None, [], [])
    return PackedValues(_take_apart(values, packed), packed.columns, packed.objects)


def _take_apart(values: Sequence[Any], into: PackedValues) -> Shape:
    kinds = set(map(type, values))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind in _PLAIN:
        try:
            into.columns.append(pa.array(values, _PLAIN[kind]))
            return "plain"
        except (OverflowError, UnicodeError, pa.ArrowException):
            pass  # a number beyond 64 bits, text that is no Unicode
    elif kind is type(None):
        return "none"
    elif kind is not None and issubclass(kind, tuple) and not kind.__dictoffset__:
        widths = set(map(len, values))
        if len(widths) == 1 and 0 < (width := widths.pop()) <= _WIDEST_TUPLE:
            if kind is not tuple:
                into.objects.append(kind)
            columns = (list(map(itemgetter(i), values)) for i in range(width))
            shapes = [_take_apart(column, into) for column in columns]
            return shapes if kind is tuple else {"named": shapes}
    into.objects.append(values)
    return "pickle"


def unpack_values(
    shape: Shape, count: int, columns: Sequence[pa.Array], pickled: Sequence[bytes]
) -> Values:
    """Put values together again.

    Args:
        shape: of the packed values.
        count: how many there are.
        columns: the columns at their places.
        pickled: the pickled objects at their places.
    """
    if shape == "array":
        return columns[0]
    return _put_together(shape, count, iter(columns), iter(pickled))


def _put_together(
    shape: Shape, count: int, columns: Iterator[pa.Array], pickled: Iterator[bytes]
) -> list[Any]:
    if shape == "plain":
        return cast(list[Any], next(columns).to_pylist())
    if shape == "none":
        return [None] * count
    if shape == "pickle":
        return cast(list[Any], _unpickle(next(pickled)))
    if isinstance(shape, dict):
        cls = _unpickle(next(pickled))
        rows = _put_together(shape["named"], count, columns, pickled)
        return list(map(tuple.__new__, repeat(cls), rows))
    return list(zip(*(_put_together(s, count, columns, pickled) for s in shape), strict=True))


def _pickle(values: list[Any] | type) -> bytes:
    from pyspark import cloudpickle  # also packs classes of modules that workers do not have

    return cast(bytes, cloudpickle.dumps(values, 5))  # type: ignore[no-untyped-call]


def _unpickle(data: bytes) -> Any:
    from pyspark import cloudpickle

    return cloudpickle.loads(data)
