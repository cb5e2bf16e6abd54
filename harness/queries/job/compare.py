"""How two outputs of a job are compared: as bags, as tables by key, as the bag of an outer join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import one_of

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
        _set(self, columns=columns, free=_names(free), tolerance=_positive(tolerance))


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
        if not _names(key):
            raise UsageError("Table(key=…): name the column that a row is known by")
        _set(
            self,
            key=_names(key),
            free=_names(free),
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
        _set(self, left=left, free=_names(free), tolerance=_positive(tolerance))


Compare = Bag | Table | OuterBag


def expect_columns(name: str, compare: Compare, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raises UsageError when no row of a job's output has a column that is to be judged: it would
    be equal in all of them."""
    named: tuple[str, ...] = ()
    if isinstance(compare, Bag):
        named = compare.columns
    elif isinstance(compare, Table):
        named = (*compare.key, *filter(None, [compare.latest]))
    seen = tuple(dict.fromkeys(column for row in rows for column in row))
    for column in named:
        one_of(column, seen, f"{name}: the column of compare =")


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _positive(tolerance: float) -> float:
    if tolerance < 0:
        raise UsageError(f"tolerance={tolerance}: it is not negative")
    return tolerance


def _set(made: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(made, name, value)
