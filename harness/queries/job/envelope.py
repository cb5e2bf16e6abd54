"""The envelope of clean runs: what is the same in all of them is judged exactly, what varies is
free, and is reported.

Runs of one job without a fault, with batches cut in other ways, may give other outputs: a first
value, the time of a batch, the number of updates. What an output does not promise between two
clean runs cannot be a fault's doing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice, permutations
from typing import Any

from bettong.harness.queries.job.compare import Bag, Compare, OuterBag, Table
from bettong.harness.queries.job.rules import (
    Cell,
    Expected,
    Row,
    bag_difference,
    cell_of,
    latest_of_each,
    shown,
)
from bettong.harness.queries.job.values import canonical, near

_SAME = "the same twice"
_MOST_COLUMNS = 8
_MOST_TRIES = 1_000
"""Where more columns would have to be tried, rows are freed: they are many."""


@dataclass(frozen=True)
class Envelope:
    """What clean runs have in common.

    Attributes:
        expected: it.
        varying: what depends on how batches are cut, a sentence each.
        blind: why nothing can be judged any more, or empty.
    """

    expected: Expected
    varying: tuple[str, ...] = ()
    blind: str = ""


def envelope(compare: Compare, runs: Mapping[str, Sequence[Row]]) -> Envelope:
    """The envelope of clean runs by the name of their variant; the first one is the plain run."""
    if isinstance(compare, Table):
        return _of_tables(compare, runs)
    return _of_bags(compare, runs)


def columns_of(compare: Compare, rows: Sequence[Row]) -> list[str]:
    """The columns that are compared of bags: those that are named, else all that are there."""
    named = list(compare.columns) if isinstance(compare, Bag) else []
    found = list(dict.fromkeys(name for row in rows for name in row))
    return [name for name in named or found if name not in compare.free]


def _of_bags(compare: Bag | OuterBag, runs: Mapping[str, Sequence[Row]]) -> Envelope:
    plain, *others = runs.items()
    columns = columns_of(compare, plain[1])

    def alike(kept: Sequence[str]) -> bool:
        return all(_same(plain[1], rows, kept, compare.tolerance) for _, rows in others)

    odd = {name for name in columns if not alike([name])}
    rest = [name for name in columns if name not in odd]
    most = min(len(columns), _MOST_COLUMNS) - len(odd)
    some = chain.from_iterable(combinations(rest, count) for count in range(most + 1))
    for more in islice(some, _MOST_TRIES):
        freed = [name for name in columns if name in odd or name in more]
        kept = [name for name in rest if name not in more]
        if alike(kept):
            return _with_columns_freed(plain[1], freed, kept, runs, columns, compare)
    return _with_rows_freed(runs, columns, compare)


def _same(a: Sequence[Row], b: Sequence[Row], columns: Sequence[str], tolerance: float) -> bool:
    return len(a) == len(b) and not bag_difference(Expected(a), b, columns, tolerance).anomalies


def _with_columns_freed(
    rows: Sequence[Row],
    freed: Sequence[str],
    kept: Sequence[str],
    runs: Mapping[str, Sequence[Row]],
    columns: Sequence[str],
    compare: Bag | OuterBag,
) -> Envelope:
    plain = next(iter(runs.values()))
    names = [n for n, r in runs.items() if not _same(plain, r, columns, compare.tolerance)]
    free = frozenset((*freed, *compare.free))
    varying = [f"the column {name} is another with {_listed(names)}" for name in freed]
    blind = ""
    if freed and not kept:
        blind = f"every column is another with {_listed(names)}: nothing of a row can be judged"
    expected = Expected(rows, free=free, dealt=_dealt(runs.values(), freed))
    return Envelope(expected, tuple(varying), blind)


def _dealt(runs: Iterable[Sequence[Row]], freed: Iterable[str]) -> dict[str, frozenset[Any]]:
    """The columns that are free only in which row has which value, such as a number that rows get
    in the order in which they come: every run has the same values, all of them different."""
    found = {}
    for name in freed:
        dealt = [Counter(canonical(row.get(name)) for row in rows) for rows in runs]
        exact = not any(isinstance(value, float) for value in dealt[0])
        if exact and set(dealt[0].values()) == {1} and all(one == dealt[0] for one in dealt):
            found[name] = frozenset(dealt[0])
    return found


def _with_rows_freed(
    runs: Mapping[str, Sequence[Row]], columns: Sequence[str], compare: Bag | OuterBag
) -> Envelope:
    """How many rows there are varies: those of every run must be there, others may."""
    counts = {name: Counter(cell_of(r, columns) for r in rows) for name, rows in runs.items()}
    example = {cell_of(r, columns): r for rows in runs.values() for r in rows}
    least, most = Counter[Cell](), Counter[Cell]()
    for cell in example:
        times = [count[cell] for count in counts.values()]
        least[cell], most[cell] = min(times), max(times)
    must = [example[cell] for cell in example for _ in range(least[cell])]
    optional = [example[cell] for cell in example for _ in range(most[cell] - least[cell])]
    sizes = ", ".join(f"{len(rows)} with {name}" for name, rows in runs.items())
    some = "; ".join(shown(row, columns) for row in optional[:3])
    note = f"which rows there are varies: {sizes}; for instance {some}{_left_out(counts)}"
    blind = ""
    if not must:
        plain, *others = counts
        odd = [name for name in others if not counts[plain] & counts[name]] or others
        blind = f"no row is the same with {_listed(odd)}: nothing can be judged"
    free = frozenset(compare.free)
    return Envelope(Expected(must, optional, free=free, open=True), (note,), blind)


def _left_out(counts: Mapping[str, Counter[Cell]]) -> str:
    """What to look at, where a run has rows of another one and no others."""
    for less, more in permutations(counts, 2):
        if counts[less] < counts[more]:
            return (
                f"; all that is there with {less} is there with {more}, and more is: look whether "
                "a batch takes the place of what another one has written, or leaves rows out"
            )
    return ""


def _of_tables(compare: Table, runs: Mapping[str, Sequence[Row]]) -> Envelope:
    tables = {name: table_of(compare, rows) for name, rows in runs.items()}
    plain = next(iter(tables.values()))
    free_cells: set[tuple[Cell, str]] = set()
    by_column: dict[str, set[str]] = defaultdict(set)
    optional, varying = [], []
    keys = dict.fromkeys(cell for table in tables.values() for cell in table)
    times = {name: _times(compare, rows) for name, rows in runs.items()}
    for cell in keys:
        twice = [f"{count[cell]} times with {name}" for name, count in times.items()]
        if len({count[cell] for count in times.values() if count[cell]}) > 1:
            varying.append(f"{shown(_any(tables, cell), compare.key)} is there {_listed(twice)}")
        missing = [name for name, table in tables.items() if cell not in table]
        rows = [(name, table[cell]) for name, table in tables.items() if cell in table]
        for column in dict.fromkeys(column for _, row in rows for column in row):
            if column in (*compare.free, *compare.key, compare.latest):
                continue
            first = rows[0][1].get(column)
            other = [n for n, row in rows if not near(first, row.get(column), compare.tolerance)]
            if other:
                free_cells.add((cell, column))
                by_column[column].update(other)
        if missing:
            optional.append(rows[0][1])
            varying.append(f"{shown(rows[0][1], compare.key)} is not there with {_listed(missing)}")
    for column, names in by_column.items():
        some = sum(1 for _, name in free_cells if name == column)
        varying.append(
            f"the column {column} of {some} key(s) is another with {_listed(sorted(names))}"
        )
    must = [row for cell, row in plain.items() if all(cell in table for table in tables.values())]
    free = frozenset((*compare.free, *([compare.latest] if compare.latest else [])))
    judged = [
        (cell, name)
        for cell, row in plain.items()
        for name in row
        if name not in compare.key and name not in free
    ]
    blind = ""
    if not must or (judged and all(cell in free_cells for cell in judged)):
        others = list(tables)[1:]
        odd = [name for name in others if not _agree(compare, judged, plain, tables[name])]
        blind = (
            f"every value is another, or not there, with {_listed(odd or others)}: nothing of a "
            "row can be judged"
        )
    dealt = _dealt([list(table.values()) for table in tables.values()], by_column)
    return Envelope(
        Expected(must, optional, free, frozenset(free_cells), dealt, open=bool(optional)),
        tuple(varying),
        blind,
    )


def _agree(
    compare: Table,
    judged: Sequence[tuple[Cell, str]],
    plain: Mapping[Cell, Row],
    other: Mapping[Cell, Row],
) -> bool:
    """Whether two tables have any value, or any key if nothing else is judged, in common."""
    if not judged:
        return not plain.keys().isdisjoint(other)
    return any(
        cell in other and near(plain[cell][name], other[cell].get(name), compare.tolerance)
        for cell, name in judged
    )


def _times(compare: Table, rows: Sequence[Row]) -> Counter[Cell]:
    """How many rows each key has, updates folded."""
    return Counter(cell_of(row, compare.key) for row in folded(compare, rows))


def _any(tables: Mapping[str, Mapping[Cell, Row]], cell: Cell) -> Row:
    return next(table[cell] for table in tables.values() if cell in table)


def folded(compare: Compare, rows: Sequence[Row]) -> Sequence[Row]:
    """Where every update of a key is there, the last one of each."""
    if not isinstance(compare, Table) or not compare.latest:
        return rows
    return latest_of_each(rows, compare.key, compare.latest, compare.free, compare.tolerance)


def table_of(compare: Table, rows: Sequence[Row]) -> dict[Cell, Row]:
    """The rows of a clean run by their key, updates folded."""
    return {cell_of(row, compare.key): row for row in folded(compare, rows)}


def differ(compare: Compare, first: Sequence[Row], second: Sequence[Row]) -> str:
    """In what two runs of the same variant differ, or nothing."""
    found = envelope(compare, {"one run": first, "another": second})
    return found.varying[0] if found.varying else ""


def in_two_runs(text: str) -> str:
    """In what two runs of the same variant differ, and what to do about it."""
    if text.startswith("the column "):
        each = text.replace(" is another with another", " is another each time")
        return f"{each}: declare such a column in free=, or nothing can be concluded"
    return (
        f"{text}: nothing can be concluded while chance or the time of day (rand(), uuid(), now()) "
        "decides which rows there are, or what they are known by: have columns of the input do that"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
