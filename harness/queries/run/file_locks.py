"""Which files processes have locked, and whether another one waits for that, as Linux tells it.

Where it does not, nothing is locked as far as is known: who waits is told by how long it is silent.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

LOCKS = Path("/proc/locks")
_WAITS = "->"
_WRITE = "WRITE"


@dataclass(frozen=True, slots=True)
class _Lock:
    """A lock, or the request for one; ``number`` is that of the lock that is there."""

    number: str
    waits: bool
    writes: bool
    pid: int
    inode: str


@dataclass(frozen=True, slots=True)
class FileLocks:
    """The locks of files below a folder.

    Args:
        folder: with files that are locked, if any.
        told: the kernel's list.
    """

    folder: Path
    told: Path = LOCKS

    def held_to_write(self, pids: Collection[int]) -> bool:
        """Whether one of these processes has locked a file so that no other one can lock it."""
        return any(x.pid in pids and x.writes and not x.waits for x in self._of_folder())

    def waited_for(self, pids: Collection[int]) -> bool:
        """Whether another process waits until one of these gives a lock back."""
        found = list(self._of_folder())
        held = {x.number for x in found if x.pid in pids and not x.waits}
        return any(x.waits and x.number in held and x.pid not in pids for x in found)

    def _of_folder(self) -> Iterator[_Lock]:
        found = list(self._all())
        inodes = set(_inodes(self.folder)) if found else set()
        return (x for x in found if x.inode in inodes)

    def _all(self) -> Iterator[_Lock]:
        try:
            lines = self.told.read_text().splitlines()
        except OSError:
            return
        for line in lines:
            words = line.split()
            waits = words[1:2] == [_WAITS]
            number, *rest = words[:1] + words[1 + waits :]
            if len(rest) >= 5:  # kind, how far it binds, mode, process, file
                yield _Lock(number, waits, rest[2] == _WRITE, int(rest[3]), rest[4])


def _inodes(folder: Path) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                found = Path(parent, name).stat()
            except OSError:
                continue  # it is gone
            major, minor = os.major(found.st_dev), os.minor(found.st_dev)
            yield f"{major:02x}:{minor:02x}:{found.st_ino}"
