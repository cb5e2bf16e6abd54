"""The steps that probes make of what a sink's Python code does to its files, by the operations in
their details."""

from __future__ import annotations

from bettong.harness.queries.sink.commits import BACKUP
from bettong.lineage.trace import TraceEvent

STEP = "sink.file"
CHANGED = "change"
"""The operation of a moment after a change, however that was made."""
LOOK = "look"
"""The operation of a moment before a batch's function lists a folder, asks whether a file is there,
opens one to read it, or asks a database: what it has found out before may no longer hold then."""
LISTED = "*"
"""The end of the path of a look at all that is in a folder."""
LOCK = "lock"
"""The operation of a moment before a file is locked: what was looked at before may no longer hold
when whoever has locked it lets go."""
WRITE = "write"
"""The operation of a moment before bytes are written to a file."""
HALF = "half"
"""The operation of a moment at which half of a write was taken, in runs in which the driver dies
there."""
LINE = "line"
"""The operation of a moment before a line, and in the detail of a change the line that made it: its
number, and which time it was begun in the batch."""
OUTSIDE = "outside"
"""In the detail of what neither a batch's function nor a worker does, such as the code that starts
the query."""
CHANGING_SQL = (
    *("INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"),
    *("CREATE", "DROP", "ALTER", "VACUUM", "REINDEX", "SAVEPOINT"),
)
READING_SQL = ("SELECT", "VALUES")
PRAGMA = "PRAGMA"
STATEMENTS = frozenset(verb.lower() for verb in (*CHANGING_SQL, PRAGMA, BACKUP))
"""The operations of moments before a statement that is a transaction of its own, or begins one."""

LOCKING = frozenset({LOCK, "begin"}) | STATEMENTS
"""The operations of moments before a file is locked to be written, by a database as well."""


def is_look(event: TraceEvent) -> bool:
    """Whether it comes before the sink's own code looks at files."""
    return event.detail.get("op") == LOOK
