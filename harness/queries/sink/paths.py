"""Which file a program means: by a path, or by the number of an open file."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any


def whole(path: Any) -> str:
    """The path from the root on, wherever the process stands; links are not resolved."""
    return os.path.abspath(os.fsdecode(path))  # noqa: PTH100


def path_of(file: Any) -> str | None:
    """The path of what ``open`` is given: a name, or the number of a file that is open."""
    if isinstance(file, str | bytes | os.PathLike):
        return whole(file)
    try:
        return open_as(file) if isinstance(file, int) else None
    except OSError:  # there is no such file: to be said by open itself
        return None


def open_as(number: int) -> str:
    """The path of a file, or folder, that is open."""
    return str(Path(f"/proc/self/fd/{number}").readlink())


def regular(number: int) -> str | None:
    """The path of a file that is open, where it is one that has a name."""
    try:
        found = os.fstat(number)
        path = open_as(number)
    except OSError:
        return None
    return path if stat.S_ISREG(found.st_mode) and found.st_nlink else None


def is_file(database: Any) -> bool:
    """Whether DuckDB is given a file of this machine to connect to."""
    if not isinstance(database, str | bytes | os.PathLike):
        return False
    name = os.fsdecode(database)
    return bool(name) and not name.startswith((":", "md:", "motherduck:"))
