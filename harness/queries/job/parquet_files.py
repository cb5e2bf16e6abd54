"""Rows as Parquet files that Spark reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

from bettong.harness.queries.job.values import is_number
from bettong.lineage.errors import UsageError

_KINDS = {
    "string": "string",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "integer": "int32",
    "bigint": "int64",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "boolean": "bool_",
    "date": "date32",
}
_TIMES = ("timestamp", "timestamp_ntz")
_MOST_DIGITS = 38
_DECIMAL = re.compile(r"decimal(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")


def expect_kind(name: str, kind: str) -> None:
    """Raises UsageError for a column of a type that is not written."""
    if kind not in (*_KINDS, *_TIMES) and not _is_decimal(kind):
        raise UsageError(
            f"the column {name} of type {kind} cannot be written as parquet: use json, or a "
            "number, text, boolean, date or time"
        )


def expect_values(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Raises UsageError for a value that a column of its type cannot have."""
    for row in rows:
        for name, value in row.items():
            if not _fits(value, columns[name]):
                raise UsageError(
                    f"the column {name} of type {columns[name]} cannot have {value!r} as parquet"
                )


def _fits(value: Any, kind: str) -> bool:
    import pyarrow as pa

    try:
        (written,) = pa.array([_value(value, kind)], _type(kind)).to_pylist()
    except (ArithmeticError, TypeError, ValueError):  # pyarrow's own are ValueErrors
        return False
    return not pa.types.is_integer(_type(kind)) or bool(written == value)  # it cuts fractions off


def write_parquet(
    path: Path, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Write rows of columns with these types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, _type(kind)) for name, kind in columns.items()])
    arrays = [
        pa.array([_value(row.get(name), kind) for row in rows], _type(kind))
        for name, kind in columns.items()
    ]
    pq.write_table(pa.table(arrays, schema), path)


def _type(kind: str) -> Any:
    import pyarrow as pa

    if kind in _TIMES:
        return pa.timestamp("us", "UTC" if kind == "timestamp" else None)
    return getattr(pa, _KINDS[kind])() if kind in _KINDS else pa.decimal128(*_digits(kind))


def _is_decimal(kind: str) -> bool:
    if not _DECIMAL.fullmatch(kind):
        return False
    digits, behind = _digits(kind)
    return 1 <= digits <= _MOST_DIGITS and behind <= digits


def _digits(kind: str) -> tuple[int, int]:
    """Of a decimal: how many there are, and how many behind the point; as Spark has it."""
    found = _DECIMAL.fullmatch(kind)
    assert found is not None
    return int(found[1] or 10), int(found[2] or 0)


def _value(value: Any, kind: str) -> Any:
    if value is None or (kind in _KINDS and kind != "date"):
        return value
    if kind == "date":
        return date.fromisoformat(str(value))
    if kind in _TIMES:
        if is_number(value):
            return datetime.fromtimestamp(value, UTC)
        at = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
        return at if kind == "timestamp" else at.replace(tzinfo=None)
    with localcontext(prec=2 * _MOST_DIGITS):
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-_digits(kind)[1]))
