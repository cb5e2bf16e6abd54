"""Rows made for a schema, the same ones every time, for inputs whose rows are not given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from bettong.harness.queries.job.values import number_of
from bettong.lineage.errors import UsageError

Row = dict[str, Any]

_FIRST = datetime(2024, 1, 1, tzinfo=UTC)
_SECONDS_APART = 10
_KEYS = 4
_TOKEN = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|[<(>),]")
"""A bracket or a comma, or what is quoted, in which these are none."""
_COLUMN = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>\w+))(?:\s*:\s*|\s+)(?P<kind>\S.*?)"
    r"(?:\s+NOT\s+NULL)?(?:\s+COMMENT\s+(?:'[^']*'|\"[^\"]*\"))?\s*",
    re.IGNORECASE | re.DOTALL,
)
_TYPES = {
    "string": str,
    "tinyint": int,
    "smallint": int,
    "int": int,
    "integer": int,
    "bigint": int,
    "long": int,
    "float": float,
    "double": float,
    "boolean": bool,
    "timestamp": datetime,
    "timestamp_ntz": datetime,
}


def columns_of(schema: str) -> dict[str, str]:
    """Column -> type of a schema as DDL, ``"id STRING, at TIMESTAMP"``; raises UsageError."""
    depth, start, parts = 0, 0, []
    for token in _TOKEN.finditer(schema):
        depth += (token[0] in "<(") - (token[0] in ">)")
        if token[0] == "," and depth == 0:
            parts.append(schema[start : token.start()])
            start = token.end()
    found = {}
    for part in [*parts, schema[start:]]:
        words = _COLUMN.fullmatch(part)
        if words is None:
            raise UsageError(
                f"schema {schema!r}: {part.strip()!r} is no column: write NAME TYPE, e.g. "
                "'id STRING, at TIMESTAMP'"
            )
        name = words["quoted"].replace("``", "`") if words["quoted"] else words["plain"]
        found[name] = words["kind"].lower()
    return found


def make_rows(schema: str, count: int) -> Iterator[Row]:
    """So many rows: a column called ``id`` or ``…_id`` is unique, other strings are one of four
    keys, timestamps are ten seconds apart. Raises UsageError for a type that has no such value."""
    columns = columns_of(schema)
    for name, kind in columns.items():
        if kind not in _TYPES and not kind.startswith("decimal"):
            raise UsageError(
                f"no rows can be made for the column {name} of type {kind}: give rows of your own "
                "(a list of dicts, with schema=…)"
            )
    for number in range(count):
        yield {name: _value(name, kind, number) for name, kind in columns.items()}


def _value(name: str, kind: str, number: int) -> Any:
    unique = name.lower() == "id" or name.lower().endswith("_id")
    if kind == "string":
        return f"{name}-{number:04d}" if unique else f"{name}-{number % _KEYS}"
    if kind.startswith("timestamp"):
        return timestamp(number)
    if kind == "boolean":
        return number % 2 == 0
    if kind in ("float", "double") or kind.startswith("decimal"):
        return number * 7919 % 1000 / 4
    return number if unique else number * 7919 % 100


def timestamp(number: int) -> str:
    """The time of the row of that number, as Spark reads it."""
    return str(as_text(_FIRST + timedelta(seconds=_SECONDS_APART * number)))


def as_text(value: Any) -> Any:
    """A value as JSON and CSV files of Spark have it; raises UsageError for one that they cannot
    have."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return number_of(value)
    if isinstance(value, Mapping):
        return {name: as_text(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_text(part) for part in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise UsageError(
        f"{value!r} cannot be fed: write a text, a number, a boolean, a time, a dict or a list"
    )
