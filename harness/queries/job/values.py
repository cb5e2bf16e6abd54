"""When two values of an output are the same.

Values are of JSON, and come from places that write them otherwise: Spark's rows, its JSON, a
database, the user's own code.
"""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeGuard

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_LENGTH = re.compile(
    r"INTERVAL '(-?)(\d+) (\d\d):(\d\d):(\d\d(?:\.\d{1,6})?)' DAY TO SECOND", re.ASCII
)
_SECONDS = (86_400, 3_600, 60, 1)
_NO_NUMBERS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
"""As Spark's JSON writes them, which can have them as texts only, and as Python does."""
_FOUR_BYTES = struct.Struct("f")


def canonical(value: Any) -> Any:
    """A value that can be hashed, equal for values that are: 1 and 1.0, times that are written in
    several ways, a struct with a null in it, which Spark's JSON leaves out, what JSON can have as a
    text only; else never a text and what it is the text of."""
    if isinstance(value, dict):
        there = ((name, part) for name, part in value.items() if part is not None)
        return "{}", frozenset((name, canonical(part)) for name, part in there)
    if isinstance(value, list | tuple):
        return "[]", tuple(canonical(part) for part in value)
    if isinstance(value, str):
        length = _length(value)
        return _NO_NUMBERS.get(value) or _time(value) or (value if length is None else length)
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return int(value) if value.is_integer() else _as_written(value)
    return value


def _as_written(value: float) -> float:
    """A float of four bytes is a double of many digits in Python, and written in few: 0.1 is
    0.10000000149011612 there."""
    try:
        if _FOUR_BYTES.unpack(_FOUR_BYTES.pack(value))[0] != value:
            return value
    except OverflowError:
        return value
    shorter = (float(f"{value:.{digits}g}") for digits in range(1, 10))
    return next(each for each in shorter if _FOUR_BYTES.unpack(_FOUR_BYTES.pack(each))[0] == value)


def _length(text: str) -> int | float | None:
    """The seconds of a length of time as Spark's JSON writes it, or None for another text."""
    found = _LENGTH.fullmatch(text)
    if found is None:
        return None
    sign, *parts = found.groups()
    seconds = sum(Decimal(part) * each for part, each in zip(parts, _SECONDS, strict=True))
    length = float(-seconds if sign else seconds)
    return int(length) if length.is_integer() else _as_written(length)


def _time(text: str) -> str | None:
    """A time as it is written here, or None for a text that is none: of what Python can read as
    one much is none, such as 20240101100. A time without a zone is in UTC."""
    if not _TIME.fullmatch(text):
        return None
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None


def near(a: Any, b: Any, tolerance: float) -> bool:
    """Equality, in which floating-point numbers may differ by the tolerance."""
    if canonical(a) == canonical(b):
        return True
    if not tolerance:
        return False
    if isinstance(a, dict) and isinstance(b, dict):
        return all(near(a.get(n), b.get(n), tolerance) for n in a.keys() | b.keys())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(near(x, y, tolerance) for x, y in zip(a, b, strict=True))
    floating = isinstance(a, float) or isinstance(b, float)
    return floating and is_number(a) and is_number(b) and bool(abs(a - b) <= tolerance)


def is_time(value: Any) -> bool:
    """Whether it is a text that is a time as it is written here."""
    return isinstance(value, str) and _time(value) is not None


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether it is one; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_of(value: Decimal) -> int | float | str:
    """A decimal as JSON has it; one of more digits than that has is a text."""
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value():
        return int(value)
    if Decimal(repr(float(value))) == value:
        return float(value)
    return f"{value:f}".rstrip("0")  # not normalize(), which rounds to 28 digits
