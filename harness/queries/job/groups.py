"""Which columns tell the groups of an aggregation apart, seen from outputs that count more rows and
fewer: a group with rows that may count is there in each of them, with other values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from bettong.harness.queries.job.rules import Row, cell_of
from bettong.harness.queries.job.values import is_number

_MOST_COLUMNS = 8


def group_key(outputs: Sequence[Sequence[Row]], columns: Sequence[str]) -> tuple[str, ...] | None:
    """The columns, or None where nothing can be said: no output has two rows of a group, and the
    groups of the last output, which counts the fewest rows, are in all. Texts are rather a part of
    the key than numbers are."""
    numbers = {n for n in columns for rows in outputs for row in rows if is_number(row.get(n))}
    texts = [name for name in columns if name not in numbers]
    for level in _levels(texts, [name for name in columns if name in numbers]):
        found = [key for key in level if _tells_apart(outputs, key)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _levels(texts: Sequence[str], numbers: Sequence[str]) -> Iterator[list[tuple[str, ...]]]:
    """Keys that are as likely as each other; never all columns, which are no group's."""
    many = len(texts) + len(numbers) > _MOST_COLUMNS
    for kept in range(len(texts), len(texts) - 1 if many else -1, -1):
        for added in range(1 if many else len(numbers) + 1):
            if kept + added < len(texts) + len(numbers):
                yield [
                    (*some, *more)
                    for some in combinations(texts, kept)
                    for more in combinations(numbers, added)
                ]


def _tells_apart(outputs: Sequence[Sequence[Row]], key: Sequence[str]) -> bool:
    cells = [[cell_of(row, key) for row in rows] for rows in outputs]
    once = all(len(set(each)) == len(each) for each in cells)
    return once and all(set(cells[-1]) <= set(each) for each in cells)
