"""Where attempts stage their rows: files in a directory that driver and workers share.

The directory knows the application it belongs to and the epochs that have begun, so that workers
need nothing else to be fenced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bettong.engine.errors import FencedError
from bettong.engine.keys import key_text
from bettong.engine.receiver.rows import Columns, lines
from bettong.engine.receiver.rows import Row as TextRow
from bettong.engine.sinks.base import Row
from bettong.engine.storage.disk import Disk, replace_file
from bettong.engine.storage.sealed import sealed, unsealed
from bettong.lineage.errors import BettongError, UsageError

_EPOCH = re.compile(r"epoch-(\d+)")
_STAGED = re.compile(r"e(\d+)-")
_REMEDY = "restore it from a copy, or remove it once no driver writes there"


@dataclass(frozen=True)
class Staging:
    """Staged rows of one application.

    Attributes:
        directory: where ``_staged`` and ``_epochs`` are made.
        disk: where it is.
    """

    directory: Path
    disk: Disk

    def open(self, application: str, epoch: int) -> None:
        """Begin an epoch and drop what older ones have staged. Raises FencedError when a newer one
        has begun, UsageError when the directory is another application's.

        What newer ones have staged is theirs: they may begin when this one has looked for them.
        """
        for path in (self._epochs, self._staged):
            self.disk.make_directory(path)
        for name in filter(_EPOCH.fullmatch, self.disk.names(self._epochs)):
            owner = self._owner(self._epochs / name)
            if owner != application:
                raise UsageError(f"{self.directory} holds the output of {owner}: take another")
        self.check_epoch(epoch)
        replace_file(self._epochs / f"epoch-{epoch}", sealed(application), self.disk)
        self._sweep(lambda name: _epoch_of(name) < epoch)

    def application(self, epoch: int) -> str:
        """Whose an epoch is that has been opened."""
        return self._owner(self._epochs / f"epoch-{epoch}")

    def check_epoch(self, epoch: int) -> None:
        """Raises FencedError for an epoch that is over."""
        names = self.disk.names(self._epochs)
        newest = max((int(m[1]) for m in map(_EPOCH.fullmatch, names) if m), default=0)
        if epoch < newest:
            raise FencedError(f"epoch {epoch} of {self.directory} is over: {newest} has begun")

    def stage(
        self, epoch: int, batch: int, partition: int, attempt: int, rows: Sequence[Row]
    ) -> None:
        """Keep an attempt's rows, as lines, in a file of its own; durable on return."""
        columns = Columns.of([TextRow(row.id, key_text(row.key), row.data) for row in rows])
        content = bytes(lines(batch, columns))
        replace_file(self._attempt(epoch, batch, partition, attempt), content, self.disk)

    def staged(self, epoch: int, batch: int, winners: Mapping[int, int]) -> Iterator[bytes]:
        """The lines of the winning attempts, partition by partition.

        Raises BettongError for one that has not been staged.
        """
        for path in self.paths(epoch, batch, winners):
            with self.disk.open(path) as file:
                yield file.read()

    def paths(self, epoch: int, batch: int, winners: Mapping[int, int]) -> Iterator[Path]:
        """The files of the winning attempts, partition by partition.

        Raises BettongError for one that has not been staged.
        """
        for partition, attempt in sorted(winners.items()):
            path = self._attempt(epoch, batch, partition, attempt)
            try:
                self.disk.size(path)
            except FileNotFoundError as e:
                raise BettongError(
                    f"batch {batch} cannot be committed: partition {partition}, attempt {attempt} "
                    f"has not been prepared ({path} is missing)"
                ) from e
            yield path

    def joined(self, epoch: int, batch: int, winners: Mapping[int, int]) -> Path:
        """A file of this epoch's own with all of ``staged``."""
        path = self._staged / f"e{epoch}-b{batch}-commit"
        replace_file(path, b"".join(self.staged(epoch, batch, winners)), self.disk)
        return path

    def forget(self, batch: int) -> None:
        """Drop what was staged for a batch."""
        self._sweep(lambda name: f"-b{batch}-" in name)

    def _owner(self, epoch: Path) -> str:
        with self.disk.open(epoch) as file:
            return str(unsealed(file.read(), str(epoch), _REMEDY))

    @property
    def _staged(self) -> Path:
        return self.directory / "_staged"

    @property
    def _epochs(self) -> Path:
        return self.directory / "_epochs"

    def _attempt(self, epoch: int, batch: int, partition: int, attempt: int) -> Path:
        return self._staged / f"e{epoch}-b{batch}-p{partition}-a{attempt}"

    def _sweep(self, is_old: Callable[[str], bool]) -> None:
        for name in filter(is_old, self.disk.names(self._staged)):
            self._remove(self._staged / name)

    def _remove(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            self.disk.remove(path)


def _epoch_of(staged: str) -> int:
    """By which epoch a file was staged; 0 for what none has."""
    found = _STAGED.match(staged)
    return int(found[1]) if found else 0
