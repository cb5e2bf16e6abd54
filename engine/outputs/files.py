"""Files as a sink: each batch becomes one file, whole or not at all.

``batch-00000003.jsonl`` in the sink's directory holds batch 3, one row a line as the receiver
writes them. Whoever reads names of this form only sees whole batches, each once: effectively-once.
``_staged`` and ``_epochs`` beside them are the sink's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bettong.engine.errors import FencedError
from bettong.engine.outputs.text import columns_of
from bettong.engine.receiver.rows import lines
from bettong.engine.sinks import Noted, Row
from bettong.engine.steps import step
from bettong.engine.storage.disk import OS_DISK, Disk
from bettong.lineage.errors import BettongError, UsageError

_BATCH = re.compile(r"batch-(\d{8,})\.jsonl")
_EPOCH = re.compile(r"epoch-(\d+)")


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

    def open(self, application: str, epoch: int, noted: Noted) -> None:
        """Begin an epoch. Raises FencedError when a newer one has begun, UsageError when the
        directory is another application's."""
        with step(noted.step, causes=noted.causes):
            for path in (self._epochs, self._staged):
                self.disk.make_directory(path)
            self.disk.sync_directory(self.directory)
            self.disk.sync_directory(self.directory.parent)
            self._check_owner(application)
            self._check_epoch(epoch)
            self._write(self._epochs / f"epoch-{epoch}", application.encode())
            for name in self.disk.names(self._staged):
                if not name.startswith(f"e{epoch}-"):
                    self._remove(self._staged / name)

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
            self._check_epoch(epoch)
            if not self._is_committed(batch):
                self._write(
                    self._attempt(epoch, batch, partition, attempt),
                    bytes(lines(batch, columns_of(rows))),
                )

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        """Give the winners' rows, joined, the name that readers look for."""
        with step(noted.step, causes=noted.causes, carries=noted.carries):
            self._check_epoch(epoch)
            if not self._is_committed(batch):
                joined = self._staged / f"e{epoch}-b{batch}-commit"
                self._write(joined, b"".join(self._chosen(epoch, batch, winners)))
                with suppress(FileExistsError):  # a zombie was faster; it has written the same
                    self.disk.link(joined, self._visible(batch))
            self.disk.sync_directory(self.directory)
            for name in self.disk.names(self._staged):
                if f"-b{batch}-" in name:
                    self._remove(self._staged / name)

    @property
    def _staged(self) -> Path:
        return self.directory / "_staged"

    @property
    def _epochs(self) -> Path:
        return self.directory / "_epochs"

    def _visible(self, batch: int) -> Path:
        return self.directory / f"batch-{batch:08d}.jsonl"

    def _attempt(self, epoch: int, batch: int, partition: int, attempt: int) -> Path:
        return self._staged / f"e{epoch}-b{batch}-p{partition}-a{attempt}"

    def _is_committed(self, batch: int) -> bool:
        try:
            self.disk.size(self._visible(batch))
        except FileNotFoundError:
            return False
        return True

    def _chosen(self, epoch: int, batch: int, winners: Mapping[int, int]) -> Iterator[bytes]:
        for partition, attempt in sorted(winners.items()):
            path = self._attempt(epoch, batch, partition, attempt)
            try:
                with self.disk.open(path) as file:
                    yield file.read()
            except FileNotFoundError as e:
                raise BettongError(
                    f"batch {batch} cannot be committed: partition {partition}, attempt {attempt} "
                    f"has not been prepared ({path} is missing)"
                ) from e

    def _check_epoch(self, epoch: int) -> None:
        newest = max((int(m[1]) for m in map(_EPOCH.fullmatch, self._opened()) if m), default=0)
        if epoch < newest:
            raise FencedError(f"epoch {epoch} of {self.directory} is over: {newest} has begun")

    def _check_owner(self, application: str) -> None:
        for name in filter(_EPOCH.fullmatch, self._opened()):
            with self.disk.open(self._epochs / name) as file:
                owner = file.read().decode()
            if owner != application:
                raise UsageError(f"{self.directory} holds the output of {owner}: take another")

    def _opened(self) -> list[str]:
        return self.disk.names(self._epochs)

    def _write(self, path: Path, content: bytes) -> None:
        """Make a file with this content, durably and at once."""
        unfinished = path.with_name(path.name + ".new")
        self._remove(unfinished)
        file = self.disk.append_to(unfinished)
        try:
            file.write(content)
            file.sync()
        finally:
            file.close()
        self.disk.rename(unfinished, path)
        self.disk.sync_directory(path.parent)

    def _remove(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            self.disk.remove(path)


def read_rows(directory: Path) -> Iterator[dict[str, Any]]:
    """The visible rows of a sink's directory, batch by batch."""
    found = ((_BATCH.fullmatch(path.name), path) for path in directory.iterdir())
    for _, path in sorted((int(match[1]), path) for match, path in found if match):
        with path.open("rb") as file:
            yield from map(json.loads, file)
