"""The fence of a warm JVM (``hooks/Fence.java``): closed, no operation on a file begins in it."""

from __future__ import annotations

import os
import struct
from pathlib import Path

NAME = "fence"
_NUMBER = struct.Struct(">i")


class Fence:
    """Eight bytes in a file that a JVM has mapped: whether its driver is dead, and how many
    operations on files its threads are amid.

    Args:
        home: the folder of the driver host.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / NAME
        self.path.write_bytes(bytes(2 * _NUMBER.size))

    @property
    def operations(self) -> int:
        """Operations that have begun and not ended. Exact while the JVM stands still: an operation
        that is not counted then has not begun, and finds the fence as it is by the time."""
        return self._read(1)

    @property
    def is_closed(self) -> bool:
        """Whether the JVM's driver is dead, and something of it is left."""
        return self._read(0) != 0

    def close(self) -> None:
        """The driver is dead. The JVM, which stands still, opens the fence again when nothing of
        that driver is left in it."""
        with self.path.open("r+b") as file:
            file.write(_NUMBER.pack(1))

    def _read(self, index: int) -> int:
        with self.path.open("rb") as file:
            found = os.pread(file.fileno(), _NUMBER.size, index * _NUMBER.size)
        return int(_NUMBER.unpack(found)[0])
