"""Values with their types, as JSON: of a plain value it can no longer be told whether it was bytes,
nor what the keys of a map were.

What says what is right gives typed values; :mod:`.written` then reads what a job has written by
their kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

from bettong.harness.queries.job.values import canonical, is_time, number_of

_BYTES, _MAP = "\0bytes", "\0map"
_DAYS_OR_MICROSECONDS = re.compile(r"-?\d{1,19}", re.ASCII)
"""As Spark's JSON writes a date, or a time, that is the key of a map."""
_NUMBER = re.compile(r"[+-]?\d{1,99}(\.\d{0,99})?([eE][+-]?\d{1,3})?", re.ASCII)
_NO_NUMBERS = {"nan": "nan", "inf": "inf", "infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Kind:
    """What kind of values there are in a place.

    Attributes:
        name: ``bytes``; ``list``; ``struct``, of a map of texts too; of a map what its keys are:
            ``date``, ``time``, ``float``, ``exact``; else ``other``.
        of: of the parts: of each by its name in a struct, of all by an empty one elsewhere.
    """

    name: str
    of: Mapping[str, Kind | None] = field(default_factory=dict)

    @property
    def is_map(self) -> bool:
        """Whether it is a map with keys that are no texts."""
        return self.name in ("date", "time", "float", "exact")


BYTES, _OTHER = Kind("bytes"), Kind("other")


def typed_bytes(value: bytes) -> dict[str, Any]:
    """Bytes, typed."""
    return {_BYTES: value.hex()}


def typed_map(keys: Iterable[Any], parts: dict[str, Any]) -> dict[str, Any]:
    """A map, typed where its keys are all of one type that is written in several ways.

    Args:
        parts: by the keys as texts.
    """
    kinds = {_kind_of_key(key) for key in keys}
    return {_MAP: [kinds.pop(), parts]} if len(kinds) == 1 and kinds != {""} else parts


def _kind_of_key(key: Any) -> str:
    if isinstance(key, datetime):
        return "time"
    if isinstance(key, date):
        return "date"
    if isinstance(key, float):
        return "float"
    return "exact" if isinstance(key, int | Decimal) and not isinstance(key, bool) else ""


def bare(value: Any) -> Any:
    """A value without its types: bytes are hexadecimal digits."""
    if isinstance(value, list):
        return [bare(part) for part in value]
    if not isinstance(value, dict):
        return value
    if _BYTES in value:
        return value[_BYTES]
    if _MAP in value:
        return bare(value[_MAP][1])
    return {name: bare(part) for name, part in value.items()}


def with_keys(name: str, parts: dict[str, Any]) -> dict[str, Any]:
    """A map whose keys are of a kind, with each of them written in one way; as it is where two
    would be one then."""
    found = {key_text(name, key): part for key, part in parts.items()}
    return found if len(found) == len(parts) else parts


def key_text(name: str, text: str) -> str:
    """The one way to write a key of a kind; a text that is none of its kind is left as it is."""
    try:
        if name == "date" and _DAYS_OR_MICROSECONDS.fullmatch(text):
            return (_EPOCH.date() + timedelta(days=int(text))).isoformat()
        if name == "time" and _DAYS_OR_MICROSECONDS.fullmatch(text):
            return str(canonical((_EPOCH + timedelta(microseconds=int(text))).isoformat()))
    except OverflowError:
        return text
    if name == "time" and is_time(text):
        return str(canonical(text))
    if name in ("float", "exact"):
        return _number_text(name, text)
    return text


def _number_text(name: str, text: str) -> str:
    if name == "float" and text.lower() in _NO_NUMBERS:
        return _NO_NUMBERS[text.lower()]
    if not _NUMBER.fullmatch(text):
        return text
    return str(canonical(float(text)) if name == "float" else number_of(Decimal(text)))


def kind_of(value: Any) -> Kind | None:
    """Of a typed value; None for a null, and for a map of nothing, whose keys nobody knows."""
    if value is None or value == {}:
        return None
    if isinstance(value, list):
        return Kind("list", {"": _of_all(value)})
    if not isinstance(value, dict):
        return _OTHER
    if _BYTES in value:
        return BYTES
    if _MAP in value:
        name, parts = value[_MAP]
        return Kind(name, {"": _of_all(list(parts.values()))})
    return Kind("struct", {name: kind_of(part) for name, part in value.items()})


def _of_all(values: Sequence[Any]) -> Kind | None:
    return reduce(either, map(kind_of, values), None)


def either(one: Kind | None, other: Kind | None) -> Kind | None:
    """The kind of values of both kinds: what is bytes here and a text there is not bytes, and keys
    that are whole numbers here and floats there are floats."""
    if one is None or other is None:
        return one or other
    if one.name != other.name and {one.name, other.name} != {"exact", "float"}:
        return _OTHER
    names = dict.fromkeys((*one.of, *other.of))
    return Kind(
        max(one.name, other.name),
        {name: either(one.of.get(name), other.of.get(name)) for name in names},
    )


def kind_of_rows(rows: Iterable[Mapping[str, Any]]) -> Kind | None:
    """Of typed rows."""
    return reduce(either, (kind_of(dict(row)) for row in rows), None)
