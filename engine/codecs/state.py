"""Codecs of state entities: how objects of a user's class become a column of an Arrow file.

Reading a column only ever makes values of the declared types and calls the declared class with
them; nothing that was written is executed. :class:`PickleCodec` is the exception: whoever can
write the state can run code in the reader, so it is used only when asked for by name.
"""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Protocol

import pyarrow as pa

from bettong.engine.codecs.fields import CodecError, fields_of, lacks_none, names, turned_over
from bettong.lineage.errors import UsageError


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


class DataclassCodec:
    """A dataclass as a struct with one child for each field. A field that is added with a default
    has it in all that was written before.

    Args:
        cls: the dataclass.
        version: raise it when the fields change otherwise.
        migrate: for each older version a function from its fields (a dict) to today's. Fields that
            today's class has too are as it declares them; of others a dataclass is a dict, a tuple
            a list and a dict a list of pairs.
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
        self._fields = fields_of(cls)
        self._type = pa.struct([(n, f.arrow) for n, f in self._fields.items()])

    @property
    def version(self) -> int:
        return self._version

    @property
    def type(self) -> pa.DataType:
        return self._type

    def encode(self, entities: Sequence[Any]) -> pa.Array:
        columns = []
        for name, field in self._fields.items():
            values = list(map(attrgetter(name), entities))
            odd = set(map(type, values)) - field.python
            if odd:
                raise CodecError(
                    f"{self._cls.__name__}.{name} holds {names(frozenset(odd))}, "
                    f"declared {names(field.python)}"
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
            return self._decode_without_added(column)
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

    def _decode_without_added(self, column: pa.Array) -> list[Any]:
        """The entities of a column of fewer fields than today's."""
        if not lacks_none(self._cls, column.type):
            raise CodecError(
                f"state of {self._cls.__name__} was written as {column.type} and is now "
                f"{self.type}: raise the codec's version and give it migrate=, or give fields "
                "that are added a default"
            )
        return [self._cls(**turned_over(self._fields, row)) for row in column.to_pylist()]

    def _decode_older(self, column: pa.Array, version: int) -> list[Any]:
        if version not in self._migrate:
            raise CodecError(
                f"state of {self._cls.__name__} was written by version {version} of its codec, "
                f"this is version {self._version}: give the codec migrate={{{version}: …}}"
            )
        migrate = self._migrate[version]
        kept = {
            f.name: self._fields[f.name]
            for f in (column.type if pa.types.is_struct(column.type) else ())
            if f.name in self._fields and self._fields[f.name].takes(f.type)
        }
        return [
            self._cls(**migrate({**row, **turned_over(kept, row)})) for row in column.to_pylist()
        ]


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
    if not _alike(value, json.loads(text)):
        raise CodecError(f"JSON does not keep {value!r} as it is")
    return text.encode()


def _alike(value: Any, read: Any) -> bool:
    """Whether they are equal and of the same classes: a Counter is read as a dict, which equals it
    and is updated otherwise."""
    if type(value) is not type(read):
        return False
    if isinstance(value, dict):
        return value.keys() == read.keys() and all(_alike(value[k], read[k]) for k in value)
    if isinstance(value, list):
        return len(value) == len(read) and all(map(_alike, value, read))
    return bool(value == read)


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
