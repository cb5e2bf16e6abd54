"""The steps that probes make of what a sink's Python code does to its files, by the operations in
their details."""

from __future__ import annotations

from bettong.harness.queries.sink.commits import BACKUP

STEP = "sink.file"
CHANGED = "change"
"""The operation of a moment after a change, however that was made."""
LINE = "line"
"""The operation of a moment before a line, and in the detail of a change the line that made it: its
number, and which time it was begun in the batch."""
CHANGING_SQL = (
    *("INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"),
    *("CREATE", "DROP", "ALTER", "VACUUM", "REINDEX", "SAVEPOINT"),
)
PRAGMA = "PRAGMA"
STATEMENTS = frozenset(verb.lower() for verb in (*CHANGING_SQL, PRAGMA, BACKUP))
"""The operations of moments before a statement that is a transaction of its own, or begins one."""
