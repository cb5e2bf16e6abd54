"""Receivers with a mistake."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from bettong.engine.net.connection import Connection
from bettong.engine.net.frame import Buffer
from bettong.engine.receiver.batches import Batches
from bettong.engine.receiver.ledger import _OPEN, Ledger, Part, Staged
from bettong.engine.receiver.output import Output
from bettong.engine.receiver.protocol import Commit, Committed
from bettong.engine.receiver.server import Receiver
from bettong.engine.storage.log import DamageError


class _CommitsAgainLedger(Ledger):
    def is_committed(self, batch: int) -> bool:
        return False


class CommitsAgain(Receiver):
    """Does not look whether a batch was committed before."""

    ledger_class = _CommitsAgainLedger


class _KnowsTheLastBatchLedger(Ledger):
    def is_committed(self, batch: int) -> bool:
        return bool(self.committed) and batch == self.committed.last

    def check_order(self, batch: int) -> None:
        pass

    def _forget(self, batch: int) -> None:
        self.committed.add(batch)  # what was staged for it goes when the next epoch begins


class KnowsTheLastBatch(Receiver):
    """Compares a batch with the last one that was committed, for that alone is ever done again."""

    ledger_class = _KnowsTheLastBatchLedger


class _LocksNothingLedger(Ledger):
    def __init__(self, directory: Path, application: str, **options: Any) -> None:
        super().__init__(directory, application, **options)
        self._lock = cast(Any, nullcontext())


class LocksNothing(Receiver):
    """Serves a request that is asked again while the first one is still being served."""

    ledger_class = _LocksNothingLedger


class _LocksItsLogAloneLedger(Ledger):
    def commit(self, epoch: int, batch: int, winners: Mapping[int, int]) -> bool:
        super()._publish()
        recorded = super().commit(epoch, batch, winners)
        super()._publish()
        return recorded

    def _publish(self) -> None:
        pass  # what takes long is done without the lock


class LocksItsLogAlone(Receiver):
    """Adds a batch to the output while others may commit, who find it committed and not added."""

    ledger_class = _LocksItsLogAloneLedger


class _ShowsNextTimeLedger(Ledger):
    def _publish(self) -> None:
        with suppress(OSError):
            super()._publish()


class ShowsNextTime(Receiver):
    """Answers that a batch is committed when its output could not be written: who commits next, or
    starts again, writes it."""

    ledger_class = _ShowsNextTimeLedger


class _CommitsLosersLedger(Ledger):
    def choose(self, batch: int, winners: Mapping[int, int]) -> list[Part]:
        super().choose(batch, winners)  # every winner is there
        return [part for staged in self.staged[batch].values() for part in staged.parts]


class CommitsLosers(Receiver):
    """Makes visible all that was staged for a batch, whoever won."""

    ledger_class = _CommitsLosersLedger


class _ForgetsLedger(Ledger):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.committed = Batches()


class ForgetsOnRestart(Receiver):
    """Keeps in memory which batches are committed."""

    ledger_class = _ForgetsLedger


class _BeginsAgainLedger(Ledger):
    def open(self, epoch: int) -> None:
        super().open(epoch)
        self.staged.clear()


class BeginsAgain(Receiver):
    """Drops what was staged whenever an epoch is begun, also the one that has begun already."""

    ledger_class = _BeginsAgainLedger


class NotesWhatCameTwice(Ledger):
    """Notes which rows were sent again while they were staged.

    Attributes:
        again: batch, partition, attempt and part of each of these.
        believes: what is noted is taken for staged from then on.
    """

    believes = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.again: set[tuple[int, int, int, int]] = set()

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        part: int,
        last: bool,
        rows: Buffer,
    ) -> bool:
        known = self.staged.get(batch, {}).get((partition, attempt), Staged())
        name = (batch, partition, attempt, part)
        if self.believes and name in self.again:
            return False
        if part < len(known.parts):
            self.again.add(name)
        return super().prepare(epoch, batch, partition, attempt, part, last, rows)


class _RemembersStagedLedger(NotesWhatCameTwice):
    believes = True


class RemembersStaged(Receiver):
    """Remembers that it was asked twice for the same rows, and so has them, when a newer epoch has
    dropped them."""

    ledger_class = _RemembersStagedLedger


class _StagesInMemoryLedger(Ledger):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.staged.clear()

    def choose(self, batch: int, winners: Mapping[int, int]) -> list[Part]:
        staged = self.staged.get(batch, {})
        found = (staged[winner] for winner in sorted(winners.items()) if winner in staged)
        return [part for attempt in found for part in attempt.parts]


class StagesInMemory(Receiver):
    """Keeps in memory what is staged, and takes for nothing what is not there."""

    ledger_class = _StagesInMemoryLedger


class _AnswersFirst:
    """A connection on which a commit is carried out after its answer has been sent."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.later: Callable[[], object] | None = None

    def receive(self, idle_s: float | None = None) -> Any:
        return self._connection.receive(idle_s)

    def send(self, message: Any) -> None:
        self._connection.send(message)
        later, self.later = self.later, None
        if later is not None:
            later()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)  # in all else it is the connection itself


class CommitsLate(Receiver):
    """Answers that a batch is committed, and commits it then."""

    _current = threading.local()

    def serve(self, connection: Connection) -> None:
        self._current.connection = _AnswersFirst(connection)
        super().serve(cast(Connection, self._current.connection))

    def commit(self, ledger: Ledger, request: Commit) -> Committed:
        self._current.connection.later = partial(super().commit, ledger, request)
        return Committed(False, "")


class _NumbersByArrivalLedger(Ledger):
    def __init__(self, *args: Any, **options: Any) -> None:
        self._arrived = 0
        self._seen: set[int] = set()
        super().__init__(*args, **options)

    def is_committed(self, batch: int) -> bool:
        return False  # what is there already is known by its number

    def choose(self, batch: int, winners: Mapping[int, int]) -> list[Part]:
        new: list[Part] = []
        for part in super().choose(batch, winners):
            number, self._arrived = self._arrived, self._arrived + 1
            if number not in self._seen:
                self._seen.add(number)
                new.append(part)
        return new


class NumbersByArrival(Receiver):
    """Knows outputs that it has by a number, but gives the number when they arrive, so that
    what arrives again has another one."""

    ledger_class = _NumbersByArrivalLedger


class _WritesAgain(Output):
    def complete(self, pieces: Iterable[bytes], *, is_last: bool) -> None:
        self.length = self._disk.size(self._path)
        self._write(pieces)


class _WritesLogAgainLedger(Ledger):
    output_class = _WritesAgain


class WritesLogAgain(Receiver):
    """After a restart writes out what its log has from the beginning, behind what is there."""

    ledger_class = _WritesLogAgainLedger


class _DropsTornRow(Output):
    def complete(self, pieces: Iterable[bytes], *, is_last: bool) -> None:
        with self._disk.open(self._path) as file:
            file.seek(self.length)
            left = file.read()
        if not (is_last and left):
            return super().complete(pieces, is_last=is_last)
        whole = left[: left.rfind(b"\n") + 1]
        self._file.truncate(self.length + len(whole))
        self._count(whole)


class _DropsTornRowLedger(Ledger):
    output_class = _DropsTornRow


class DropsTornRow(Receiver):
    """After a power cut drops the row of which only a part is there, and takes what is before it
    for all of the batch."""

    ledger_class = _DropsTornRowLedger


class _StagesAgainLedger(Ledger):
    def open(self, epoch: int) -> None:
        staged = dict(self.staged)
        super().open(epoch)
        self.staged.update(staged)

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        part: int,
        last: bool,
        rows: Buffer,
    ) -> bool:
        known = self.staged.get(batch, {}).get((partition, attempt), Staged())
        known.is_whole = False
        part = len(known.parts)
        return super().prepare(epoch, batch, partition, attempt, part, last, rows)


class StagesAgain(Receiver):
    """Keeps what was staged, and stages beside it what is prepared again."""

    ledger_class = _StagesAgainLedger


class _StagesForNobodyLedger(Ledger):
    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        part: int,
        last: bool,
        rows: Buffer,
    ) -> bool:
        committed, self.committed = self.committed, Batches()
        try:
            super().prepare(epoch, batch, partition, attempt, part, last, rows)
        finally:
            self.committed = committed
        return self.is_committed(batch)


class StagesForNobody(Receiver):
    """Stages what is prepared again of a batch that is committed, and never drops it."""

    ledger_class = _StagesForNobodyLedger


class KnowsBatchesByNumber(Receiver):
    """Remembers across a restart which batches are committed, but not at which sink."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        done = [pair for ledger in self._ledgers.values() for pair in ledger.committed.ranges]
        for ledger in self._ledgers.values():
            for batch in (b for first, last in done for b in range(first, last + 1)):
                ledger.committed.add(batch)


_EPOCHS = 1000
"""A batch of an epoch is ``batch * _EPOCHS + epoch`` to :class:`TrustsEpochs`."""


class _TrustsEpochsLedger(Ledger):
    def __init__(self, *args: Any, **options: Any) -> None:
        self._before: dict[int, Batches] = {}
        super().__init__(*args, **options)

    def check_epoch(self, epoch: int) -> None:
        pass

    def check_order(self, batch: int) -> None:
        pass

    def check_following(self, batch: int) -> None:
        pass

    def open(self, epoch: int) -> None:
        staged = dict(self.staged)
        super().open(epoch)
        self.staged.update(staged)
        self._before.setdefault(epoch, Batches(self.committed.ranges))

    def is_committed(self, batch: int) -> bool:
        number, epoch = divmod(batch, _EPOCHS)
        before = self._before.get(epoch, self.committed)
        earlier = range(number * _EPOCHS, number * _EPOCHS + epoch)
        return batch in self.committed or any(b in before for b in earlier)

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        part: int,
        last: bool,
        rows: Buffer,
    ) -> bool:
        own = batch * _EPOCHS + epoch
        return super().prepare(epoch, own, partition, attempt, part, last, rows)

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int]) -> bool:
        return super().commit(epoch, batch * _EPOCHS + epoch, winners)


class TrustsEpochs(Receiver):
    """Looks at an epoch's beginning which batches are committed, and then only at its own, but
    does not refuse an epoch that is over."""

    ledger_class = _TrustsEpochsLedger


class _ReadsOnce(Output):
    def verify(self, length: int, checksum: int) -> None:
        with self._disk.open(self._path) as file:
            found = file.read(min(1 << 20, length))
        if zlib.crc32(found) != checksum:
            raise DamageError(f"{self._path} is damaged before byte {length}")
        self.length, self.checksum = length, checksum


class _ReadsOnceLedger(Ledger):
    output_class = _ReadsOnce


class ReadsOnce(Receiver):
    """Takes what one read gives for all that there is in its output, and more for damage."""

    ledger_class = _ReadsOnceLedger


class _TidiesUpLedger(Ledger):
    def tidy_up(self) -> None:
        with self._lock:
            self._log.append(_OPEN, self.epoch)  # whoever opens the log drops what is staged
            self.staged.clear()


class TidiesUp(Receiver):
    """Drops what is staged as it is stopped, as if nobody would come back for it."""

    ledger_class = _TidiesUpLedger

    def run(self) -> None:
        try:
            super().run()
        finally:
            for ledger in self._ledgers.values():
                cast(_TidiesUpLedger, ledger).tidy_up()


class _DropsOldLedger(_TidiesUpLedger):
    def __init__(self, directory: Path, application: str, **options: Any) -> None:
        super().__init__(directory, application, **options)
        written = max(path.stat().st_mtime for path in (directory / "log").iterdir())
        if self.staged and time.time() - written > 3600:
            self.tidy_up()


class DropsOld(Receiver):
    """Drops what is staged if it was written more than an hour ago, as it is started."""

    ledger_class = _DropsOldLedger
