"""The folder of an answer, which one process at a time writes to."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bettong.lineage.errors import UsageError

LOCK = ".lock"


@contextmanager
def own_folder(folder: Path) -> Iterator[None]:
    """Make the folder this process's own, so that no other clears what is being written there.

    The lock ends with the process, however that ends, and processes that it has forked do not hold
    it (POSIX, ``fcntl``).

    Raises UsageError when another process has it, OSError where nothing can be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("ab") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as e:
            reason = "wait for it, or choose another folder (--out)"
            raise UsageError(f"another run still writes to {folder}: {reason}") from e
        yield
