"""When an output of a stream is right: pure functions from rows to what is wrong with them.

Rows are dicts of JSON values. *Must* rows have to be there, *optional* ones may be: derived from
rows that the watermark may drop, or from a closing row.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

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
        between: in tables, numbers may lie between those of the rows given for a key, some of which
            count rows that may be dropped.
    """

    must: Sequence[Row]
    optional: Sequence[Row] = ()
    free: frozenset[str] = frozenset()
    free_cells: frozenset[tuple[Cell, str]] = frozenset()
    dealt: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    open: bool = False
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


def canonical(value: Any) -> Any:
    """A value that can be hashed, equal for values that are."""
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    if isinstance(value, float) and value == int(value) if _finite(value) else False:
        return int(value)
    return value


def _finite(value: Any) -> bool:
    return isinstance(value, float) and value - value == 0


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


def near(a: Any, b: Any, tolerance: float) -> bool:
    """Equality, in which numbers may differ by the tolerance."""
    if canonical(a) == canonical(b):
        return True
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (a, b))
    return numbers and bool(abs(a - b) <= tolerance or (a != a and b != b))


def bag_difference(
    expected: Expected, seen: Sequence[Row], columns: Sequence[str], tolerance: float = 0.0
) -> Difference:
    """Bags: a row that is missing is a Loss, one too many of a row a Duplicate, a row that is
    not expected a Phantom. A missing row and a phantom that agree in most columns are one Corrupt.
    """
    names = [name for name in columns if name not in expected.free]
    wanted = [(cell_of(row, names), row) for row in expected.must]
    found = [(cell_of(row, names), row) for row in seen]
    missing, left = _matched(wanted, found, tolerance)
    allowed = [(cell_of(row, names), row) for row in expected.optional]
    _, left = _matched(allowed, left, tolerance)
    known = {cell for cell, _ in wanted}
    twice = [row for cell, row in left if cell in known]
    others = [row for cell, row in left if cell not in known]
    result = Difference()
    times = Counter(cell for cell, _ in found)
    once = Counter(cell for cell, _ in wanted)
    for cell, row in {cell_of(row, names): row for row in twice}.items():
        result.anomalies.append(
            Anomaly(
                "Duplicate",
                (shown(row, names),),
                expected={"times": once[cell]},
                seen={"times": times[cell]},
            )
        )
    pairs = [] if expected.open else _pairs([row for _, row in missing], others, names)
    for right, wrong in pairs:
        result.anomalies.append(_corrupt(right, wrong, names))
    paired = {id(row) for pair in pairs for row in pair}
    for _, row in missing:
        if id(row) not in paired:
            result.anomalies.append(Anomaly("Loss", (shown(row, names),), expected=dict(row)))
    for row in others:
        if id(row) in paired:
            continue
        if expected.open:
            result.unjudged.append(shown(row, names))
        else:
            result.anomalies.append(Anomaly("Phantom", (shown(row, names),), seen=dict(row)))
    result.anomalies += [] if result.anomalies else _dealt_otherwise(expected, seen)
    return result


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
    wanted: Sequence[tuple[Cell, Row]], found: Sequence[tuple[Cell, Row]], tolerance: float
) -> tuple[list[tuple[Cell, Row]], list[tuple[Cell, Row]]]:
    """What is wanted and not found, and what is found and not wanted."""
    by_cell: dict[Cell, list[tuple[Cell, Row]]] = defaultdict(list)
    for item in found:
        by_cell[item[0]].append(item)
    missing = []
    for item in wanted:
        if by_cell[item[0]]:
            by_cell[item[0]].pop(0)
        else:
            missing.append(item)
    left = [item for items in by_cell.values() for item in items]
    if tolerance:
        for item in list(missing):
            like = next((x for x in left if _near(item[0], x[0], tolerance)), None)
            if like is not None:
                missing.remove(item)
                left.remove(like)
    return missing, left


def _near(a: Cell, b: Cell, tolerance: float) -> bool:
    return all(near(x, y, tolerance) for x, y in zip(a, b, strict=True))


def _pairs(
    missing: Sequence[Row], others: Sequence[Row], columns: Sequence[str]
) -> list[tuple[Row, Row]]:
    """Rows that are missing with those that stand in their place: all columns but one agree."""
    free, pairs = list(others), []
    for right in missing if len(columns) > 1 else ():
        for wrong in free:
            agree = sum(canonical(right.get(n)) == canonical(wrong.get(n)) for n in columns)
            if agree == len(columns) - 1:
                pairs.append((right, wrong))
                free.remove(wrong)
                break
    return pairs


def _corrupt(right: Row, wrong: Row, columns: Sequence[str]) -> Anomaly:
    differ = [n for n in columns if canonical(right.get(n)) != canonical(wrong.get(n))]
    same = [n for n in columns if n not in differ]
    return Anomaly(
        "Corrupt",
        (shown(right, same),),
        expected={n: right.get(n) for n in differ},
        seen={n: wrong.get(n) for n in differ},
        note=f"{', '.join(differ)} differ(s)",
    )


def table_difference(
    expected: Expected, seen: Sequence[Row], key: Sequence[str], tolerance: float = 0.0
) -> Difference:
    """Tables: one row of each key. Two are a Duplicate, none a Loss, another value is Corrupt."""
    result = Difference()
    by_key: dict[Cell, list[Row]] = defaultdict(list)
    for row in seen:
        by_key[cell_of(row, key)].append(row)
    must = {cell_of(row, key): row for row in expected.must}
    optional: dict[Cell, list[Row]] = defaultdict(list)
    for row in expected.optional:
        optional[cell_of(row, key)].append(row)
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
        within = expected.between and any(between(a, b, rows[0]) for a in rights for b in rights)
        if not within and not any(
            _like(expected, cell, right, rows[0], tolerance) for right in rights
        ):
            differ = [n for n in rights[0] if not near(rights[0][n], rows[0].get(n), tolerance)]
            result.anomalies.append(
                Anomaly(
                    "Corrupt",
                    (shown(rows[0], key),),
                    expected={n: rights[0][n] for n in differ},
                    seen={n: rows[0].get(n) for n in differ},
                    note=f"{', '.join(differ)} differ(s)",
                )
            )
    result.anomalies += [] if result.anomalies else _dealt_otherwise(expected, seen)
    return result


def _like(expected: Expected, cell: Cell, right: Row, row: Row, tolerance: float) -> bool:
    return all(
        near(right[name], row.get(name), tolerance)
        for name in right
        if name not in expected.free and (cell, name) not in expected.free_cells
    )


def latest_of_each(rows: Iterable[Row], key: Sequence[str], latest: str) -> list[Row]:
    """Update mode: of each key the row of its last update; the number of updates means nothing.

    Equal rows of the last update count once: a replayed batch updates a key to what it was.
    Different rows of the last update are all kept, and are a Duplicate of the key.
    """
    last: dict[Cell, list[Row]] = {}
    for row in rows:
        cell = cell_of(row, key)
        kept = last.get(cell)
        if kept is None or _after(row.get(latest), kept[0].get(latest)):
            last[cell] = [row]
        elif canonical(row.get(latest)) == canonical(kept[0].get(latest)) and row not in kept:
            kept.append(row)
    return [row for kept in last.values() for row in kept]


def _after(a: Any, b: Any) -> bool:
    return b is None or (a is not None and bool(a > b))


def both_matched_and_not(seen: Sequence[Row], left: Sequence[str]) -> list[Anomaly]:
    """Outer joins: rows of the left side that have a match and a row without one, or two rows
    without one."""
    matched: dict[Cell, list[Row]] = defaultdict(list)
    alone: dict[Cell, list[Row]] = defaultdict(list)
    for row in seen:
        others = [value for name, value in row.items() if name not in left]
        (matched if any(v is not None for v in others) else alone)[cell_of(row, left)].append(row)
    return [
        Anomaly(
            "Phantom",
            (shown(rows[0], left),),
            seen=dict(rows[0]),
            note="a row without a match beside one with a match",
        )
        for cell, rows in alone.items()
        if cell in matched
    ]


def between(low: Row, high: Row, seen: Row, tolerance: float = 0.0) -> bool:
    """A group with rows that may count: each number lies between what it is without them and with
    all of them, everything else is as in one of them."""
    for name in low.keys() | high.keys():
        a, b, value = low.get(name), high.get(name), seen.get(name)
        numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (a, b, value))
        if numbers:
            if not min(a, b) - tolerance <= value <= max(a, b) + tolerance:  # type: ignore
                return False
        elif canonical(value) not in (canonical(a), canonical(b)):
            return False
    return True


def late(
    steps: Mapping[str, Sequence[Sequence[Row]]],
    column: Mapping[str, str],
    delay: Mapping[str, float],
) -> dict[str, set[tuple[int, int]]]:
    """Rows that *may* be dropped, as (step, place) by input: their event time is not after the
    watermark of the earlier steps, which is the least over all sources of the greatest event time
    less the delay.

    Args:
        steps: the rows of each step, by input.
        column: the event time's column, by input; inputs without one have no watermark.
        delay: seconds, by input.
    """

    def seconds(value: Any) -> float:
        at = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()

    found: dict[str, set[tuple[int, int]]] = {name: set() for name in steps}
    greatest: dict[str, float] = {}
    for number in range(max((len(each) for each in steps.values()), default=0)):
        marks = [greatest[n] - delay[n] for n in column if n in greatest]
        watermark = min(marks) if len(marks) == len(column) and marks else None
        for name, each in steps.items():
            at = column.get(name)
            for place, row in enumerate(each[number] if number < len(each) else ()):
                if at is None or row.get(at) is None:
                    continue
                if watermark is not None and seconds(row[at]) <= watermark:
                    found[name].add((number, place))
        for name, at in column.items():
            times = [seconds(r[at]) for r in _step(steps[name], number) if r.get(at) is not None]
            if times:
                greatest[name] = max([*times, *([greatest[name]] if name in greatest else [])])
    return found


def _step(steps: Sequence[Sequence[Row]], number: int) -> Sequence[Row]:
    return steps[number] if number < len(steps) else ()
