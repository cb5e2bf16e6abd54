"""Where things are kept that are made once for a machine: the hook jar, the class archive."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

ENV_CACHE = "BETTONG_CACHE"


def cache_directory() -> Path:
    """``$BETTONG_CACHE``, or ``bettong`` in the user's cache directory; made when missing."""
    named = os.environ.get(ENV_CACHE)
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    directory = Path(named) if named else Path(base) / "bettong"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextlib.contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path``, renamed to it when the block ends well, so that nobody
    ever sees half a file and two makers do not disturb each other."""
    with tempfile.TemporaryDirectory(prefix=".making-", dir=path.parent) as directory:
        temporary = Path(directory) / path.name
        yield temporary
        temporary.replace(path)
