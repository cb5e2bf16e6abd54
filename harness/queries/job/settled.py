"""What an oracle leaves open, as clean runs have it.

Which rows come too late, and where the closing row counts, is decided by how the input is cut into
batches: a run that cuts it as the clean ones do has to come to what they have come to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bettong.harness.queries.job.rules import (
    Cell,
    Expected,
    Row,
    cell_of,
    is_one_of,
    matched,
)


def settled_bag(
    expected: Expected, runs: Sequence[Sequence[Row]], columns: Sequence[str], tolerance: float
) -> Expected:
    """With optional rows and groups as clean runs have them: what all of them have must be there,
    what none of them has may not."""
    names = [name for name in columns if name not in expected.free]
    found = [matched(expected, rows, names, tolerance) for rows in runs]
    must, groups, maybe = list(expected.must), [], []
    for number, group in enumerate((*expected.groups, *expected.maybe)):
        rows = [each.of_group[number] for each in found]
        known = [row for row in rows if row is not None]
        if len(known) < len(rows):
            if number < len(expected.groups):
                groups.append(group)
            elif known:
                maybe.append(group)
            continue
        chosen = _chosen(group, known, names, tolerance)
        if len(chosen) == 1:
            must += chosen
        else:
            groups.append(chosen)
    optional = []
    example = {id(row): row for row in expected.optional}
    there = Counter(map(id, expected.optional))
    times = [there - Counter(map(id, each.unused)) for each in found]
    for same, row in example.items():
        each = [count[same] for count in times]
        must += [row] * min(each)
        optional += [row] * (max(each) - min(each))
    return replace(expected, must=must, optional=optional, groups=groups, maybe=maybe)


def settled_table(
    expected: Expected,
    tables: Sequence[Mapping[Cell, Row]],
    key: Sequence[str],
    tolerance: float,
) -> Expected:
    """The same of tables."""
    rights: dict[Cell, list[Row]] = defaultdict(list)
    for row in (*expected.must, *expected.optional):
        rights[cell_of(row, key)].append(row)
    sure = {cell_of(row, key) for row in expected.must}
    must: list[Row] = []
    optional: list[Row] = []
    for cell, each in rights.items():
        rows = [table[cell] for table in tables if cell in table]
        names = sorted({n for row in (*each, *rows) for n in row} - expected.free)
        right = all(is_one_of(each, row, names, tolerance, expected.between) for row in rows)
        if rows and right and len(rows) == len(tables):
            first, *others = _chosen(each, rows, names, tolerance)
            must.append(first)
            optional += others
        elif cell in sure:
            must.append(each[0])
            optional += each[1:]
        elif rows:
            optional += each
    return replace(expected, must=must, optional=optional)


def _chosen(
    rights: Sequence[Row], seen: Sequence[Row], columns: Sequence[str], tolerance: float
) -> list[Row]:
    """Those of the right rows that were seen, and what was seen between them."""
    chosen = [one for one in rights if is_one_of(seen, one, columns, tolerance)]
    chosen += [row for row in seen if not is_one_of(rights, row, columns, tolerance)]
    return list({cell_of(row, columns): row for row in chosen}.values())
