"""Gateways, receivers and batches that mistreat their disk: what nothing but a failing disk or a
power cut shows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from errno import EIO
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from bettong.engine.batch.protocol import BatchProtocol, Settings
from bettong.engine.batch.tasks import LevelTask
from bettong.engine.functions import State
from bettong.engine.ingest.gateway import Gateway
from bettong.engine.ingest.journal import Journal
from bettong.engine.net.block import Block
from bettong.engine.receiver.ledger import Ledger
from bettong.engine.receiver.server import Receiver
from bettong.engine.state.store import LocalStore, StoreError
from bettong.engine.storage.disk import OS_DISK, AppendFile, Buffer, OsDisk, replace_file
from bettong.engine.storage.log import RecordLog, segment_path
from bettong.scenarios.mutants.receivers import NotesWhatCameTwice


class _Unsynced:
    """A file that nobody waits for."""

    def __init__(self, file: AppendFile) -> None:
        self._file = file

    def write(self, data: Buffer) -> None:
        self._file.write(data)

    def sync(self) -> None:
        pass

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def close(self) -> None:
        self._file.close()


class _SyncsNames(OsDisk):
    """Waits until names are durable, but not what the files hold."""

    def append_to(self, path: Path) -> AppendFile:
        return _Unsynced(super().append_to(path))


class _SyncsFiles(OsDisk):
    """Waits until files are durable, but not their names."""

    def sync_directory(self, path: Path) -> None:
        pass


class _HopefulFile(_Unsynced):
    """A file that is taken for durable whatever the disk says."""

    def sync(self) -> None:
        with suppress(OSError):
            self._file.sync()


class _HopesForTheBest(OsDisk):
    """Waits until files are durable, and takes an error for an answer."""

    def append_to(self, path: Path) -> AppendFile:
        return _HopefulFile(super().append_to(path))


class _HopefulJournal(Journal):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "disk": _HopesForTheBest()})


class SwallowsFailedSyncs(Gateway):
    """Goes on when its journal cannot be made durable."""

    journal_class = _HopefulJournal


class _PersistentFile(_Unsynced):
    """A file whose sync is tried again when it fails."""

    def sync(self) -> None:
        try:
            self._file.sync()
        except OSError:
            self._file.sync()


class _SyncsUntilItGoesWell(OsDisk):
    """Waits until files are durable, and takes the second answer for it."""

    def append_to(self, path: Path) -> AppendFile:
        return _PersistentFile(super().append_to(path))


class _PersistentJournal(Journal):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "disk": _SyncsUntilItGoesWell()})


class SyncsAgain(Gateway):
    """Tries again when its journal cannot be made durable, and goes by what it is told then."""

    journal_class = _PersistentJournal


class _UnsyncedJournal(Journal):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "disk": _SyncsNames()})


class AcksUnsynced(Gateway):
    """Acknowledges what it has written to its journal and not synced."""

    journal_class = _UnsyncedJournal


class _UnnamedJournal(Journal):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "disk": _SyncsFiles()})


class LeavesSegmentUnnamed(Gateway):
    """Puts a new segment in its place by a rename, and does not wait until that is durable."""

    journal_class = _UnnamedJournal


class _NumbersFirst(Journal):
    def append(self, messages: Block) -> None:
        try:
            super().append(messages)
        except OSError:
            self.end += len(messages)  # it was counted before it was written
            raise


class NumbersFirst(Gateway):
    """Counts messages, and then writes them."""

    journal_class = _NumbersFirst


class _EndsFirst(Journal):
    def finish(self) -> None:
        try:
            super().finish()
        except OSError:
            self.ended = True  # it was set before it was written
            raise


class EndsFirst(Gateway):
    """Takes a stream for ended, and then writes that down."""

    journal_class = _EndsFirst


class _LeavesTornRecords(RecordLog):
    def _cut_rest(self, file: AppendFile, segment: Any) -> None:
        pass


class _TornJournal(Journal):
    log_class = _LeavesTornRecords


class LeavesTornRecords(Gateway):
    """Goes on writing behind a record that the disk has taken in part."""

    journal_class = _TornJournal


class _ForgetsRests(RecordLog):
    def _cut_rest(self, file: AppendFile, segment: Any) -> None:
        try:
            super()._cut_rest(file, segment)
        finally:
            self._has_rest = False  # it was tried


class _ForgetfulJournal(Journal):
    log_class = _ForgetsRests


class ForgetsRests(Gateway):
    """Goes on writing behind a record that was refused, where the disk did not let it be cut."""

    journal_class = _ForgetfulJournal


class _DropsNewestFirst(RecordLog):
    def drop_before(self, number: int) -> None:
        for old in reversed([s for s in self._segments[:-1] if s.number < number]):
            self._disk.remove(segment_path(self.directory, old.number))
            self._segments = [s for s in self._segments if s is not old]


class _GappedJournal(Journal):
    log_class = _DropsNewestFirst


class DropsNewestFirst(Gateway):
    """Removes the segments that it needs no more from the newest one on."""

    journal_class = _GappedJournal


class _RemovesOnce(RecordLog):
    def drop_before(self, number: int) -> None:
        while len(self._segments) > 1 and self._segments[0].number < number:
            self._disk.remove(segment_path(self.directory, self._segments[0].number))
            self._segments = self._segments[1:]


class _UnforgivingJournal(Journal):
    log_class = _RemovesOnce


class RemovesOnce(Gateway):
    """Cannot get beyond a segment whose removal is said to have failed, and is gone."""

    journal_class = _UnforgivingJournal


class _ImpatientFile(_Unsynced):
    """A file to which a disk that has failed is told to write again."""

    def write(self, data: Buffer) -> None:
        try:
            self._file.write(data)
        except OSError as e:
            if e.errno != EIO:  # a full disk takes a part
                raise
            self._file.write(data)

    def sync(self) -> None:
        self._file.sync()


class _AppendsOnceMore(OsDisk):
    """Takes a write that has failed for one of which nothing was done."""

    def append_to(self, path: Path) -> AppendFile:
        return _ImpatientFile(super().append_to(path))


class _TwiceAppendedJournal(Journal):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "disk": _AppendsOnceMore()})


class AppendsAgain(Gateway):
    """Writes a record behind itself when the disk says that it has failed, and has it."""

    journal_class = _TwiceAppendedJournal


class _KeepsHalfBegun(RecordLog):
    def _take_back(self) -> None:
        pass


class _TwoEndedLedger(Ledger):
    log_class = _KeepsHalfBegun


class KeepsHalfBegun(Receiver):
    """Goes on in a segment of its log, although the next one has its name already."""

    ledger_class = _TwoEndedLedger


class _BegunInPlace(RecordLog):
    @property
    def _unfinished(self) -> Path:
        return segment_path(self.directory, self.segments[-1] + 1 if self.segments else 1)


class _JournalBegunInPlace(Journal):
    log_class = _BegunInPlace


class BeginsInPlace(Gateway):
    """Begins the journal of a new stream under the name by which it is found after a crash."""

    journal_class = _JournalBegunInPlace


class _CopiesWhenOpened(RecordLog):
    """Goes on in a copy of its newest segment, which is free of what an unfinished write has left
    behind it; the old one is removed first, and the copy gets its name then."""

    def _recover(self, *visitors: Any) -> None:
        segments = sorted(self.directory.glob("segment-*.log"))
        if segments:
            newest, copy = segments[-1], self.directory / "segment.copy"
            replace_file(copy, newest.read_bytes())
            OS_DISK.remove(newest)
            OS_DISK.rename(copy, newest)
            OS_DISK.sync_directory(self.directory)
        super()._recover(*visitors)


class _CopiedJournal(Journal):
    log_class = _CopiesWhenOpened


class CopiesWhenStarted(Gateway):
    """Is without its journal for a moment whenever it starts."""

    journal_class = _CopiedJournal


class _TrustsWhatIsThere(RecordLog):
    def _make_durable(self, file: AppendFile, path: Path, last: int, end: int) -> None:
        pass


class _TrustfulLedger(Ledger):
    log_class = _TrustsWhatIsThere


class TrustsWhatIsThere(Receiver):
    """Takes for durable what it finds written when it starts."""

    ledger_class = _TrustfulLedger


class _CommitsFirstLedger(Ledger):
    def commit(self, epoch: int, batch: int, winners: Mapping[int, int]) -> bool:
        try:
            return super().commit(epoch, batch, winners)
        except OSError:
            self.committed.add(batch)  # it was, before that was written down
            raise


class CommitsFirst(Receiver):
    """Takes a batch for committed, and then writes down that it is."""

    ledger_class = _CommitsFirstLedger


class _DropsWhatCameTwiceLedger(NotesWhatCameTwice):
    def commit(self, epoch: int, batch: int, winners: Mapping[int, int]) -> bool:
        try:
            return super().commit(epoch, batch, winners)
        except OSError:
            if any(of == batch for of, *_ in self.again):
                self.staged.pop(batch, None)  # whoever has sent them twice does so once more
            raise


class DropsWhatCameTwice(Receiver):
    """Drops the rows of a commit that fails, where they were sent again before."""

    ledger_class = _DropsWhatCameTwiceLedger


class _UnsyncedFiles(LocalStore):
    def write(self, name: str, data: bytes | memoryview) -> None:
        LocalStore(self.root, _SyncsNames()).write(name, data)


class LeavesStateUnsynced(BatchProtocol):
    """Publishes a manifest of state files that are not durable yet."""

    def __init__(self, settings: Settings) -> None:
        own = cast(LocalStore, settings.store)
        super().__init__(replace(settings, store=_UnsyncedFiles(own.root, own.disk)))


class _UnreadableIsNew(LevelTask):
    def load(self, state: State, keys: list[bytes], hashes: list[int]) -> pa.Array:
        try:
            return super().load(state, keys, hashes)
        except StoreError:
            return pa.nulls(len(keys), state.codec.type)


class TakesUnreadableForNew(BatchProtocol):
    """Takes the entities of a file that cannot be read for such as have never been written."""

    level_task = _UnreadableIsNew


class _LooksFirst(LocalStore):
    def create(self, name: str, data: bytes) -> bool:
        folder, _, file = name.rpartition("/")
        made = file not in self.names(folder)
        if made:
            self.publish(name, data)
        return made


class TakesEpochByRename(BatchProtocol):
    """Looks whether its epoch has a file, and then renames one to it, whoever has made it
    meanwhile."""

    def __init__(self, settings: Settings) -> None:
        own = cast(LocalStore, settings.store)
        super().__init__(replace(settings, store=_LooksFirst(own.root, own.disk)))
