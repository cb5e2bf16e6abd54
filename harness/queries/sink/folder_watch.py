"""What changes below a folder, as the kernel tells it, whoever changes it and however."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass

_MODIFY, _MOVED, _CREATE, _DELETE = 0x2, 0xC0, 0x100, 0x200  # inotify(7)
_MOVED_FROM = 0x40
_CHANGES = _MODIFY | _MOVED | _CREATE | _DELETE
_IS_FOLDER = 0x4000_0000
_EVENT = struct.Struct("iIII")


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed in a folder.

    Attributes:
        last: the path that changed last; None where none did.
        writes: how many changes are known, two for what a file was given, which may have come in
            pieces.
    """

    last: str | None = None
    writes: int = 0


class FolderWatch:
    """What the kernel has seen change below a folder.

    Raises OSError where the kernel lets nobody watch: what nobody sees must not count as tried.

    Args:
        seen_otherwise: paths whose changes are not told.
        anothers: tells of a path whether what is written there is of no interest. That a file is
            moved or removed is, whatever its path.
    """

    def __init__(
        self,
        folder: str,
        seen_otherwise: Collection[str],
        anothers: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self._c = ctypes.CDLL(None, use_errno=True)
        self._fd = self._c.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise _unwatched(folder)
        self._folders: dict[int, str] = {}
        self._seen_otherwise = seen_otherwise
        self._anothers = anothers
        try:
            self._add(folder.rstrip("/"))
        except BaseException:
            self.close()
            raise

    def changed(self) -> Changes:
        """What changed since this was asked last."""
        last, writes = None, 0
        while events := self._read():
            at = 0
            while at < len(events):
                number, kind, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                name = os.fsdecode(events[at - length : at].rstrip(b"\0"))
                path = f"{self._folders.get(number, '')}/{name}"
                if kind & _CREATE and kind & _IS_FOLDER:
                    self._add(path)
                if not kind & (_MOVED | _DELETE) and self._anothers(path):
                    continue
                if path not in self._seen_otherwise:
                    last = path
                if not kind & _MOVED_FROM:  # told once more as the move to where it is
                    writes += 2 if kind & _MODIFY else 1
        return Changes(last, writes)

    def close(self) -> None:
        """Watch no more."""
        os.close(self._fd)
        self._fd = -1

    def _add(self, folder: str) -> None:
        for path, _, _ in os.walk(folder):
            number = self._c.inotify_add_watch(self._fd, os.fsencode(path), _CHANGES)
            if number >= 0:
                self._folders[number] = path
            elif ctypes.get_errno() != errno.ENOENT:  # it may be gone by now
                raise _unwatched(path)

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, 1 << 16)
        except OSError:  # nothing has happened, or another batch's watch was closed meanwhile
            return b""


def _unwatched(folder: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(
        number,
        f"what changes in {folder} cannot be watched ({os.strerror(number)}): raise "
        "fs.inotify.max_user_instances or fs.inotify.max_user_watches",
    )
