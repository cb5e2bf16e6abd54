"""What one application has staged and committed, durably.

Everything is a record of a :class:`RecordLog`: epochs, staged rows, commits. A commit is its
record: once that is durable the batch is committed, and its rows follow into the visible output,
by this process or, after a crash, by the next one.
"""

from __future__ import annotations

import json
import struct
import threading
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bettong.engine.net.errors import RefusedError
from bettong.engine.net.names import check_name
from bettong.engine.receiver.batches import Batches
from bettong.engine.receiver.output import Output
from bettong.engine.storage.disk import OS_DISK, Buffer, Disk, closed_if_it_fails
from bettong.engine.storage.log import DamageError, Position, Record, RecordLog

_OPEN, _ROWS, _COMMIT = 1, 2, 3
EPOCH_STEP = 1 << 16
"""By how much an epoch may be higher than the last: for drivers that ended before they came here,
as all do that are started again every few seconds while a receiver is out of reach for days; and a
receiver may be newer than a checkpoint.
"""
_PART = struct.Struct("<QQQQB")  # epoch, partition, attempt, part, last


class Part(NamedTuple):
    """Rows that are in the log."""

    position: Position
    checksum: int


@dataclass(slots=True)
class Staged:
    """What one attempt has prepared so far."""

    parts: list[Part] = field(default_factory=list)
    is_whole: bool = False


class Ledger:
    """One application's state. Safe for several threads.

    Attributes:
        epoch: the newest epoch; older ones are fenced.
        committed: the batches whose commit is recorded.
        staged: ``{batch: {(partition, attempt): Staged}}``, of the newest epoch.

    Raises DamageError when what is on disk is not what was written.
    """

    output_class: type[Output] = Output
    log_class: type[RecordLog] = RecordLog

    def __init__(
        self,
        directory: Path,
        application: str,
        *,
        segment_bytes: int = 64 << 20,
        disk: Disk = OS_DISK,
    ) -> None:
        self.application = check_name("an application", application)
        self.epoch = 0
        self.committed = Batches()
        self.staged: dict[int, dict[tuple[int, int], Staged]] = {}
        self._directory = directory
        self._lock = threading.RLock()
        self._is_restored = False
        self._commits: list[list[Part]] = []  # found in the log while it is opened
        disk.make_directory(directory)
        self._output = self.output_class(directory, disk)
        with closed_if_it_fails(self._output):
            self._log = self.log_class(
                directory / "log",
                head=self._state,
                on_head=self._restore,
                visit=self._visit,
                segment_bytes=segment_bytes,
                disk=disk,
            )
            with closed_if_it_fails(self._log):
                self._complete()
        self._unpublished: list[Part] | None = None

    # --- the three requests

    def open(self, epoch: int) -> None:
        """Fence every older epoch and drop what they have staged; raises RefusedError when this
        one is fenced itself."""
        with self._lock:
            self.check_epoch(epoch)
            self._check_step(epoch)
            if epoch > self.epoch:
                self._log.append(_OPEN, epoch)
                self.epoch = epoch
                self.staged.clear()

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
        """Stage rows; durable on return. Returns True when the batch has been committed already:
        then nothing is staged. The same again changes nothing.

        Raises RefusedError for a fenced epoch, and for other rows than those staged before.
        """
        with self._lock:
            self.check_epoch(epoch)
            if epoch > self.epoch:
                raise RefusedError("epoch", f"epoch {epoch} has not been opened")
            if self.is_committed(batch):
                return True
            known = self.staged.get(batch, {}).get((partition, attempt), Staged())
            name = f"batch={batch}/p={partition}/a={attempt}"
            checksum = zlib.crc32(rows)
            if part < len(known.parts):
                if known.parts[part].checksum != checksum:
                    raise RefusedError("changed", f"{name} was prepared with other rows before")
                return False
            if part > len(known.parts) or known.is_whole:
                raise RefusedError("gap", f"{name}: part {part} does not follow")
            head = _PART.pack(epoch, partition, attempt, part, last)
            position = self._log.append(_ROWS, batch, head, rows)
            self._stage(batch, partition, attempt, Part(position, checksum), last)
            return False

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int]) -> bool:
        """Make visible what the winners ``{partition: attempt}`` have staged; durable on return.
        Returns True when that was done before: then nothing is changed.

        Raises RefusedError for a fenced epoch, and for a winner that has not prepared.
        """
        with self._lock:
            self._publish()
            self.check_epoch(epoch)
            if self.is_committed(batch):
                return True
            self.check_order(batch)
            chosen = self.choose(batch, winners)
            body = {"epoch": epoch, "parts": chosen}
            self._log.append(_COMMIT, batch, json.dumps(body).encode())
            self._forget(batch)
            self._unpublished = chosen
            self._publish()
            if not self.staged:
                self._log.roll_when_full()
                self._log.drop_before(self._log.segments[-1])
            return False

    # --- what decides; an honest mistake is one of these done wrong

    def check_epoch(self, epoch: int) -> None:
        """Raises RefusedError for an epoch that is fenced."""
        if epoch < self.epoch:
            raise RefusedError("fenced", f"epoch {epoch} is over: epoch {self.epoch} has begun")

    def _check_step(self, epoch: int) -> None:
        """An epoch is a start of the driver: one that is far ahead would fence all honest ones
        that follow. Raises RefusedError."""
        most = self.epoch + EPOCH_STEP
        if epoch > most:
            raise RefusedError(
                "epoch",
                f"epoch {epoch} is too far ahead: {most} is the highest that may follow. If a "
                "driver really was started so often and never came here: end it, and remove the "
                "files of later epochs from state/epochs in its checkpoint",
            )

    def check_order(self, batch: int) -> None:
        """Raises RefusedError for a batch that was passed over."""
        if self.committed and batch < self.committed.last:
            raise RefusedError(
                "order", f"batch {batch} was never committed, but {self.committed.last} was"
            )

    def check_following(self, batch: int) -> None:
        """Raises RefusedError when this batch, the first one that a driver's state does not have,
        or a later one is committed."""
        if self.committed and self.committed.last >= batch:
            raise RefusedError("ahead", f"batch {self.committed.last} is committed")

    def is_committed(self, batch: int) -> bool:
        """Whether this batch's commit is recorded."""
        return batch in self.committed

    def choose(self, batch: int, winners: Mapping[int, int]) -> list[Part]:
        """The parts that a commit makes visible, in their order: partition by partition."""
        chosen: list[Part] = []
        for partition, attempt in sorted(winners.items()):
            found = self.staged.get(batch, {}).get((partition, attempt), Staged())
            if not found.is_whole:
                raise RefusedError(
                    "unprepared", f"batch={batch}/p={partition}/a={attempt} has not been prepared"
                )
            chosen += found.parts
        return chosen

    # --- the rest

    def close(self) -> None:
        """Close the files."""
        self._log.close()
        self._output.close()

    def _complete(self) -> None:
        """Have all commits of the log in the output, and tell readers so."""
        for number, parts in enumerate(self._commits, 1):
            self._output.complete(self._rows_of(parts), is_last=number == len(self._commits))
        self._output.finish()

    def _publish(self) -> None:
        """Add a committed batch to the output, if that has not been done."""
        if self._unpublished is not None:
            self._output.append(self._rows_of(self._unpublished))
            self._unpublished = None
        self._output.notify()

    def _rows_of(self, parts: list[Part]) -> Iterator[bytes]:
        for part in parts:
            record = next(self._log.read(part.position))
            yield record.body[_PART.size :]

    def _stage(self, batch: int, partition: int, attempt: int, part: Part, last: bool) -> None:
        attempts = self.staged.setdefault(batch, {})
        staged = attempts.setdefault((partition, attempt), Staged())
        staged.parts.append(part)
        staged.is_whole = last

    def _forget(self, batch: int) -> None:
        """A batch is committed: what losing attempts have staged for it is dropped."""
        self.committed.add(batch)
        self.staged.pop(batch, None)

    def _state(self) -> bytes:
        state = {
            "application": self.application,
            "epoch": self.epoch,
            "committed": self.committed.ranges,
            "length": self._output.length,
            "checksum": self._output.checksum,
        }
        return json.dumps(state).encode()

    def _restore(self, head: bytes) -> None:
        state = json.loads(head)
        if state["application"] != self.application:
            raise DamageError(f"{self._directory} belongs to {state['application']!r}")
        if not self._is_restored:
            self._is_restored = True
            self.epoch = state["epoch"]
            self.committed = Batches(state["committed"])
            self._output.verify(state["length"], state["checksum"])

    def _visit(self, record: Record) -> None:
        if record.kind == _OPEN:
            self.epoch = record.tag
            self.staged.clear()
        elif record.kind == _ROWS:
            _, partition, attempt, _, last = _PART.unpack_from(record.body)
            part = Part(record.position, zlib.crc32(record.body[_PART.size :]))
            self._stage(record.tag, partition, attempt, part, bool(last))
        else:
            parts = json.loads(record.body)["parts"]
            self._commits.append([Part(Position(*position), crc) for position, crc in parts])
            self._forget(record.tag)
