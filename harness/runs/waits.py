"""Whether batches were closed by time where a live scenario says that they are."""

from __future__ import annotations

from bettong.harness.checkers import stuck
from bettong.lineage.results import Anomaly


def held_up() -> Anomaly:
    """A Stuck where no driver has asked, in a run without faults, whether the wait of a batch has
    ended: each message lay until others had come, or until its stream had ended."""
    return stuck("no batch was closed by time", expected="batches that time closes")
