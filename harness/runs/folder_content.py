"""What is in a folder that a run has left, to be read on a copy: whoever opens a log repairs it.

Most runs of a search leave what another one has left. So a folder compares by what is in it, and
what was made of one holds for all that are equal, as long as nothing else has a part in it.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

MOST_KNOWN = 4096
"""So many folders are known to who remembers what was made of them."""


@dataclass(frozen=True, slots=True)
class FolderContent:
    """A folder as it is now.

    Attributes:
        path: where it is; two folders are equal wherever they are.
        name: its last part, which who reads it may take for the name of what it holds.
        digest: of the names and bytes below it.
    """

    path: Path = field(compare=False)
    name: str
    digest: bytes

    @classmethod
    def of(cls, folder: Path) -> FolderContent:
        """Read it."""
        digest = hashlib.sha256()
        for path in sorted(folder.rglob("*")):
            data = path.read_bytes() if path.is_file() else b""
            digest.update(f"{path.relative_to(folder)}\0{path.is_file()}\0{len(data)}\0".encode())
            digest.update(data)
        return cls(folder, folder.name, digest.digest())

    @contextmanager
    def copied(self) -> Iterator[Path]:
        """A copy of it, under the same name."""
        with tempfile.TemporaryDirectory(prefix="bettong-log-") as name:
            copy = Path(name) / self.name
            shutil.copytree(self.path, copy)
            yield copy
