"""What a measured action has taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import psutil

WARM = 2
"""The first batches, which a steady rate leaves out."""


class Spent(NamedTuple):
    """What an action says of itself, where it knows better than who called it.

    Attributes:
        seconds: on the clock.
        cpu: seconds of all its processes.
    """

    seconds: float
    cpu: float


def cpu_seconds() -> float:
    """CPU time of this process and of all that it has started."""
    own = psutil.Process()
    return sum(sum(p.cpu_times()[:4]) for p in (own, *own.children(recursive=True)))


def steady(done: Sequence[float], batch: int) -> float | None:
    """Events a second after the first batches; None when there are too few.

    Args:
        done: when each batch was done, in seconds; all but the last have ``batch`` events.
        batch: events in a batch.
    """
    times = sorted(done)
    if len(times) < WARM + 3:
        return None
    counted = times[WARM - 1 : -1]
    return (len(counted) - 1) * batch / (counted[-1] - counted[0])
