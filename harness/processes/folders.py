"""Folders that are gone when they are done with, however Bettong ends."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bettong.harness.processes.session import guard_folder, unguard_folder


@contextlib.contextmanager
def temporary_folder(prefix: str, within: Path | None = None) -> Iterator[Path]:
    """A new folder, which is removed at the end, also when Bettong is killed."""
    with tempfile.TemporaryDirectory(dir=within, prefix=prefix) as name:
        folder = Path(name)
        guard_folder(folder)
        try:
            yield folder
        finally:
            unguard_folder(folder)
