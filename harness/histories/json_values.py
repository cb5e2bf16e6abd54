"""JSON values exactly as they are written: numbers of any size, and types kept apart.

Each value has one *canonical text*, itself JSON: two values are the same when their texts are.
Numbers are the same when they are equal as decimals, however they are written (1, 1.0 and 10e-1);
``true`` is no number, ``"1"`` is none either, and an object without a member differs from one
in which it is null. An instant that Arrow gives is no text, and bytes are the text that they spell.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

MAX_NESTING = 200
_INT64 = range(-(2**63), 2**63)
_EXPONENT_DIGITS = 15
_PLAIN = 100
_LONG = 4000  # Python turns no more than 4,300 digits into an int, or back
_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?")
_PART = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]')
_RISKY = re.compile(rb"(?<=[:,\[\s])-?(?:\d[\d.]{15,}(?:[eE][+-]?\d+)?|\d[\d.]*[eE][+-]?\d{3,})")


def parse(line: bytes | str) -> Any:
    """The value of a text, with Decimals in place of floats and of the longest integers.

    Raises ValueError for what is no JSON, an object that names a member twice, a number whose
    exponent has more than 15 digits, and nesting beyond MAX_NESTING.
    """
    try:
        return _DECODER.decode(line if isinstance(line, str) else line.decode("utf-8"))
    except RecursionError:
        raise ValueError(f"nested more than {MAX_NESTING} deep") from None


def _members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object names a member twice")
    return found


def _float(text: str) -> Decimal:
    if len(text.lower().partition("e")[2].lstrip("+-")) > _EXPONENT_DIGITS:
        raise ValueError(f"the exponent of {text[:40]} has more than {_EXPONENT_DIGITS} digits")
    return Decimal(text)


def _int(text: str) -> int | Decimal:
    return int(text) if len(text) < _LONG else Decimal(text)


_DECODER = json.JSONDecoder(parse_float=_float, parse_int=_int, object_pairs_hook=_members)


def canonical(value: Any) -> str:
    """The canonical text of a parsed value, or of one that Arrow gives."""
    if isinstance(value, str):
        return json.dumps(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value) if value in _INT64 else canonical_number(str(Decimal(value)))
    if isinstance(value, float):
        return canonical_float(value)
    if isinstance(value, Decimal):
        return canonical_number(str(value)) if value.is_finite() else str(value)
    if isinstance(value, dict):
        members = (f"{json.dumps(str(k))}:{canonical(v)}" for k, v in sorted(value.items()))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, bytes | bytearray):
        return json.dumps(value.decode("utf-8", "surrogateescape"))
    if isinstance(value, datetime | timedelta):
        return "@" + _moment(value)
    if isinstance(value, time):
        text = value.isoformat("microseconds")
        return json.dumps(text.rstrip("0").rstrip("."))
    return json.dumps(str(value))


def _moment(value: datetime | timedelta) -> str:
    """What is no text of JSON, and alike in all units; with nanoseconds, where there are any."""
    if isinstance(value, timedelta):
        parts = value.days, value.seconds, value.microseconds, getattr(value, "nanoseconds", 0)
        return ":".join(map(str, parts))
    if value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    return value.isoformat()


def canonical_number(text: str) -> str:
    """Plain digits for integers of 64 bits, else all digits that count and an exponent."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]} is no number")
    sign, whole, fraction, exponent = found[1], found[2], found[3] or "", int(found[4] or 0)
    digits = (whole + fraction).lstrip("0")
    stripped = digits.rstrip("0")
    power = exponent - len(fraction) + len(digits) - len(stripped)
    if not stripped:
        return "0"
    if 0 <= power <= 19 and len(stripped) + power <= 19:
        number = int(sign + stripped) * 10**power
        if number in _INT64:
            return str(number)
    return f"{sign}{stripped}e{power}"


def canonical_float(value: float) -> str:
    """The text of the integer that the float is, if it has 64 bits, else of the shortest decimal
    that means it."""
    if not math.isfinite(value):
        return json.dumps(value)
    if value == math.floor(value) and -(2.0**63) <= value < 2.0**63:
        return str(int(value))
    return canonical_number(repr(value))


def float_of(text: str) -> float | None:
    """The float that has this canonical text, or None."""
    value = float(text)
    return value if canonical_float(value) == text else None


def floats_are_exact(block: bytes) -> bool:
    """Whether every number in lines of JSON is the one that a float of 64 bits makes of it."""
    return all(_survives(number) for number in _RISKY.findall(block))


def _survives(number: bytes) -> bool:
    text = number.decode("ascii")
    try:
        return canonical_float(float(text)) == canonical_number(text)
    except ValueError:
        return False


def nesting(line: bytes) -> int:
    """How deep the arrays and objects of a line lie in one another, at most."""
    depth = deepest = 0
    for part in _PART.finditer(line):
        if part[0] in (b"[", b"{"):
            depth += 1
            deepest = max(deepest, depth)
        elif part[0] in (b"]", b"}"):
            depth -= 1
    return deepest


def shown(text: str) -> Any:
    """The value of a canonical text as reports show it, exactly.

    Whole numbers of less than _PLAIN digits are ints; other numbers are floats where these mean the
    same, else decimal text: no JSON reader would keep their digits.
    """
    return _SHOWN.decode(text)


def _shown_number(text: str) -> int | float | str:
    number = Decimal(text)
    plain = number == 0 or number.adjusted() < _PLAIN
    if plain and number == number.to_integral_value():
        return int(number)
    exact = float_of(text)
    return str(number) if exact is None else exact


_SHOWN = json.JSONDecoder(parse_float=_shown_number)


class JsonScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """One value of a column of canonical texts."""

    def as_py(self, **_: Any) -> Any:
        """The value as reports show it."""
        return None if self.value is None else shown(self.value.as_py())


class JsonType(pa.ExtensionType):  # type: ignore[misc]
    """The type of columns of canonical texts: each value has the type that it was written with."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "bettong.json")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> JsonType:
        return cls()

    def __arrow_ext_scalar_class__(self) -> type[JsonScalar]:
        return JsonScalar


def json_array(values: Sequence[Any]) -> pa.ExtensionArray:
    """A column of parsed values."""
    texts = [None if value is None else canonical(value) for value in values]
    return pa.ExtensionArray.from_storage(JsonType(), pa.array(texts, pa.string()))
