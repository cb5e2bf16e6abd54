"""The durable state of a run: its folder, copied at a crash and brought back after it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


def copy_state(source: Path, target: Path) -> None:
    """Copy a folder as it is now; what vanishes meanwhile is left out, as in a crash."""
    target.mkdir(parents=True)
    for path in _walk(source):
        to = target / path.relative_to(source)
        with contextlib.suppress(FileNotFoundError):
            if path.is_dir() and not path.is_symlink():
                to.mkdir(parents=True, exist_ok=True)
            else:
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, to, follow_symlinks=False)


def replace_state(folder: Path, kept: Path) -> None:
    """Throw a folder away and put the kept copy, which is used up, in its place."""
    shutil.rmtree(folder)
    kept.rename(folder)


def digest_state(folder: Path) -> str:
    """A digest of names and contents: equal for two moments between which nothing was written."""
    digest = hashlib.sha256()
    for path in _walk(folder):
        digest.update(f"{path.relative_to(folder)}\0".encode())
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in (*folders, *sorted(files)):
            yield Path(root) / name
