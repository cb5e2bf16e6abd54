"""When an output of a stream is right: pure functions from rows to what is wrong with them.

Rows are dicts of JSON values. *Must* rows have to be there, *optional* ones may be: derived from
rows that the watermark may drop, or from a closing row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from itertools import combinations
from typing import Any

from bettong.harness.queries.job.values import canonical, is_number, near
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Anomaly

Row = Mapping[str, Any]
Cell = tuple[Any, ...]

_SHOWN = 120


@dataclass(frozen=True)
class Expected:
    """What an output is held against.

    Attributes:
        must: rows that have to be there.
        optional: further rows that may be there.
        free: columns whose values are not judged.
        free_cells: (key, column) whose value is not judged, in tables.
        dealt: columns of which it is free which row has which value, with their values: each of
            them has to be there once.
        open: other rows may be there too, and nothing is known of them.
        groups: of each of these, one row has to be there and no more.
        maybe: of each of these, one row may be there and no more.
        between: numbers may lie between those of the rows given for a key or a group, some of which
            count rows that may be dropped.
    """

    must: Sequence[Row]
    optional: Sequence[Row] = ()
    free: frozenset[str] = frozenset()
    free_cells: frozenset[tuple[Cell, str]] = frozenset()
    dealt: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    open: bool = False
    groups: Sequence[Sequence[Row]] = ()
    maybe: Sequence[Sequence[Row]] = ()
    between: bool = False


@dataclass
class Difference:
    """Of what was seen from what was expected.

    Attributes:
        anomalies: what is wrong.
        unjudged: rows of which nothing is known.
    """

    anomalies: list[Anomaly] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)


def cell_of(row: Row, columns: Iterable[str]) -> Cell:
    """The values of some columns."""
    return tuple(canonical(row.get(name)) for name in columns)


def shown(row: Row, columns: Iterable[str] | None = None) -> str:
    """A row as a witness: ``user=a, count=2``."""
    names = list(columns) if columns is not None else list(row)
    text = ", ".join(f"{name}={_short(row.get(name))}" for name in names)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "/".join(_short(part) for part in value.values())
    return str(value)


def bag_difference(
    expected: Expected, seen: Sequence[Row], columns: Sequence[str], tolerance: float = 0.0
) -> Difference:
    """Bags: a row that is missing is a Loss, one too many of a row a Duplicate, a row that is
    not expected a Phantom. A missing row and a phantom that agree in most columns are one Corrupt.
    """
    names = [name for name in columns if name not in expected.free]
    found = matched(expected, seen, names, tolerance)
    missing, left, groups = found.missing, found.left, (*expected.groups, *expected.maybe)
    # Where nothing is known of other rows, one more of those that may be there is such a row.
    known = [*expected.must, *(() if expected.open else expected.optional)]
    again: dict[Cell, Row] = {}
    others = []
    for row in left:
        of_group = any(
            is_one_of(group, row, names, tolerance, expected.between) for group in groups
        )
        if of_group or any(_near(one, row, names, tolerance) for one in known):
            again.setdefault(cell_of(row, names), row)
        else:
            others.append(row)
    result = Difference()
    for row in again.values():
        result.anomalies.append(
            Anomaly(
                "Duplicate",
                (shown(row, names),),
                expected={"times": max(1, _times(row, known, names, tolerance))},
                seen={"times": _times(row, seen, names, tolerance)},
            )
        )
    pairs = [] if expected.open else _pairs(missing, others, names)
    for right, wrong in pairs:
        one, other = missing[right], others[wrong]
        differ = [n for n in names if canonical(one.get(n)) != canonical(other.get(n))]
        same = shown(one, [n for n in names if n not in differ])
        result.anomalies.append(_corrupt(same, one, other, differ))
    instead, corrupt = {right for right, _ in pairs}, {wrong for _, wrong in pairs}
    for place, row in enumerate(missing):
        if place not in instead:
            result.anomalies.append(Anomaly("Loss", (shown(row, names),), expected=dict(row)))
    for place, row in enumerate(others):
        if place in corrupt:
            continue
        if expected.open:
            result.unjudged.append(shown(row, names))
        else:
            result.anomalies.append(Anomaly("Phantom", (shown(row, names),), seen=dict(row)))
    result.anomalies += [] if result.anomalies else _dealt_otherwise(expected, seen)
    return result


@dataclass(frozen=True)
class Matched:
    """Which rows of an output are which of those that are expected.

    Attributes:
        missing: rows that have to be there and are not.
        of_group: of each group that has to be there, then of each that may be, its row.
        unused: rows that may be there and are not.
        left: rows of the output that are none of these.
    """

    missing: list[Row]
    of_group: list[Row | None]
    unused: list[Row]
    left: list[Row]


def matched(
    expected: Expected, seen: Sequence[Row], columns: Sequence[str], tolerance: float
) -> Matched:
    """Match the rows of an output with those that are expected."""
    missing, left = _matched(expected.must, seen, columns, tolerance)
    of_group: list[Row | None] = []
    for number, group in enumerate((*expected.groups, *expected.maybe)):
        of = (is_one_of(group, row, columns, tolerance, expected.between) for row in left)
        place = next((n for n, found in enumerate(of) if found), None)
        of_group.append(None if place is None else left.pop(place))
        if place is None and number < len(expected.groups):
            missing.append(group[0])
    unused, left = _matched(expected.optional, left, columns, tolerance)
    return Matched(missing, of_group, unused, left)


def _times(row: Row, among: Sequence[Row], columns: Sequence[str], tolerance: float) -> int:
    return sum(_near(one, row, columns, tolerance) for one in among)


def _dealt_otherwise(expected: Expected, seen: Sequence[Row]) -> list[Anomaly]:
    """The rows are right in all that is judged of them: what shows one that stands in another's
    place is a value that is there twice or not at all."""
    found = []
    for name, values in expected.dealt.items():
        times = Counter(canonical(row.get(name)) for row in seen)
        note = f"each run without a fault has each {name} once"
        for value in sorted(values - times.keys(), key=str):
            lost = {name: value}
            found.append(Anomaly("Loss", (shown(lost),), expected=lost, note=note))
        for value, number in times.items():
            if value not in values:
                other = {name: value}
                found.append(Anomaly("Phantom", (shown(other),), seen=other, note=note))
            elif number > 1:
                found.append(
                    Anomaly(
                        "Duplicate",
                        (shown({name: value}),),
                        expected={"times": 1},
                        seen={"times": number},
                        note=note,
                    )
                )
    return found


def _matched(
    wanted: Sequence[Row], found: Sequence[Row], columns: Sequence[str], tolerance: float
) -> tuple[list[Row], list[Row]]:
    """What is wanted and not found, and what is found and not wanted."""
    by_cell: dict[Cell, list[Row]] = defaultdict(list)
    for row in found:
        by_cell[cell_of(row, columns)].append(row)
    missing = []
    for row in wanted:
        same = by_cell[cell_of(row, columns)]
        if same:
            same.pop(0)
        else:
            missing.append(row)
    left = [row for rows in by_cell.values() for row in rows]
    if tolerance and missing and left:
        return _matched_nearly(wanted, found, columns, tolerance)
    return missing, left


def _matched_nearly(
    wanted: Sequence[Row], found: Sequence[Row], columns: Sequence[str], tolerance: float
) -> tuple[list[Row], list[Row]]:
    """The same, with as many as can be matched: one that is near two may be needed by either."""
    near_to = [
        [n for n, one in enumerate(found) if _near(row, one, columns, tolerance)] for row in wanted
    ]
    taken: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for n in sorted(near_to[row], key=taken.__contains__):
            if n not in tried:
                tried.add(n)
                if n not in taken or place(taken[n], tried):
                    taken[n] = row
                    return True
        return False

    missing = [row for n, row in enumerate(wanted) if not place(n, set())]
    return missing, [row for n, row in enumerate(found) if n not in taken]


def _near(a: Row, b: Row, columns: Iterable[str], tolerance: float) -> bool:
    return all(near(a.get(name), b.get(name), tolerance) for name in columns)


def _pairs(
    missing: Sequence[Row], others: Sequence[Row], columns: Sequence[str]
) -> list[tuple[int, int]]:
    """Places of rows that are missing with those of rows that stand for them: all columns but one
    agree."""
    free, pairs = list(range(len(others))), []
    for place, right in enumerate(missing) if len(columns) > 1 else ():
        for other in free:
            wrong = others[other]
            agree = sum(canonical(right.get(n)) == canonical(wrong.get(n)) for n in columns)
            if agree == len(columns) - 1:
                pairs.append((place, other))
                free.remove(other)
                break
    return pairs


def _corrupt(name: str, right: Row, wrong: Row, differ: Sequence[str]) -> Anomaly:
    return Anomaly(
        "Corrupt",
        (name,),
        expected={n: right.get(n) for n in differ},
        seen={n: wrong.get(n) for n in differ},
        note=f"{', '.join(differ)} differ(s)",
    )


def table_difference(
    expected: Expected,
    seen: Sequence[Row],
    key: Sequence[str],
    tolerance: float = 0.0,
    further: Iterable[str] = (),
) -> Difference:
    """Tables: one row of each key. Two are a Duplicate, none a Loss, another value is Corrupt.

    Args:
        further: columns that are judged though no expected row has them: they are null there.
    """
    result = Difference()
    by_key: dict[Cell, list[Row]] = defaultdict(list)
    for row in seen:
        by_key[cell_of(row, key)].append(row)
    must = {cell_of(row, key): row for row in expected.must}
    optional: dict[Cell, list[Row]] = defaultdict(list)
    for row in expected.optional:
        optional[cell_of(row, key)].append(row)
    known = (name for row in (*expected.must, *expected.optional) for name in row)
    columns = [n for n in dict.fromkeys((*known, *further)) if n not in expected.free]
    for cell, row in must.items():
        if cell not in by_key:
            result.anomalies.append(Anomaly("Loss", (shown(row, key),), expected=dict(row)))
    for cell, rows in by_key.items():
        if len(rows) > 1:
            result.anomalies.append(
                Anomaly(
                    "Duplicate",
                    (shown(rows[0], key),),
                    expected={"times": 1},
                    seen={"times": len(rows)},
                )
            )
        rights = [*([must[cell]] if cell in must else []), *optional[cell]]
        if not rights:
            if expected.open:
                result.unjudged.append(shown(rows[0], key))
            else:
                result.anomalies.append(
                    Anomaly("Phantom", (shown(rows[0], key),), seen=dict(rows[0]))
                )
            continue
        judged = [name for name in columns if (cell, name) not in expected.free_cells]
        for row in rows:
            if not is_one_of(rights, row, judged, tolerance, expected.between):
                right = rights[0]
                differ = [n for n in judged if not near(right.get(n), row.get(n), tolerance)]
                result.anomalies.append(_corrupt(shown(row, key), right, row, differ))
                break
    result.anomalies += [] if result.anomalies else _dealt_otherwise(expected, seen)
    return result


def is_one_of(
    rights: Sequence[Row],
    row: Row,
    columns: Sequence[str],
    tolerance: float,
    within: bool = False,
) -> bool:
    """Whether it is one of the right rows, or lies between two of them."""
    if any(_near(right, row, columns, tolerance) for right in rights):
        return True
    pairs = combinations(rights, 2) if within else ()
    return any(between(a, b, row, tolerance, columns) for a, b in pairs)


def latest_of_each(
    rows: Iterable[Row],
    key: Sequence[str],
    latest: str,
    free: Iterable[str] = (),
    tolerance: float = 0.0,
) -> list[Row]:
    """Update mode: of each key the row of its last update; the number of updates means nothing.

    Rows of the last update that are equal in all but the free columns count once: a replayed batch
    updates a key to what it was. Others are all kept, and are a Duplicate of the key.
    """
    last: dict[Cell, list[Row]] = {}
    for row in rows:
        cell = cell_of(row, key)
        kept = last.setdefault(cell, [])
        now, before = _order(row.get(latest)), _order(kept[0].get(latest)) if kept else None
        if before is None or now > before:
            last[cell] = [row]
        elif now == before:
            judged = {n for one in (*kept, row) for n in one} - {*free, latest}
            if not any(_near(one, row, judged, tolerance) for one in kept):
                kept.append(row)
    return [row for kept in last.values() for row in kept]


def _order(value: Any) -> tuple[int, Any]:
    """What the greatest of some values is told by: numbers, as text too, by their value."""
    if value is None:
        return 0, 0
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return 2, str(canonical(value))
    return (0, 0) if number.is_nan() else (1, number)  # what is no number has no order


def both_matched_and_not(
    seen: Sequence[Row],
    left: Sequence[str],
    free: Iterable[str] = (),
    expected: Sequence[Row] = (),
) -> list[Anomaly]:
    """Outer joins: rows of the left side that have a match and a row without one, where those that
    are expected have not both: several may look alike."""
    matched, alone = _matched_and_alone(seen, left, free)
    may_match, may_be_alone = _matched_and_alone(expected, left, free)
    both = may_match & may_be_alone.keys()
    return [
        Anomaly(
            "Phantom",
            (shown(rows[0], left),),
            seen=dict(rows[0]),
            note="a row without a match beside one with a match",
        )
        for cell, rows in alone.items()
        if cell in matched - both
    ]


def _matched_and_alone(
    rows: Sequence[Row], left: Sequence[str], free: Iterable[str]
) -> tuple[set[Cell], dict[Cell, list[Row]]]:
    matched: set[Cell] = set()
    alone: dict[Cell, list[Row]] = defaultdict(list)
    for row in rows:
        others = [value for name, value in row.items() if name not in (*left, *free)]
        cell = cell_of(row, left)
        if any(value is not None for value in others):
            matched.add(cell)
        else:
            alone[cell].append(row)
    return matched, alone


def between(
    low: Row, high: Row, seen: Row, tolerance: float = 0.0, columns: Iterable[str] = ()
) -> bool:
    """A group with rows that may count: each number lies between what it is without them and with
    all of them, everything else is as in one of them."""
    for name in columns or low.keys() | high.keys():
        a, b, value = low.get(name), high.get(name), seen.get(name)
        if is_number(a) and is_number(b) and is_number(value):
            slack = tolerance if any(isinstance(x, float) for x in (a, b, value)) else 0
            if not min(a, b) - slack <= value <= max(a, b) + slack:
                return False
        elif canonical(value) not in (canonical(a), canonical(b)):
            return False
    return True


def late(
    steps: Mapping[str, Sequence[Sequence[Row]]],
    column: Mapping[str, str],
    delay: Mapping[str, float],
    greatest_of_all: bool = False,
    together: Iterable[Collection[str]] = (),
) -> dict[str, set[tuple[int, int]]]:
    """Rows that *may* be dropped, as (step, place) by input: their event time is not after the
    watermark of the earlier steps, which is the least over all watermarks of the greatest event
    time less the delay.

    Args:
        steps: the rows of each step, by input.
        column: the event time's column, by input; inputs without one have no watermark.
        delay: seconds, by input.
        greatest_of_all: the watermark is the greatest over all watermarks instead.
        together: inputs that have one watermark; each of the others has its own.
    """
    shared = [sorted(each) for each in together]
    own = [[name] for name in column if not any(name in each for each in shared)]
    found: dict[str, set[tuple[int, int]]] = {name: set() for name in steps}
    greatest: dict[str, float] = {}
    for number in range(max((len(each) for each in steps.values()), default=0)):
        marks = [
            max(greatest[n] - delay[n] for n in each if n in greatest)
            for each in (*shared, *own)
            if any(n in greatest for n in each)
        ]
        watermark = None
        if marks and (greatest_of_all or len(marks) == len(shared) + len(own)):
            watermark = max(marks) if greatest_of_all else min(marks)
        for name, each in steps.items():
            at = column.get(name)
            for place, row in enumerate(each[number] if number < len(each) else ()):
                if at is None or row.get(at) is None:
                    continue
                if watermark is not None and moment(row[at]) <= watermark:
                    found[name].add((number, place))
        for name, at in column.items():
            times = [moment(r[at]) for r in _step(steps[name], number) if r.get(at) is not None]
            if times:
                greatest[name] = max([*times, *([greatest[name]] if name in greatest else [])])
    return found


def moment(value: Any) -> float:
    """A row's event time, in seconds; raises UsageError for what is none."""
    if is_number(value):
        return float(value)  # as Spark reads it
    try:
        at = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        raise UsageError(
            f"the event time {value!r} cannot be read: write e.g. 2024-01-01T00:00:00Z"
        ) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _step(steps: Sequence[Sequence[Row]], number: int) -> Sequence[Row]:
    return steps[number] if number < len(steps) else ()
