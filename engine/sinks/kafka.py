"""Kafka as a sink, in two strengths.

:class:`KafkaSink`: workers stage, the driver produces a batch and the note that it has done so in
one transaction. Effectively-once for consumers with ``isolation_level=read_committed``.
:class:`DirectKafkaSink`: workers produce at once. At-least-once; each record's header ``id`` is the
same in every replay, so that consumers can drop what they have seen.
"""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from bettong.engine import steps
from bettong.engine.errors import AheadError, FencedError
from bettong.engine.keys import key_text
from bettong.engine.net.client import Patience
from bettong.engine.receiver.batches import Batches
from bettong.engine.sinks.base import Noted, Row
from bettong.engine.sinks.kafka_client import Record, attempted, newest_note, producer
from bettong.engine.sinks.staging import Staging
from bettong.engine.storage.disk import OS_DISK


@dataclass(frozen=True)
class KafkaSink:
    """Rows as records of a topic, a batch in one transaction.

    The note goes to the topic ``<topic>.bettong``, one record for each epoch and batch: which
    epoch has begun and which batches are committed.

    Attributes:
        servers: ``HOST:PORT``, several with commas between.
        topic: where the rows go, by the hash of their key.
        staging: a directory for this sink alone that driver and workers share.
        patience: how long is tried again.
    """

    promises: ClassVar[str] = "effectively-once"
    servers: str
    topic: str
    staging: Path
    patience: Patience = field(default_factory=Patience)

    def open(self, application: str, epoch: int, noted: Noted, newest: int | None = None) -> None:
        """Begin an epoch: the older ones' producers are fenced by Kafka, their workers by the
        staging directory. Raises FencedError when a newer one has begun,
        AheadError when there are batches after ``newest``."""

        def begin() -> None:
            self._staged.open(application, epoch)
            with _lock:
                if before := _drivers.pop(self, None):
                    before.close()
                _drivers[self] = _Driver(self, application, epoch, newest)

        self._try(begin, noted)

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row],
        noted: Noted,
    ) -> None:
        """Stage rows in a file; durable on return."""
        with steps.step(noted.step, causes=noted.causes, carries=noted.carries):
            self._staged.check_epoch(epoch)
            self._staged.stage(epoch, batch, partition, attempt, rows)

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        """Produce the winners' rows and the note in one transaction, unless the note is there."""
        driver = _drivers.get(self)
        if driver is None or driver.epoch != epoch:
            raise FencedError(f"epoch {epoch} of {self.topic} was not begun by this process")

        def produce() -> None:
            self._staged.check_epoch(epoch)
            driver.commit(batch, _records(self._staged.staged(epoch, batch, winners)))
            self._staged.forget(batch)

        self._try(produce, noted)

    @property
    def _staged(self) -> Staging:
        return Staging(self.staging, OS_DISK)

    def _try(self, action: Callable[[], None], noted: Noted) -> None:
        _try(action, noted, self.patience)


class _Driver:
    """One epoch's producer, and what is known to be committed."""

    def __init__(self, sink: KafkaSink, application: str, epoch: int, newest: int | None) -> None:
        self.epoch = epoch
        self._sink = sink
        self._application = application
        self._committed = Batches()
        self._producer: Any = None
        self._join(newest)

    def commit(self, batch: int, records: Iterator[Record]) -> None:
        """Raises FencedError when a newer epoch has begun, or KafkaError: then what has become
        of the transaction is not known, and the next call finds out."""
        if self._producer is None:
            self._join()
        if batch in self._committed:
            return
        following = Batches(self._committed.ranges)
        following.add(batch)
        try:
            self._transact(records, following)
        except BaseException:
            self.close()
            raise
        self._committed = following

    def _join(self, newest: int | None = None) -> None:
        """Become the application's only producer and learn what is committed. Whatever an
        earlier producer had begun has been committed or aborted when this returns."""
        before = self._newest_note()
        self._check(before)
        committed = Batches(before.get("committed", ()))
        if newest is not None and committed and committed.last > newest:
            raise AheadError.of(f"topic {self._sink.topic}", newest)
        own = f"bettong-{self._sink.topic}-{self._application}"
        self._producer = producer(self._sink.servers, own, self._sink.patience)
        try:
            self._producer.init_transactions()
            note = self._newest_note()
            self._check(note)
            self._committed = Batches(note.get("committed", ()))
            self._transact(iter(()), self._committed)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the producer; what it has begun is aborted by the next one."""
        before, self._producer = self._producer, None
        if before is not None:
            before.close(timeout=0)

    def _check(self, note: Mapping[str, Any]) -> None:
        newest = note.get("epoch", 0)
        if newest > self.epoch:
            raise FencedError(f"epoch {self.epoch} of {self._sink.topic} is over: {newest} began")

    def _transact(self, records: Iterator[Record], committed: Batches) -> None:
        note = json.dumps({"epoch": self.epoch, "committed": committed.ranges}).encode()
        self._producer.begin_transaction()
        sent = [self._producer.send(self._sink.topic, **record._asdict()) for record in records]
        sent.append(self._producer.send(self._note_topic, note, self._application.encode()))
        self._producer.flush(_FLUSH_S)
        for each in sent:
            each.get(timeout=0)
        self._producer.commit_transaction()

    def _newest_note(self) -> dict[str, Any]:
        sink = self._sink
        return newest_note(sink.servers, self._note_topic, self._application, sink.patience)

    @property
    def _note_topic(self) -> str:
        return f"{self._sink.topic}.bettong"


@dataclass(frozen=True)
class DirectKafkaSink:
    """Rows as records of a topic, produced by each task attempt.

    Attributes:
        servers, topic, patience: as of KafkaSink.
    """

    promises: ClassVar[str] = "at-least-once"
    servers: str
    topic: str
    patience: Patience = field(default_factory=Patience)

    def open(self, application: str, epoch: int, noted: Noted, newest: int | None = None) -> None:
        """Nothing is fenced: a zombie's rows arrive."""

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row],
        noted: Noted,
    ) -> None:
        """Produce the rows; they are visible at once, whoever wins."""

        def produce() -> None:
            made = producer(self.servers, None, self.patience)
            try:
                sent = [
                    made.send(
                        self.topic, **Record.of(row.id, key_text(row.key), row.data)._asdict()
                    )
                    for row in rows
                ]
                made.flush(_FLUSH_S)
                for each in sent:
                    each.get(timeout=0)
            finally:
                made.close(timeout=0)

        _try(produce, noted, self.patience)

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        """Nothing is left to be done."""
        with steps.step(noted.step, causes=noted.causes, carries=noted.carries):
            pass


_FLUSH_S = 30.0  # a producer whose broker has come back may wait for minutes, a new one does not
_drivers: dict[KafkaSink, _Driver] = {}
_lock = threading.Lock()


def _try(action: Callable[[], None], noted: Noted, patience: Patience) -> None:
    """Run an action that is safe to repeat; each time is an occurrence of the step."""
    link = f"{steps.installed().node}->kafka"

    def act() -> None:
        with steps.step(noted.step, causes=noted.causes, carries=noted.carries, link=link):
            action()

    attempted(act, patience)


def _records(staged: Iterator[bytes]) -> Iterator[Record]:
    for content in staged:
        for line in content.splitlines():
            row = json.loads(line)
            data = row["data"].encode() if "data" in row else b64decode(row["base64"])
            yield Record.of(row["id"], row["key"], data)
