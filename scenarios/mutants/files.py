"""Sinks that write files, with a mistake."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bettong.engine.errors import FencedError
from bettong.engine.sinks.arrow import ArrowSink
from bettong.engine.sinks.base import Noted
from bettong.engine.sinks.files import FileSink
from bettong.engine.sinks.staging import Staging
from bettong.engine.state.store import LocalStore
from bettong.engine.steps import step


class _Appends(FileSink):
    """Adds rows to the file that readers see."""

    def add(self, batch: int, lines: bytes) -> None:
        """Add lines to the file of a batch; durable on return."""
        file = self.disk.append_to(self._visible(batch))
        try:
            file.write(lines)
            file.sync()
        finally:
            file.close()


class CommitsByPartition(_Appends):
    """Commits partition after partition, and takes a batch for committed when one of them is."""

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        with step(noted.step, causes=noted.causes, carries=noted.carries):
            self._staging.check_epoch(epoch)
            if not self._is_committed(batch):
                for partition, attempt in sorted(winners.items()):
                    with step(f"batch={batch}/p={partition}/sink.commit", causes=noted.causes):
                        (lines,) = self._staging.staged(epoch, batch, {partition: attempt})
                        self.add(batch, lines)
            self._staging.forget(batch)


class _NewestByName(Staging):
    def check_epoch(self, epoch: int) -> None:
        names = [name for name in self.disk.names(self._epochs) if name.startswith("epoch-")]
        if names and epoch < int(max(names).removeprefix("epoch-")):
            raise FencedError(f"epoch {epoch} of {self.directory} is over")


class ComparesEpochsAsText(FileSink):
    """Takes the name that is sorted last for the newest epoch: epoch-9, not epoch-10."""

    @property
    def _staging(self) -> Staging:
        return _NewestByName(self.directory, self.disk)


class _Records(_Appends):
    """Records what is committed in a file of its own for each batch."""

    def record(self, batch: int, noted: Noted) -> None:
        """Note that a batch is committed; the step is the sink's own."""
        with step(f"batch={batch}/sink.record", causes=noted.causes):
            file = self.disk.append_to(self._record(batch))
            file.sync()
            file.close()

    def write(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        """Make the winners' rows visible."""
        with step(noted.step, causes=noted.causes, carries=noted.carries):
            self.add(batch, b"".join(self._staging.staged(epoch, batch, winners)))

    def _record(self, batch: int) -> Path:
        return self.directory / f"committed-{batch}"

    def _is_committed(self, batch: int) -> bool:
        return self._record(batch).exists()


class RecordsLate(_Records):
    """Writes the rows first, and then that it has."""

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        self._staging.check_epoch(epoch)
        if not self._is_committed(batch):
            self.write(epoch, batch, winners, noted)
            self.record(batch, noted)
        self._staging.forget(batch)


class RecordsEarly(_Records):
    """Writes first that it has written the rows, and then the rows."""

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        self._staging.check_epoch(epoch)
        if not self._is_committed(batch):
            self.record(batch, noted)
            self.write(epoch, batch, winners, noted)
        self._staging.forget(batch)


class _NeverRemoves(LocalStore):
    def remove(self, name: str) -> None:
        pass


class KeepsLosers(ArrowSink):
    """Names the winners' rows, and leaves those of all others where they are."""

    @property
    def _store(self) -> LocalStore:
        return _NeverRemoves(self.directory)
