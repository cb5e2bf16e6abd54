"""Histories: what was expected and what was seen, record by record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

MALFORMED_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a history. Its place in the history is its place in the order.

    Attributes:
        id: the message id; a record without one makes the history malformed.
        key: messages of one key have an order among themselves.
        value: the content that a reader sees: any value with ``==``; JSON values in reports.
        batch: the micro-batch or transaction that made it visible, when that is known.
    """

    id: str | None
    key: str | None = None
    value: Any = None
    batch: str | int | None = None


def malformed(expected: Sequence[Record], observed: Iterable[Record]) -> tuple[str, ...]:
    """What makes these histories impossible to judge, each naming its record (counted from 1).

    A record without an id on either side, or an id twice among the expected ones. At most
    ten are named.
    """
    found: list[str] = []
    first_at: dict[str, int] = {}
    for place, record in enumerate(expected, 1):
        if not record.id:
            found.append(f"expected record {place} has no id: {_short(record)}")
        elif record.id in first_at:
            found.append(
                f"expected record {place} has the id {record.id}, as record "
                f"{first_at[record.id]} has: which of them was expected cannot be known"
            )
        else:
            first_at[record.id] = place
        if len(found) == MALFORMED_SHOWN:
            return tuple(found)
    for place, record in enumerate(observed, 1):
        if not record.id:
            found.append(f"observed record {place} has no id: {_short(record)}")
            if len(found) == MALFORMED_SHOWN:
                break
    return tuple(found)


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values by their own types: ``True`` is not 1, and 1 is 1.0.

    Not-a-number equals itself, also inside lists and mappings. Values of other types are compared
    by ``==``.
    """
    left = [(a, b)]
    while left:
        a, b = left.pop()
        if isinstance(a, bool) is not isinstance(b, bool):
            return False
        if isinstance(a, dict) and isinstance(b, dict):
            if len(a) != len(b) or not all(name in b for name in a):
                return False
            left += [(value, b[name]) for name, value in a.items()]
        elif isinstance(a, list | tuple) and type(a) is type(b):
            if len(a) != len(b):
                return False
            left += zip(a, b, strict=True)
        elif not (a == b or (a != a and b != b)):
            return False
    return True


def _short(record: Record) -> str:
    text = f"key {record.key!r}, value {record.value!r}"
    return text if len(text) <= 200 else text[:199] + "…"
