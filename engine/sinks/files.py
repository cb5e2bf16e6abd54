"""Files as a sink: each batch becomes one file, whole or not at all.

``batch-00000003.jsonl`` in the sink's directory holds batch 3, one row a line as the receiver
writes them. Whoever reads names of this form only sees whole batches, each once: effectively-once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bettong.engine.sinks.base import Noted, Row
from bettong.engine.sinks.staging import Staging
from bettong.engine.steps import step
from bettong.engine.storage.disk import OS_DISK, Disk

_BATCH = re.compile(r"batch-(\d{8,})\.jsonl")


@dataclass(frozen=True)
class FileSink:
    """Rows as files of a directory that driver and workers share.

    A zombie of an older epoch that passed the fence just before it was closed can do no harm: a
    batch's file is made only if there is none, and its content does not depend on who makes it.

    Attributes:
        directory: of this application's output alone.
        disk: where it is.
    """

    promises: ClassVar[str] = "effectively-once"
    directory: Path
    disk: Disk = OS_DISK

    def newest_batch(self) -> int:
        """The newest batch that is visible in the directory; -1 without any."""
        names = self.disk.names(self.directory) if self.directory.is_dir() else ()
        return max((int(m[1]) for m in map(_BATCH.fullmatch, names) if m), default=-1)

    def open(self, application: str, epoch: int, noted: Noted, newest: int | None = None) -> None:
        """Begin an epoch. Raises FencedError when a newer one has begun, UsageError when the
        directory is another application's."""
        with step(noted.step, causes=noted.causes):
            self._staging.open(application, epoch)

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row],
        noted: Noted,
    ) -> None:
        """Stage rows in a file of this attempt's own; durable on return."""
        with step(noted.step, causes=noted.causes, carries=noted.carries):
            self._staging.check_epoch(epoch)
            if not self._is_committed(batch):
                self._staging.stage(epoch, batch, partition, attempt, rows)

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        """Give the winners' rows, joined, the name that readers look for."""
        with step(noted.step, causes=noted.causes, carries=noted.carries):
            self._staging.check_epoch(epoch)
            if not self._is_committed(batch):
                joined = self._staging.joined(epoch, batch, winners)
                with suppress(FileExistsError):  # a zombie was faster; it has written the same
                    self.disk.link(joined, self._visible(batch))
            self.disk.sync_directory(self.directory)
            self._staging.forget(batch)

    @property
    def _staging(self) -> Staging:
        return Staging(self.directory, self.disk)

    def _visible(self, batch: int) -> Path:
        return self.directory / f"batch-{batch:08d}.jsonl"

    def _is_committed(self, batch: int) -> bool:
        try:
            self.disk.size(self._visible(batch))
        except FileNotFoundError:
            return False
        return True


def read_lines(directory: Path) -> Iterator[bytes]:
    """The visible rows of a sink's directory, batch by batch, as lines of JSON with their line
    ends."""
    found = ((_BATCH.fullmatch(path.name), path) for path in directory.iterdir())
    for _, path in sorted((int(match[1]), path) for match, path in found if match):
        with path.open("rb") as file:
            yield from file


def read_rows(directory: Path) -> Iterator[dict[str, Any]]:
    """The same as rows; raises ValueError for one that is none."""
    yield from map(json.loads, read_lines(directory))
