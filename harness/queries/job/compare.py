"""How two outputs of a job are compared: as bags, as tables by key, as the bag of an outer join."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bettong.harness.queries.job.values import is_number
from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import nearest, one_of

Names = str | tuple[str, ...] | list[str]


@dataclass(frozen=True, init=False)
class Bag:
    """Rows in any order, each as often as it should be there.

    Args:
        columns: those that are compared; all that every row has, when none is named.
        free: columns whose values are not compared.
        tolerance: floating-point numbers that differ by at most so much are equal.
    """

    columns: tuple[str, ...]
    free: tuple[str, ...]
    tolerance: float

    def __init__(self, *columns: str, free: Names = (), tolerance: float = 0.0) -> None:
        _set(
            self,
            columns=_names("Bag(…)", columns),
            free=_names(f"free={free!r}", free),
            tolerance=_positive(tolerance),
        )


@dataclass(frozen=True, init=False)
class Table:
    """One row of each key.

    Args:
        key: the column or columns that a row is known by.
        free: columns whose values are not compared.
        tolerance: floating-point numbers that differ by at most so much are equal.
        latest: where the output has every update of a key (update mode), the column whose
            greatest value is the last update; other rows of the key are not judged.
    """

    key: tuple[str, ...]
    free: tuple[str, ...]
    tolerance: float
    latest: str

    def __init__(
        self, key: Names, *, free: Names = (), tolerance: float = 0.0, latest: str = ""
    ) -> None:
        if not _names(f"key={key!r}", key):
            raise UsageError("Table(key=…): name the column that a row is known by")
        _names(f"latest={latest!r}", latest)
        _set(
            self,
            key=_names(f"key={key!r}", key),
            free=_names(f"free={free!r}", free),
            tolerance=_positive(tolerance),
            latest=latest,
        )


@dataclass(frozen=True, init=False)
class OuterBag:
    """The rows of an outer join: each row of one side has its matches, or one row without a
    match, never both.

    Args:
        left: the input whose rows are all there; its columns are known by their names.
        free: columns whose values are not compared.
        tolerance: floating-point numbers that differ by at most so much are equal.
    """

    left: str
    free: tuple[str, ...]
    tolerance: float

    def __init__(self, left: str, *, free: Names = (), tolerance: float = 0.0) -> None:
        _set(
            self,
            left=left,
            free=_names(f"free={free!r}", free),
            tolerance=_positive(tolerance),
        )


Compare = Bag | Table | OuterBag


def expect_columns(name: str, compare: Compare, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raises UsageError when no row of a job's output has a column that is to be judged: it would
    be equal in all of them; when one that is free looks misspelt; and when none is left to be
    judged."""
    seen = _columns_of(rows)
    for column in _judged(compare):
        one_of(column, seen, f"{name}: the column of compare =")
    if isinstance(compare, Table) and compare.latest:
        what = (
            "latest= tells which update of a key is the last (leave it out where each has one row):"
        )
        one_of(compare.latest, seen, f"{name}: {what}")
    for column in compare.free:
        like = nearest(column, seen) if column not in seen else None
        if like is not None and like not in compare.free:
            raise UsageError(
                f"{name}: no row has the column {column!r} of free=; did you mean {like}?"
            )
    judged = _judged(compare) or seen
    if not isinstance(compare, Table) and not set(judged) - set(compare.free):
        raise UsageError(f"{name}: free= leaves no column to be compared: {', '.join(judged)}")


def expect_made(name: str, compare: Compare, rows: Sequence[Mapping[str, Any]], maker: str) -> None:
    """Raises UsageError when what says what is right does not say it of a column that is judged."""
    made = _columns_of(rows)
    for column in _judged(compare):
        if column not in made and column not in compare.free:
            raise UsageError(
                f"{name}: the column {column} of compare = is not made by {maker}, which has "
                f"{', '.join(made)}: name columns of both"
            )


def _judged(compare: Compare) -> tuple[str, ...]:
    """The columns that are named to be judged."""
    if isinstance(compare, Table):
        return compare.key
    return compare.columns if isinstance(compare, Bag) else ()


def _columns_of(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column for row in rows for column in row))


def _names(where: str, given: Any) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, tuple | list):
        raise UsageError(f"{where}: write the name of a column, or a list of names")
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"{where}: {name!r} is no name of a column")
    return tuple(names)


def _positive(tolerance: Any) -> float:
    if not is_number(tolerance) or not 0 <= tolerance < math.inf:
        raise UsageError(f"tolerance={tolerance!r}: write a number, 0 or more, e.g. 1e-9")
    return float(tolerance)


def _set(made: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(made, name, value)
