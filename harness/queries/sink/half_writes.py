"""Writes of which the system takes a half: the disk is full from there on, or the process dies.

A write in part is what a full disk, or a signal, makes of one (write(2)): the call returns how much
was taken, and it is the next one that fails.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from bettong.harness.queries.sink.file_steps import HALF, WRITE

FULL, DIES = errno.ENOSPC, errno.EINTR
"""The answers to a write that ask for either."""
Asks = Callable[[str], None]


class HalfWrites:
    """The writes to one open file, each of which is asked for before.

    Args:
        era: of the process; the disk is full until it changes.
        stays_full: whether each write fails once the disk is full, or the next one only.
    """

    def __init__(self, era: Callable[[], object], stays_full: bool = True) -> None:
        self._era = era
        self._stays_full = stays_full
        self._full: tuple[object, OSError] | None = None

    def write(self, asks: Asks, call: Callable[[Any], int], data: Any) -> int:
        """Write ``data`` by ``call``, unless what is asked for says otherwise; how many bytes were
        taken. Raises what was the answer, or what a full disk says."""
        if self._full is not None:
            era, full = self._full
            if not self._stays_full:
                self._full = None
            if era == self._era():
                raise full
        try:
            asks(WRITE)
        except OSError as error:
            whole = memoryview(data).cast("B")
            half = whole[: len(whole) // 2]
            if error.errno == FULL:
                self._full = self._era(), error
                if half:
                    return call(half)
            if error.errno != DIES:
                raise
            taken = call(half) if half else 0
            asks(HALF)
            return taken + call(whole[taken:])
        return call(data)
