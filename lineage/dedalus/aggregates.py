"""Aggregates over groups of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bettong.lineage.dedalus.errors import DedalusError
from bettong.lineage.dedalus.lowering import Aggregation
from bettong.lineage.dedalus.syntax import Value
from bettong.lineage.dedalus.tables import Row

# An aggregate's possible outcomes are enumerated; a sum of many different values has too many.
MAX_OUTCOMES = 20_000

TALLIES = ("count", "sum")
"""Aggregates to whose outcome every row of the group contributes."""

Outcome = tuple[Value, ...]


def groups(aggregation: Aggregation, rows: Iterable[Row]) -> dict[Row, list[Row]]:
    """Rows of the source by the columns of their group."""
    keep = [c for c, function in aggregation.layout if function is None]
    found: dict[Row, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple([row[c] for c in keep]), []).append(row)
    return found


def head(aggregation: Aggregation, group: Row, outcome: Outcome) -> Row:
    """The row that a group with this outcome gives."""
    kept, made = iter(group), iter(outcome)
    return tuple(
        [next(kept) if function is None else next(made) for _, function in aggregation.layout]
    )


def outcome(aggregation: Aggregation, rows: Sequence[Row]) -> Outcome:
    """What the aggregates make of a group's rows (one at least)."""
    found: Outcome | None = None
    for row in rows:
        found = _add(aggregation, found, row)
    assert found is not None
    return found


def outcomes(
    aggregation: Aggregation, certain: Sequence[Row], possible: Sequence[Row]
) -> set[Outcome]:
    """Everything that may come out when the certain rows are there and any of the others."""
    found: set[Outcome | None] = {outcome(aggregation, certain) if certain else None}
    for row in possible:
        found |= {_add(aggregation, before, row) for before in found}
        if len(found) > MAX_OUTCOMES:
            raise DedalusError(
                aggregation.position,
                f"an aggregate of {aggregation.label} has more than {MAX_OUTCOMES:,} possible "
                "outcomes within these bounds: take a smaller EOT",
            )
    return {o for o in found if o is not None}


def deciding(aggregation: Aggregation, rows: Sequence[Row]) -> Row | None:
    """The row that alone decides the outcome, where the aggregate is one ``min`` or ``max``."""
    if not rows or len(_functions(aggregation)) != 1 or _functions(aggregation)[0][1] in TALLIES:
        return None
    best = rows[0]
    for row in rows[1:]:
        if beats(aggregation, row, best):
            best = row
    return best


def beats(aggregation: Aggregation, row: Row, best: Row) -> bool:
    """Whether a row would take the place of the deciding one."""
    column, function = _functions(aggregation)[0]
    return row[column] != best[column] and (
        _next(aggregation, function, best[column], row[column]) == row[column]
    )


def _functions(aggregation: Aggregation) -> list[tuple[int, str]]:
    return [(c, f) for c, f in aggregation.layout if f is not None]


def _add(aggregation: Aggregation, before: Outcome | None, row: Row) -> Outcome:
    functions = _functions(aggregation)
    if before is None:
        return tuple([_first(aggregation, f, row[c]) for c, f in functions])
    return tuple(
        [_next(aggregation, f, b, row[c]) for b, (c, f) in zip(before, functions, strict=True)]
    )


def _first(aggregation: Aggregation, function: str, value: Value) -> Value:
    if function == "count":
        return 1
    if function == "sum" and not isinstance(value, int):
        raise DedalusError(
            aggregation.position, f'sum<…> in {aggregation.label} needs numbers, not "{value}"'
        )
    return value


def _next(aggregation: Aggregation, function: str, before: Value, value: Value) -> Value:
    if function == "count":
        assert isinstance(before, int)
        return before + 1
    if function == "sum":
        total = _first(aggregation, function, value)
        assert isinstance(before, int) and isinstance(total, int)
        return before + total
    if isinstance(before, int) != isinstance(value, int):
        raise DedalusError(
            aggregation.position,
            f"{function}<…> in {aggregation.label} compares a number with a string: "
            f"{before!r}, {value!r}",
        )
    low = before < value  # type: ignore[operator]
    return before if low == (function == "min") else value
