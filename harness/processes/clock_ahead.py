"""Python's clock set ahead, as it is for a driver that is started again a day later.

Whatever asks Python for the day or the time, be it a name that was imported long ago, is told a
later one; what measures how long something takes (``time.monotonic``) goes on as ever. Servers,
SQLite and the JVM have clocks of their own.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from time_machine import travel

ENV_AHEAD = "BETTONG_CLOCK_AHEAD"
"""By how many seconds the clock of a forked process is ahead."""

_travels: tuple[int, travel] | None = None


def set_ahead(seconds: int) -> None:
    """From now on the clock of this process is so far ahead; 0 sets it right."""
    global _travels
    ahead = 0 if _travels is None else _travels[0]
    if seconds == ahead:
        return
    if _travels is not None:
        _travels[1].stop()
        _travels = None
    if seconds:
        import time_machine  # of all processes that have the probe few need it

        travels = time_machine.travel(timedelta(seconds=seconds))
        travels.start()
        _travels = seconds, travels
