"""Rows as CSV files that Spark reads, with a header."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bettong.lineage.errors import UsageError

_NESTED = re.compile(r"(?:array|map|struct)\b")
_NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def expect_kind(name: str, kind: str) -> None:
    """Raises UsageError for a column of a type that is not written."""
    if _NESTED.match(kind):
        raise UsageError(f"the column {name} of type {kind} cannot be written as csv: use json")


def expect_values(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Raises UsageError for a value that no column can have."""
    for row in rows:
        for name, value in row.items():
            if isinstance(value, list | dict):
                raise UsageError(f"the column {name} cannot have {value!r} as csv: use json")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows of these columns."""
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, columns)
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _text(value) for name, value in row.items()})


def _text(value: Any) -> Any:
    """A value as Spark reads it, if that is not as Python writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return _NO_NUMBERS[str(value)]
    return value
