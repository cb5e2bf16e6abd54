"""A moment before each line of a ``foreachBatch`` function that comes after a change: native
libraries (DuckDB, Arrow, Delta's own) and ``os.write`` write past Python's ``open``.

The kernel tells what changed below a folder, so that between two lines that write there is a
moment however they do it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import sysconfig
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

_MODIFY, _MOVED, _CREATE, _DELETE = 0x2, 0xC0, 0x100, 0x200  # inotify(7)
_CHANGES = _MODIFY | _MOVED | _CREATE | _DELETE
_IS_FOLDER = 0x4000_0000
_EVENT = struct.Struct("iIII")
_NOT_THE_USERS = ("pyspark.", "py4j.", "bettong.harness.", "bettong.engine.")
_LIBRARIES = f"{sysconfig.get_path('stdlib')}/"


class FolderWatch:
    """What the kernel has seen change below a folder.

    Raises OSError where the kernel lets nobody watch: what nobody sees must not count as tried.

    Args:
        seen_otherwise: paths whose changes are not told.
    """

    def __init__(self, folder: str, seen_otherwise: Collection[str]) -> None:
        self._c = ctypes.CDLL(None, use_errno=True)
        self._fd = self._c.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise _unwatched(folder)
        self._folders: dict[int, str] = {}
        self._seen_otherwise = seen_otherwise
        try:
            self._add(folder.rstrip("/"))
        except BaseException:
            self.close()
            raise

    def changed(self) -> str | None:
        """What changed last since this was asked last; None where nothing did."""
        last = None
        while events := self._read():
            at = 0
            while at < len(events):
                number, kind, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                name = os.fsdecode(events[at - length : at].rstrip(b"\0"))
                path = f"{self._folders.get(number, '')}/{name}"
                if path not in self._seen_otherwise:
                    last = path
                if kind & _CREATE and kind & _IS_FOLDER:
                    self._add(path)
        return last

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


class LineMoments:
    """Asks before each line of the user's code that comes after a change.

    Args:
        folder: gives the folder of the run, None where there is none.
        happens: is given the path that was changed.
    """

    def __init__(self, folder: Callable[[], str | None], happens: Callable[[str], None]) -> None:
        self._folder = folder
        self._happens = happens
        self._calls: dict[int, _Call] = {}
        self._in_spark = 0
        self.seen_otherwise: set[str] = set()

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of ``foreachBatch``, with its lines and those of the code beside it
        watched."""

        def watched(*arguments: Any) -> Any:
            folder = self._folder()
            if folder is None:
                return function(*arguments)
            call = _Call(FolderWatch(folder, self.seen_otherwise))
            self._calls[threading.get_ident()] = call
            before = sys.gettrace()
            sys.settrace(partial(self._entered, call))
            try:
                return function(*arguments)
            finally:
                sys.settrace(before)
                self._calls.pop(threading.get_ident(), None)
                call.watch.close()

        return watched

    def around(self, command: Callable[..., Any]) -> Callable[..., Any]:
        """A call of Spark's, which changes files as Spark's own hooks see."""

        def asked(*arguments: Any, **named: Any) -> Any:
            if threading.get_ident() not in self._calls:
                return command(*arguments, **named)
            self._look()
            self._in_spark += 1
            try:
                return command(*arguments, **named)
            finally:
                self._in_spark -= 1
                for call in tuple(self._calls.values()):
                    call.watch.changed()

        return asked

    def _entered(self, call: _Call, frame: FrameType, _event: str, _: Any) -> Any:
        if not _is_users(frame):
            return None
        file = frame.f_code.co_filename
        call.home = call.home or f"{Path(file).parent}/"
        beside = file.startswith(call.home) and "site-packages" not in file[len(call.home) :]
        return partial(self._line, call) if beside else None

    def _line(self, call: _Call, _frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self._look()
            change, call.change = call.change, None
            if change is not None:
                self._happens(change)
        return partial(self._line, call)

    def _look(self) -> None:
        for call in tuple(self._calls.values()):
            change = call.watch.changed()
            if change is not None and not self._in_spark:
                call.change = change


@dataclass
class _Call:
    """One batch in the user's function.

    Attributes:
        home: the folder of the user's code.
        change: what changed, and was no moment yet.
    """

    watch: FolderWatch
    home: str | None = None
    change: str | None = None


def _is_users(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    file = frame.f_code.co_filename
    library = file.startswith(_LIBRARIES) and "site-packages" not in file
    return not (module.startswith(_NOT_THE_USERS) or library or file.startswith("<"))
