"""Spark's own notes of which batches it has planned and which are done: a file for each batch under
``offsets/`` and ``commits/`` of its checkpoint.

They have no checksum in every Spark: that a batch begins where the one before ended is checked
against the state when it is done.

Spark's numbers are ours. They are one ahead in a checkpoint that was begun before the first batch
was waited for, and in one of an input without any message.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bettong.engine.storage.disk import OS_DISK
from bettong.engine.storage.log import DamageError

if TYPE_CHECKING:
    from bettong.engine.spark.source import Offset


@dataclass(frozen=True)
class SparkNotes:
    """The notes in one checkpoint of Spark's."""

    checkpoint: Path

    @property
    def last_planned(self) -> int:
        """The last batch that was planned; -1 before the first."""
        return max(self._batches("offsets"), default=-1)

    @property
    def last_done(self) -> int:
        """The last batch that is recorded as done; -1 before the first."""
        return max(self._batches("commits"), default=-1)

    def is_done(self, batch: int) -> bool:
        """Whether a batch is recorded as done."""
        return (self.checkpoint / "commits" / str(batch)).exists()

    def check(self) -> None:
        """Raises DamageError when one cannot be read: Spark itself would end with a stack of
        its own calls."""
        for log in ("offsets", "commits"):
            for batch in self._batches(log):
                self._read(log, batch)

    def end_of(self, batch: int) -> Offset:
        """Up to where a batch was planned to reach. Raises DamageError when that cannot be read."""
        end = self._read("offsets", batch)[-1]
        if end.keys() != {"batch", "streams"} or end["batch"] not in (batch, batch + 1):
            raise _damaged(self.checkpoint / "offsets" / str(batch))
        return end

    def done(self) -> Offset | None:
        """Up to where batches are recorded as done; None before the first."""
        last = self.last_done
        return self.end_of(last) if last >= 0 else None

    def remove_unwritten(self) -> None:
        """Remove what a driver left behind that was killed while Spark wrote its first offsets.

        Spark writes a file under another name and then renames it; as long as there is no batch at
        all, it takes such a file for somebody else's checkpoint and refuses to start
        (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY).
        """
        if self.last_planned < 0:
            for unwritten in (self.checkpoint / "offsets").glob(".*.tmp*"):
                OS_DISK.remove(unwritten)

    def _read(self, log: str, batch: int) -> list[dict[str, Any]]:
        """What stands in a note: a version, and an object of JSON in each line after it."""
        path = self.checkpoint / log / str(batch)
        try:
            version, *lines = path.read_text().splitlines()
            found = [json.loads(line) for line in lines]
        except (OSError, ValueError, RecursionError) as e:
            raise _damaged(path) from e
        if version != "v1" or not found or not all(isinstance(line, dict) for line in found):
            raise _damaged(path)
        return found

    def _batches(self, log: str) -> list[int]:
        names = (path.name for path in (self.checkpoint / log).glob("[0-9]*"))
        return sorted(int(name) for name in names if name.isdigit())


def _damaged(path: Path) -> DamageError:
    return DamageError(
        f"{path} is damaged: it holds what Spark has planned, and nothing else says that; restore "
        "the checkpoint from a copy"
    )
