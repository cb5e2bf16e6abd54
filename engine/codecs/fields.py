"""Fields of dataclasses as Arrow types: which values they take, and how these are turned over."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from bettong.lineage.errors import BettongError, UsageError


class CodecError(BettongError):
    """An entity that cannot be written, or a column that cannot be read."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One type of value: its Arrow type, its Python types, and how it is turned over.

    Attributes:
        reads: whether ``from_arrow`` takes what was written as another Arrow type, which lacks
            fields of a dataclass that have been added with a default; None where nothing can lack.
    """

    arrow: pa.DataType
    python: frozenset[type]
    to_arrow: Callable[[Any], Any] | None = None
    from_arrow: Callable[[Any], Any] | None = None
    reads: Callable[[pa.DataType], bool] | None = None

    def takes(self, written: pa.DataType) -> bool:
        """Whether values of a type that was written can be read."""
        return written == self.arrow or (self.reads is not None and self.reads(written))


_PLAIN = {
    int: Field(pa.int64(), frozenset({int})),
    float: Field(pa.float64(), frozenset({float})),
    bool: Field(pa.bool_(), frozenset({bool})),
    str: Field(pa.string(), frozenset({str})),
    bytes: Field(pa.binary(), frozenset({bytes})),
}


def _field(hint: Any, where: str) -> Field:
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and len(arguments) == 2:
        other = [a for a in arguments if a is not type(None)]
        if len(other) == 1:
            return _optional(_field(other[0], where))
    if origin is list and len(arguments) == 1:
        item = _checked(_field(arguments[0], where), where)
        return Field(pa.list_(item.arrow), frozenset({list}), *_each(item), _list_of(item))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _checked(_field(arguments[0], where), where)
        to_arrow, from_arrow = _each(item)
        return Field(
            pa.list_(item.arrow),
            frozenset({tuple}),
            to_arrow,
            lambda v: tuple(from_arrow(v)),
            _list_of(item),
        )
    if origin is dict and len(arguments) == 2:
        key, value = (_checked(_field(a, where), where) for a in arguments)
        return _dict_field(key, value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _record_field(hint)
    raise UsageError(
        f"{where} is declared {hint!r}: state fields are int, float, bool, str, bytes, "
        "list[…], tuple[…, ...], dict[…, …], a dataclass of such fields, or one of these | None; "
        "for anything else give the state a codec="
    )


def _checked(field: Field, where: str) -> Field:
    """The same with a check of each value's type, for values inside others."""

    def to_arrow(value: Any) -> Any:
        if type(value) not in field.python:
            raise CodecError(f"{where} holds {value!r}, declared {names(field.python)}")
        return field.to_arrow(value) if field.to_arrow else value

    return dataclasses.replace(field, to_arrow=to_arrow)


def names(kinds: frozenset[type]) -> str:
    """Types as text."""
    return " | ".join(sorted("None" if k is type(None) else k.__name__ for k in kinds))


def _optional(field: Field) -> Field:
    to_arrow, from_arrow = field.to_arrow, field.from_arrow
    return Field(
        field.arrow,
        field.python | {type(None)},
        to_arrow and (lambda v: None if v is None else to_arrow(v)),
        from_arrow and (lambda v: None if v is None else from_arrow(v)),
        field.reads,
    )


def _list_of(item: Field) -> Callable[[pa.DataType], bool]:
    return lambda written: pa.types.is_list(written) and item.takes(written.value_type)


def _each(item: Field) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    to_arrow = item.to_arrow or (lambda v: v)
    from_arrow = item.from_arrow or (lambda v: v)
    return lambda v: [to_arrow(x) for x in v], lambda v: [from_arrow(x) for x in v]


def _dict_field(key: Field, value: Field) -> Field:
    (key_to, key_from), (value_to, value_from) = (
        (f.to_arrow or (lambda v: v), f.from_arrow or (lambda v: v)) for f in (key, value)
    )
    return Field(
        pa.map_(key.arrow, value.arrow),
        frozenset({dict}),
        lambda d: [(key_to(k), value_to(v)) for k, v in d.items()],
        lambda pairs: {key_from(k): value_from(v) for k, v in pairs},
        lambda written: (
            pa.types.is_map(written)
            and key.takes(written.key_type)
            and value.takes(written.item_type)
        ),
    )


def _record_field(cls: type) -> Field:
    fields = {n: _checked(f, f"{cls.__name__}.{n}") for n, f in fields_of(cls).items()}

    def to_arrow(entity: Any) -> dict[str, Any]:
        return {n: f.to_arrow(getattr(entity, n)) for n, f in fields.items() if f.to_arrow}

    def from_arrow(row: dict[str, Any]) -> Any:
        return cls(**turned_over(fields, row))

    arrow = pa.struct([(n, f.arrow) for n, f in fields.items()])
    return Field(
        arrow, frozenset({cls}), to_arrow, from_arrow, lambda written: lacks_none(cls, written)
    )


def turned_over(fields: Mapping[str, Field], row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass that were written, as they are declared."""
    return {
        n: f.from_arrow(row[n]) if f.from_arrow else row[n] for n, f in fields.items() if n in row
    }


def lacks_none(cls: type, written: pa.DataType) -> bool:
    """Whether a column that was written holds all fields of a dataclass but those that have a
    default."""
    if not pa.types.is_struct(written) or not written.num_fields:
        return False
    fields, types_ = fields_of(cls), {f.name: f.type for f in written}
    return all(n in fields and fields[n].takes(kind) for n, kind in types_.items()) and not any(
        f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        for f in dataclasses.fields(cls)
        if f.name not in types_
    )


def fields_of(cls: type) -> dict[str, Field]:
    """The fields of a dataclass in order; raises UsageError for one that cannot be kept."""
    hints = typing.get_type_hints(cls)
    fields = {}
    for f in dataclasses.fields(cls):
        where = f"{cls.__name__}.{f.name}"
        if not f.init:
            raise UsageError(f"{where} has init=False, so it cannot be read back: use a codec=")
        fields[f.name] = _field(hints[f.name], where)
    return fields
