"""Folders that are gone when they are done with, however Bettong ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bettong.harness.processes.session import guard_folder, unguard_folder

_MEMORY = Path("/dev/shm")  # noqa: S108 - where folders with names of their own are made
_ROOM = 4 << 30


def folder_in_memory() -> Path | None:
    """Where a sync costs nothing: a file system in memory, if this machine has one with room.
    None also where ``TMPDIR`` says where temporary files are to be."""
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK | os.X_OK):
        return None
    return _MEMORY if shutil.disk_usage(_MEMORY).free >= _ROOM else None


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
