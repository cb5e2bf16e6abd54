"""What a job has written, read by the types of what is right: JSON has bytes as base64, or as
digits, and every key of a map as some text."""

from __future__ import annotations

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bettong.harness.queries.job.typed import Kind, bare, kind_of_rows, with_keys

Row = Mapping[str, Any]
Place = tuple[str, ...]
"""The way to a value from its row on: names, an empty one for each part of a list or a map."""

_DIGITS = re.compile(r"(?:[0-9a-fA-F]{2})*")


def _hexadecimal(text: str) -> str | None:
    return text.lower() if _DIGITS.fullmatch(text) else None


def _marked(text: str) -> str | None:
    """As PostgreSQL writes it, and many a client."""
    return _hexadecimal(text[2:]) if text[:2] in ("\\x", "0x") else None


def from_base64(text: str) -> str | None:
    """The hexadecimal digits of what is written as base64; None for another text."""
    try:
        found = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None
    return found.hex() if base64.b64encode(found).decode() == text else None


def _as_text(text: str) -> str | None:
    """What was made a text, such as by Spark's cast."""
    return text.encode("utf-8", "surrogatepass").hex()


Notation = Callable[[str], str | None]
_NOTATIONS: tuple[Notation, ...] = (_hexadecimal, from_base64, _marked, _as_text)


@dataclass(frozen=True)
class Written:
    """How an output is written.

    Attributes:
        kind: of the rows that are right.
        notations: of bytes, by their places; those that are not here are digits.
    """

    kind: Kind | None = None
    notations: Mapping[Place, Notation] = field(default_factory=dict)

    @classmethod
    def of(cls, kind: Kind | None, right: Iterable[Row], runs: Iterable[Sequence[Row]]) -> Written:
        """As runs without a fault have written it: bytes in the one notation in which the most
        values are right ones, and in no other from then on.

        Args:
            right: rows with bytes as digits.
        """
        values, texts = _in_places(kind, right), _in_places(kind, (r for run in runs for r in run))
        notations = {}
        for place, seen in texts.items():
            times = [sum(each(text) in values[place] for text in seen) for each in _NOTATIONS]
            notations[place] = _NOTATIONS[times.index(max(times))]
        return cls(kind, notations)

    def rows(self, seen: Sequence[Row]) -> Sequence[Row]:
        """Rows of an output with values as those that are right have them."""
        if self.kind is None or not _matters(self.kind):
            return seen
        return [self._value(dict(row), self.kind, ()) for row in seen]

    def _value(self, value: Any, kind: Kind | None, place: Place) -> Any:
        if kind is None or value is None:
            return value
        if kind.name == "bytes" and isinstance(value, str):
            digits = self.notations.get(place, _hexadecimal)(value)
            return value if digits is None else digits
        if kind.name == "list" and isinstance(value, list | tuple):
            return [self._value(part, kind.of[""], (*place, "")) for part in value]
        if kind.name == "struct" and isinstance(value, dict):
            return {
                name: self._value(part, kind.of.get(name), (*place, name))
                for name, part in value.items()
            }
        if kind.is_map and isinstance(value, dict):
            within = {n: self._value(p, kind.of[""], (*place, "")) for n, p in value.items()}
            return with_keys(kind.name, within)
        return value


AS_IT_IS = Written()


def written(
    outputs: Mapping[str, Sequence[Row]], runs: Iterable[Sequence[Row]]
) -> tuple[dict[str, list[Row]], Written]:
    """Typed rows that are right without their types, and how runs without a fault write them."""
    kind = kind_of_rows(row for rows in outputs.values() for row in rows)
    plain = {name: bare_rows(rows, kind) for name, rows in outputs.items()}
    return plain, Written.of(kind, (row for rows in plain.values() for row in rows), runs)


def bare_rows(rows: Iterable[Row], kind: Kind | None) -> list[Row]:
    """Typed rows, which are of a kind, without their types, with keys written in one way."""
    return list(Written(kind).rows([bare(dict(row)) for row in rows]))


def _matters(kind: Kind) -> bool:
    """Whether there is anything that is written in several ways."""
    return kind.name == "bytes" or kind.is_map or any(_matters(k) for k in kind.of.values() if k)


def _in_places(kind: Kind | None, rows: Iterable[Row]) -> dict[Place, list[str]]:
    """The texts of all values that are bytes, by their places."""
    found: dict[Place, list[str]] = defaultdict(list)
    for row in rows:
        for place, text in _texts(dict(row), kind, ()):
            found[place].append(text)
    return found


def _texts(value: Any, kind: Kind | None, place: Place) -> Iterator[tuple[Place, str]]:
    if kind is None:
        return
    if kind.name == "bytes" and isinstance(value, str):
        yield place, value
    elif kind.name == "list" and isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part, kind.of[""], (*place, ""))
    elif kind.name == "struct" and isinstance(value, dict):
        for name, part in value.items():
            yield from _texts(part, kind.of.get(name), (*place, name))
    elif kind.is_map and isinstance(value, dict):
        for part in value.values():
            yield from _texts(part, kind.of[""], (*place, ""))
