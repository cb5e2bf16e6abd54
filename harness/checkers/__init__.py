"""Checkers: pure functions from what was expected and what was seen to a verdict with witnesses.

Occurrences are counted (multisets) and order is checked per key; each anomaly carries the
messages by which it could be checked by hand. A history that cannot be judged is ``unknown``.
"""

from __future__ import annotations

from bettong.harness.checkers.levels import (
    Judgement,
    Order,
    guarantee_of,
    judge,
    satisfies,
    undecided,
)
from bettong.harness.checkers.outputs import check_outputs, output_anomalies
from bettong.harness.checkers.over_time import check_running_totals, check_windows
from bettong.harness.checkers.records import Record, malformed
from bettong.harness.checkers.snapshots import Snapshot, check_atomicity, check_stays_visible
from bettong.harness.checkers.state import check_state, died, stuck

__all__ = [
    "Judgement",
    "Order",
    "Record",
    "Snapshot",
    "check_atomicity",
    "check_outputs",
    "check_running_totals",
    "check_state",
    "check_stays_visible",
    "check_windows",
    "died",
    "guarantee_of",
    "judge",
    "malformed",
    "output_anomalies",
    "satisfies",
    "stuck",
    "undecided",
]
