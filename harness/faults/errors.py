"""What is wrong with faults that somebody has asked for."""

from __future__ import annotations

from bettong.lineage.errors import UsageError


class ScheduleError(UsageError):
    """A fault schedule that cannot be meant: what is wrong, where, and the nearest right name."""
