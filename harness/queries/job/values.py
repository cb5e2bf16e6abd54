"""When two values of an output are the same.

Values are of JSON, and come from places that write them otherwise: Spark's rows, its JSON, a
database, the user's own code.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeGuard

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)


def canonical(value: Any) -> Any:
    """A value that can be hashed, equal for values that are: 1 and 1.0, times that are written in
    several ways, a struct with a null in it, which Spark's JSON leaves out; never a text and what
    it is the text of."""
    if isinstance(value, dict):
        there = ((name, part) for name, part in value.items() if part is not None)
        return "{}", frozenset((name, canonical(part)) for name, part in there)
    if isinstance(value, list | tuple):
        return "[]", tuple(canonical(part) for part in value)
    if isinstance(value, str):
        return _time(value) or value
    if isinstance(value, float):
        if value != value:  # the only value that is not equal to itself
            return "nan"
        return int(value) if value.is_integer() else value
    return value


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
    return float(value) if Decimal(repr(float(value))) == value else str(value.normalize())
