"""Integer arithmetic and comparisons of Dedalus programs."""

from __future__ import annotations

from typing import Any

LIMIT = 2**63
"""Results lie strictly between minus this and this: a program that counts beyond it is wrong."""


class BadArithmeticError(ValueError):
    """An operation that has no result; the text says why."""


def _checked(result: int) -> int:
    if -LIMIT < result < LIMIT:
        return result
    raise BadArithmeticError("a number leaves the range of 64 bits")


def _numbers(op: str, a: Any, b: Any) -> None:
    for value in (a, b):
        if not isinstance(value, int):
            raise BadArithmeticError(f"'{op}' needs numbers, but \"{value}\" is a string")


def plus(a: Any, b: Any) -> int:
    _numbers("+", a, b)
    return _checked(a + b)


def minus(a: Any, b: Any) -> int:
    _numbers("-", a, b)
    return _checked(a - b)


def times(a: Any, b: Any) -> int:
    _numbers("*", a, b)
    return _checked(a * b)


def over(a: Any, b: Any) -> int:
    """Division that rounds towards zero, as C's does."""
    _numbers("/", a, b)
    if b == 0:
        raise BadArithmeticError("a division by zero")
    quotient: int = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def less(a: Any, b: Any) -> bool:
    """``a < b`` for two numbers or two strings."""
    if isinstance(a, int) != isinstance(b, int):
        raise BadArithmeticError(f"{a!r} and {b!r} cannot be compared: a number and a string")
    return bool(a < b)
