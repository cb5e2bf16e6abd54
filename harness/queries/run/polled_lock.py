"""A lock for which a driver asks a server again and again.

Where the one that stands still has locked something, its successor is told by what it waits for. A
request without an answer waits for what a connection holds, and for as long as that is there. Who
asks again and again may wait for a lock that expires, and gets it in the end: then the other one,
when it goes on, has a lock no more and does not know.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bettong.harness.processes.patience import patience

LOCKED_S = 20.0
"""A driver that has taken over, begun and then taken no step for so long waits for what the one
that stands still has locked."""
EXPIRES_S = 110.0
"""So long it may wait for a lock to expire; after a little more without a step it would be taken to
do nothing more, and so is who waits for the lock of a driver that has died."""


@dataclass
class PolledLocks:
    """Those of one query, in all its runs.

    Attributes:
        last: one was asked for as long as a lock may take to expire, and was not given.
    """

    last: bool = False


@dataclass
class Polls:
    """What a driver asks of servers while another one stands still.

    Args:
        locks: what earlier runs have shown.
    """

    locks: PolledLocks
    clock: Callable[[], float] = time.monotonic
    _met: int = -1
    _since: float = field(default=0.0)

    def waited(self, silent_s: float, met: int, awaits: bool) -> bool:
        """Whether a driver that has taken no step for so long waits for one that has to go on.

        Args:
            met: how many requests were met so far.
            awaits: one is there that its server answers when there is something to tell.
        """
        now = self.clock()
        if met != self._met or awaits:
            self._met, self._since = met, now
        if silent_s < patience(LOCKED_S):
            return False
        asks = now - self._since < LOCKED_S
        if not asks or self.locks.last:
            return True
        self.locks.last = silent_s >= EXPIRES_S
        return self.locks.last
