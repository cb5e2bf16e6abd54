"""Runs that survive nothing, for who wants the last per cent and can do without the rest."""

from __future__ import annotations

import logging
from pathlib import Path

from bettong.engine.state.manifest import stored
from bettong.engine.state.store import Store
from bettong.engine.storage.disk import OsDisk, replace_file
from bettong.lineage.errors import UsageError

log = logging.getLogger("bettong")

GIVES_UP = (
    "nothing is durable: the state log is not synced, and only its last two versions are kept",
    "a run whose driver or machine died cannot go on: the next one begins from nothing, without "
    "the state, and counts from what its sources still have",
    "so after a crash each message counts at most once in the state, and outputs that were seen "
    "may be seen again under the same ids",
)
"""What a run without resilience does not promise. Tasks and workers that die while the driver
lives are still done again, exactly."""

_MARK = "without-resilience"


class UnsyncedDisk(OsDisk):
    """The machine's file system, in no hurry to be durable."""

    syncs = False


def begin(checkpoint: Path, store: Store, resilience: bool) -> None:
    """Begin or go on with a checkpoint; without resilience say what is given up.

    Raises:
        UsageError: a run without resilience has used the checkpoint, or one would go on with it.
    """
    mark = checkpoint / _MARK
    if mark.exists():
        raise UsageError(
            f"{checkpoint} was written by a run without resilience and cannot be gone on with: "
            "give an empty folder"
        )
    if resilience:
        return
    if stored(store):
        raise UsageError(
            f"a run without resilience begins from nothing, and {checkpoint} has the state of one "
            "with it: give an empty folder, or resilience=True"
        )
    disk = UnsyncedDisk()
    disk.make_directory(checkpoint)
    replace_file(mark, "\n".join((*GIVES_UP, "")).encode(), disk)
    for line in GIVES_UP:
        log.warning("without resilience: %s", line)
