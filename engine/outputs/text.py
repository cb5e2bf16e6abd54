"""Rows of the engine as the columns that sinks write."""

from __future__ import annotations

from collections.abc import Sequence

from bettong.engine.keys import Key
from bettong.engine.receiver.rows import Columns
from bettong.engine.receiver.rows import Row as TextRow
from bettong.engine.sinks import Row


def key_text(key: Key | None) -> str | None:
    """A key as people read it."""
    if isinstance(key, bytes):
        return key.decode(errors="backslashreplace")
    return None if key is None else str(key)


def columns_of(rows: Sequence[Row]) -> Columns:
    """The rows, column by column."""
    return Columns.of([TextRow(row.id, key_text(row.key), row.data) for row in rows])
