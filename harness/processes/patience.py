"""Limits of time on a machine that has other work."""

from __future__ import annotations

import os

_MOST = 3.0


def patience(seconds: float) -> float:
    """``seconds``, longer by as many processes as want each core now, three times at most: what
    takes a second on a machine of its own takes longer here, and that says nothing about what is
    judged."""
    return seconds * min(_MOST, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
