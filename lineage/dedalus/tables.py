"""Relations' contents in one round, with the indexes that the rules ask for."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from bettong.lineage.dedalus.syntax import Value

Row = tuple[Value, ...]
Columns = tuple[int, ...]

NO_ROWS: list[Row] = []
_ranks = count()


class Table:
    """Rows in the order of their arrival, each once.

    Attributes:
        rows: row -> its rank: a row's rank is higher than that of all rows, of any table of the
            same round, from which it was first derived.
        indexes: columns -> key -> rows. The key is the value itself when there is one column.
    """

    __slots__ = ("indexes", "rows")

    def __init__(self, indexed: Iterable[Columns] = ()) -> None:
        self.rows: dict[Row, int] = {}
        self.indexes: dict[Columns, dict[Any, list[Row]]] = {c: {} for c in indexed}

    def add(self, row: Row) -> bool:
        """Add a row; whether it was new."""
        if row in self.rows:
            return False
        self.rows[row] = next(_ranks)
        for columns, index in self.indexes.items():
            key = row[columns[0]] if len(columns) == 1 else tuple([row[c] for c in columns])
            found = index.get(key)
            if found is None:
                index[key] = [row]
            else:
                found.append(row)
        return True

    def matching(self, columns: Columns, key: Any) -> Iterable[Row]:
        """Rows with these values in these columns; the columns must be indexed, all, or none."""
        if not columns:
            return self.rows
        index = self.indexes.get(columns)
        if index is not None:
            return index.get(key, NO_ROWS)
        row = key if isinstance(key, tuple) else (key,)
        return (row,) if row in self.rows else ()
