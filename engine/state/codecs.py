"""Codecs of state entities: how objects of a user's class become a column of an Arrow file.

Reading a column only ever makes values of the declared types and calls the declared class with
them; nothing that was written is executed. :class:`PickleCodec` is the exception: whoever can
write the state can run code in the reader, so it is used only when asked for by name.
"""

from __future__ import annotations

import dataclasses
import json
import pickle
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Protocol

import pyarrow as pa

from bettong.lineage.errors import BettongError, UsageError


class CodecError(BettongError):
    """An entity that cannot be written, or a column that cannot be read."""


class StateCodec(Protocol):
    """Entities ↔ a column.

    Attributes:
        version: written into every file, and given back when the file is read.
    """

    @property
    def version(self) -> int: ...

    @property
    def type(self) -> pa.DataType:
        """Type of the column that this version writes."""
        ...

    def encode(self, entities: Sequence[Any]) -> pa.Array:
        """A column without nulls; raises CodecError for an entity that does not fit."""
        ...

    def decode(self, column: pa.Array, version: int) -> list[Any]:
        """The entities of a column that ``version`` wrote; raises CodecError."""
        ...


@dataclasses.dataclass(frozen=True)
class _Field:
    """One type of value: its Arrow type, its Python types, and how it is turned over."""

    arrow: pa.DataType
    python: frozenset[type]
    to_arrow: Callable[[Any], Any] | None = None
    from_arrow: Callable[[Any], Any] | None = None


_PLAIN = {
    int: _Field(pa.int64(), frozenset({int})),
    float: _Field(pa.float64(), frozenset({float})),
    bool: _Field(pa.bool_(), frozenset({bool})),
    str: _Field(pa.string(), frozenset({str})),
    bytes: _Field(pa.binary(), frozenset({bytes})),
}


def _field(hint: Any, where: str) -> _Field:
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and len(arguments) == 2:
        other = [a for a in arguments if a is not type(None)]
        if len(other) == 1:
            return _optional(_field(other[0], where))
    if origin is list and len(arguments) == 1:
        item = _checked(_field(arguments[0], where), where)
        return _Field(pa.list_(item.arrow), frozenset({list}), *_each(item))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _checked(_field(arguments[0], where), where)
        to_arrow, from_arrow = _each(item)
        return _Field(
            pa.list_(item.arrow), frozenset({tuple}), to_arrow, lambda v: tuple(from_arrow(v))
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


def _checked(field: _Field, where: str) -> _Field:
    """The same with a check of each value's type, for values inside others."""

    def to_arrow(value: Any) -> Any:
        if type(value) not in field.python:
            raise CodecError(f"{where} holds {value!r}, declared {_names(field.python)}")
        return field.to_arrow(value) if field.to_arrow else value

    return dataclasses.replace(field, to_arrow=to_arrow)


def _names(kinds: frozenset[type]) -> str:
    return " | ".join(sorted("None" if k is type(None) else k.__name__ for k in kinds))


def _optional(field: _Field) -> _Field:
    to_arrow, from_arrow = field.to_arrow, field.from_arrow
    return _Field(
        field.arrow,
        field.python | {type(None)},
        to_arrow and (lambda v: None if v is None else to_arrow(v)),
        from_arrow and (lambda v: None if v is None else from_arrow(v)),
    )


def _each(item: _Field) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    to_arrow = item.to_arrow or (lambda v: v)
    from_arrow = item.from_arrow or (lambda v: v)
    return lambda v: [to_arrow(x) for x in v], lambda v: [from_arrow(x) for x in v]


def _dict_field(key: _Field, value: _Field) -> _Field:
    (key_to, key_from), (value_to, value_from) = (
        (f.to_arrow or (lambda v: v), f.from_arrow or (lambda v: v)) for f in (key, value)
    )
    return _Field(
        pa.map_(key.arrow, value.arrow),
        frozenset({dict}),
        lambda d: [(key_to(k), value_to(v)) for k, v in d.items()],
        lambda pairs: {key_from(k): value_from(v) for k, v in pairs},
    )


def _record_field(cls: type) -> _Field:
    fields = {n: _checked(f, f"{cls.__name__}.{n}") for n, f in _fields_of(cls).items()}

    def to_arrow(entity: Any) -> dict[str, Any]:
        return {n: f.to_arrow(getattr(entity, n)) for n, f in fields.items() if f.to_arrow}

    def from_arrow(row: dict[str, Any]) -> Any:
        return cls(
            **{n: f.from_arrow(row[n]) if f.from_arrow else row[n] for n, f in fields.items()}
        )

    arrow = pa.struct([(n, f.arrow) for n, f in fields.items()])
    return _Field(arrow, frozenset({cls}), to_arrow, from_arrow)


def _fields_of(cls: type) -> dict[str, _Field]:
    hints = typing.get_type_hints(cls)
    fields = {}
    for f in dataclasses.fields(cls):
        where = f"{cls.__name__}.{f.name}"
        if not f.init:
            raise UsageError(f"{where} has init=False, so it cannot be read back: use a codec=")
        fields[f.name] = _field(hints[f.name], where)
    return fields


class DataclassCodec:
    """A dataclass as a struct with one child for each field.

    Args:
        cls: the dataclass.
        version: raise it when the fields change.
        migrate: for each older version a function from its fields (a dict) to today's.
    """

    def __init__(
        self,
        cls: type,
        version: int = 1,
        migrate: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] | None = None,
    ) -> None:
        self._cls = cls
        self._version = version
        self._migrate = dict(migrate or {})
        self._fields = _fields_of(cls)

    @property
    def version(self) -> int:
        return self._version

    @property
    def type(self) -> pa.DataType:
        return pa.struct([(n, f.arrow) for n, f in self._fields.items()])

    def encode(self, entities: Sequence[Any]) -> pa.Array:
        columns = []
        for name, field in self._fields.items():
            values = list(map(attrgetter(name), entities))
            odd = set(map(type, values)) - field.python
            if odd:
                raise CodecError(
                    f"{self._cls.__name__}.{name} holds {_names(frozenset(odd))}, "
                    f"declared {_names(field.python)}"
                )
            if field.to_arrow is not None:
                values = list(map(field.to_arrow, values))
            try:
                columns.append(pa.array(values, field.arrow))
            except (pa.ArrowException, OverflowError, UnicodeError) as e:
                raise CodecError(
                    f"{self._cls.__name__}.{name} cannot be written as {field.arrow}: {e}; "
                    "give the state a codec= that can"
                ) from e
        if not columns:
            return pa.array([{}] * len(entities), self.type)
        return pa.StructArray.from_arrays(columns, fields=list(self.type))

    def decode(self, column: pa.Array, version: int) -> list[Any]:
        if version != self._version:
            return self._decode_older(column, version)
        if column.type != self.type:
            raise CodecError(
                f"state of {self._cls.__name__} was written as {column.type} and is now "
                f"{self.type}: raise the codec's version and give it migrate="
            )
        columns = []
        for place, field in enumerate(self._fields.values()):
            values = column.field(place).to_pylist()
            columns.append(list(map(field.from_arrow, values)) if field.from_arrow else values)
        if not columns:
            return [self._cls() for _ in range(len(column))]
        names = tuple(self._fields)
        if any(f.kw_only for f in dataclasses.fields(self._cls)):
            return [
                self._cls(**dict(zip(names, row, strict=True)))
                for row in zip(*columns, strict=True)
            ]
        return list(map(self._cls, *columns))

    def _decode_older(self, column: pa.Array, version: int) -> list[Any]:
        if version not in self._migrate:
            raise CodecError(
                f"state of {self._cls.__name__} was written by version {version} of its codec, "
                f"this is version {self._version}: give the codec migrate={{{version}: …}}"
            )
        migrate = self._migrate[version]
        return [self._cls(**migrate(row)) for row in column.to_pylist()]


class BytesCodec:
    """Any class, by two functions of the user's own.

    Args:
        encode: entity → bytes.
        decode: bytes, version that wrote them → entity. It must not execute what it reads.
        version: raise it when the format changes.
    """

    type = pa.binary()

    def __init__(
        self,
        encode: Callable[[Any], bytes],
        decode: Callable[[bytes, int], Any],
        version: int = 1,
    ) -> None:
        self._encode = encode
        self._decode = decode
        self._version = version

    @property
    def version(self) -> int:
        return self._version

    def encode(self, entities: Sequence[Any]) -> pa.Array:
        try:
            return pa.array([self._encode(e) for e in entities], self.type)
        except Exception as e:  # whatever a user's function raises
            raise CodecError(f"an entity cannot be written: {type(e).__name__}: {e}") from e

    def decode(self, column: pa.Array, version: int) -> list[Any]:
        if column.type != self.type:
            raise CodecError(f"expected a column of bytes, found {column.type}")
        try:
            return [self._decode(b, version) for b in column.to_pylist()]
        except Exception as e:
            raise CodecError(f"an entity cannot be read: {type(e).__name__}: {e}") from e


class JsonCodec(BytesCodec):
    """Built-in values that JSON keeps as they are: dicts with text keys, lists, text, numbers."""

    def __init__(self, version: int = 1) -> None:
        super().__init__(_to_json, lambda data, _: json.loads(data), version)


def _to_json(value: Any) -> bytes:
    text = json.dumps(value, separators=(",", ":"))
    if json.loads(text) != value:
        raise CodecError(f"JSON does not keep {value!r} as it is")
    return text.encode()


class PickleCodec(BytesCodec):
    """Any class, by pickle: only for state directories that nobody else can write to."""

    def __init__(self, version: int = 1) -> None:
        super().__init__(
            lambda e: pickle.dumps(e, protocol=5),
            lambda data, _: pickle.loads(data),  # noqa: S301 - the user asked for it by name
            version,
        )


def codec_for(cls: type) -> StateCodec:
    """The codec of a class that was declared without one; raises UsageError when it needs one."""
    if dataclasses.is_dataclass(cls):
        return DataclassCodec(cls)
    raise UsageError(
        f"state {cls.__name__} is no dataclass: make it one, or declare its codec with "
        "state_entity(cls, codec=…)"
    )
