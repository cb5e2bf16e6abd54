"""Feeds a job step by step: the next step is put in place while the query waits at the record of
the batch that consumed the last one, so that one step is one micro-batch.

Sources stand outside of the job: what was fed stays, whatever dies.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from bettong.engine.spark.notes import SparkNotes
from bettong.harness.queries.job.csv_files import write_csv
from bettong.harness.queries.job.inputs import StepInput
from bettong.harness.queries.job.made_rows import Row, columns_of
from bettong.harness.queries.job.parquet_files import write_parquet

FOLDER = "input"
_MOST_BATCHES = 200
"""That a source with a limit needs for one step at most."""
_TOPIC_S = 20.0
_POLL_S = 0.05


class Sender(Protocol):
    """Puts the steps of one input in place."""

    def send(self, number: int, rows: Sequence[Row]) -> None:
        """Put a step in place."""

    def consumed(self, checkpoint: Path, batch: int) -> bool:
        """Whether the offsets of a batch, and of those before, cover all that was sent."""

    def close(self) -> None:
        """Nothing more is sent."""


class FileSender:
    """A file a step, in place by one rename."""

    def __init__(self, folder: Path, format: str, schema: str, place: str = "") -> None:
        self._folder, self._format, self._schema = folder, format, schema
        self._place = place or folder.name  # what its path ends with
        self._sent: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)

    def send(self, number: int, rows: Sequence[Row]) -> None:
        """Put a step in place."""
        name = f"step-{number:04d}.{self._format}"
        aside = self._folder.with_name(f".{self._folder.name}-{name}")
        self.write(aside, rows)
        aside.rename(self._folder / name)
        self._sent.append(name)

    def write(self, path: Path, rows: Sequence[Any]) -> None:
        """Write a step's file aside."""
        write_rows(path, self._format, self._schema, rows)

    def consumed(self, checkpoint: Path, batch: int) -> bool:
        """Whether all files are in the source's log up to the batch's offset."""
        seen = ""
        for source, offset in enumerate(_offsets(checkpoint, batch)):
            if isinstance(offset, dict) and "logOffset" in offset:
                for log in (checkpoint / "sources" / str(source)).glob("[0-9]*"):
                    if int(log.name.partition(".")[0]) <= offset["logOffset"]:
                        seen += log.read_text(encoding="utf-8")
        return all(f"/{self._place}/{name}" in unquote(seen) for name in self._sent)

    def close(self) -> None:
        """Files stay until the run's folder goes."""


class LineSender(FileSender):
    """The lines of a user's file, as they are, each file with the header if there is one."""

    def __init__(self, folder: Path, suffix: str, header: Sequence[str], place: str = "") -> None:
        super().__init__(folder, suffix.lstrip("."), "", place)
        self._header = header

    def write(self, path: Path, rows: Sequence[Any]) -> None:
        """Write a step's file aside."""
        path.write_text("".join(f"{line}\n" for line in (*self._header, *rows)), encoding="utf-8")


class TopicSender:
    """A record a row, acknowledged before the step counts as sent."""

    def __init__(self, topic: str, address: str, partitions: int = 1, key: str = "") -> None:
        self._topic, self._address, self._key = topic, address, key
        _make_topic(topic, address, partitions)
        self._producer = self._connected()
        self._sent = [0] * partitions

    def send(self, number: int, rows: Sequence[Any]) -> None:
        """Put a step in place."""
        sent = []
        for place, row in enumerate(rows):
            value = row.get(self._key) if self._key else None
            key = "" if value is None else str(value)
            at = (sum(key.encode()) if key else place) % len(self._sent)
            value = row.encode() if isinstance(row, str) else json.dumps(row).encode()
            record = self._producer.send(self._topic, value, key.encode() or None, partition=at)
            sent.append(record)
            self._sent[at] += 1
        self._producer.flush()
        for record in sent:
            record.get(timeout=30)

    def consumed(self, checkpoint: Path, batch: int) -> bool:
        """Whether the batch's offsets are the ends of the topic."""
        ends = {str(p): n for p, n in enumerate(self._sent)}
        found = [
            offset[self._topic]
            for offset in _offsets(checkpoint, batch)
            if isinstance(offset, dict) and self._topic in offset
        ]
        return bool(found) and all(
            int(offset.get(p, 0)) >= n for offset in found for p, n in ends.items()
        )

    def widen(self) -> str:
        """The topic gets one partition more, to which rows go from now on; how many it has."""
        import kafka
        from kafka.admin import NewPartitions

        admin = kafka.KafkaAdminClient(bootstrap_servers=self._address)
        try:
            admin.create_partitions({self._topic: NewPartitions(len(self._sent) + 1)})
        finally:
            admin.close()
        self._sent.append(0)
        self._producer.close()
        self._producer = self._connected()  # the one that was there knows the old ones only
        deadline = time.monotonic() + _TOPIC_S
        while len(self._producer.partitions_for(self._topic) or ()) < len(self._sent):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the broker does not add a partition to {self._topic}")
            self._producer.close()
            self._producer = self._connected()
        return f"{self._topic} has {len(self._sent)} partitions"

    def close(self) -> None:
        """Nothing more is sent."""
        self._producer.close()

    def _connected(self) -> Any:
        import kafka

        return kafka.KafkaProducer(bootstrap_servers=self._address, acks="all")


def _make_topic(topic: str, address: str, partitions: int) -> None:
    """An empty topic; one that is there already, from an earlier run, goes first."""
    import kafka
    from kafka.admin import NewTopic
    from kafka.errors import TopicAlreadyExistsError

    admin = kafka.KafkaAdminClient(bootstrap_servers=address)
    try:
        if topic in admin.list_topics():
            admin.delete_topics([topic])
        deadline = time.monotonic() + _TOPIC_S
        while True:
            try:
                admin.create_topics([NewTopic(topic, partitions, 1)])
                return
            except TopicAlreadyExistsError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)  # the broker deletes in its own time
    finally:
        admin.close()


def _offsets(checkpoint: Path, batch: int) -> list[Any]:
    """The offset of each source at the end of a batch; none when the batch was not planned."""
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [json.loads(line) if line.startswith(("{", "[")) else None for line in lines[2:]]


class Feed:
    """Feeds one run.

    Args:
        steps: of each input.
        senders: of each input.

    Attributes:
        checkpoint: of the query; None until it is known.
        limit: so many steps at most for now.
        before: what is done before a step is put in place, by its number.
    """

    def __init__(
        self,
        steps: Mapping[str, list[list[Any]]],
        senders: Mapping[str, Sender],
        checkpoint: Path | None,
    ) -> None:
        self.checkpoint = checkpoint
        self.limit: int | None = None
        self.before: dict[int, Callable[[], object]] = {}
        self.total = max((len(each) for each in steps.values()), default=0)
        self._steps, self._senders = steps, senders
        self._fed = 0
        self._looked = 0
        self._lock = threading.Lock()

    @property
    def fed(self) -> int:
        """How many steps were put in place."""
        return self._fed

    def advance(self) -> None:
        """Put the next step in place, if all before it was consumed and recorded."""
        with self._lock:
            self._looked += 1
            if self._fed < self._most and (self._fed == 0 or self._consumed()):
                self._put(self._fed)
                self._fed += 1
                self._looked = 0

    def in_vain(self) -> str:
        """What is wrong where batch after batch ends and the step in place is not consumed, or
        nothing is left to be; nothing otherwise."""
        if self._looked < _MOST_BATCHES:
            return ""
        names = ", ".join(self._senders)
        what = "after the last step" if self.satisfied else f"without step {self._fed} of {names}"
        return (
            f"it had {_MOST_BATCHES} batches {what}, which come from a source that is not an input "
            "of the job: name what it reads in inputs, and read it by env.input"
        )

    def _put(self, number: int) -> None:
        if number in self.before:
            self.before[number]()
        for name, steps in self._steps.items():
            if number < len(steps) and steps[number]:
                self._senders[name].send(number, steps[number])

    def _consumed(self) -> bool:
        if self.checkpoint is None:
            return False
        last = SparkNotes(self.checkpoint).last_done
        return all(sender.consumed(self.checkpoint, last) for sender in self._senders.values())

    @property
    def _most(self) -> int:
        return self.total if self.limit is None else min(self.total, self.limit)

    @property
    def satisfied(self) -> bool:
        """Whether every step that there is to be for now was consumed and recorded."""
        with self._lock:
            return self._fed == self._most and self._consumed()

    @property
    def done(self) -> bool:
        """Whether every step was put in place, consumed and recorded."""
        with self._lock:
            return self._fed == self.total and self._consumed()

    def close(self) -> None:
        """The run is over."""
        for sender in self._senders.values():
            sender.close()


def repeated(steps: Sequence[list[Any]], number: int) -> list[list[Any]]:
    """The steps, with the rows of one of them once more in the next one."""
    again = steps[number] if number + 1 < len(steps) else []
    return [
        [*step, *again] if place == number + 1 else list(step) for place, step in enumerate(steps)
    ]


def merged(given: StepInput, merge: int) -> list[list[Any]]:
    """The steps, so many at once; the closing row stays a step of its own."""
    steps, closing = _apart(given)
    joined = [
        [row for step in steps[at : at + merge] for row in step]
        for at in range(0, len(steps), merge)
    ]
    return [*joined, *closing]


def in_more_steps(
    given: StepInput, at_least: int, joined: Sequence[tuple[int, int]] = ()
) -> list[list[Any]]:
    """The same rows in so many steps, if they are fewer and have as many rows, of which those from
    the first number of each pair of ``joined`` to before the other are one; the closing row stays a
    step of its own."""
    steps, closing = _apart(given)
    rows = [row for step in steps for row in step]
    if len(steps) < at_least <= len(rows):
        ends = [len(rows) * number // at_least for number in range(at_least + 1)]
        steps = [rows[begin:end] for begin, end in pairwise(ends)]
    for begin, end in sorted(joined, reverse=True):
        at_once = [row for step in steps[begin:end] for row in step]
        steps = [*steps[:begin], *([at_once] if at_once else []), *steps[end:]]
    return [*steps, *closing]


def _apart(given: StepInput) -> tuple[list[list[Any]], list[list[Any]]]:
    """The steps, and the one of the closing row if there is one."""
    steps = given.steps
    return steps, [steps.pop()] if given.closing is not None else []


def closed_at_the_end(
    steps: Mapping[str, list[list[Any]]], inputs: Mapping[str, Any]
) -> dict[str, list[list[Any]]]:
    """The steps of inputs, with a closing row in the last one of all: where inputs share a
    watermark, what another one is still to be fed would come too late."""
    closed = {name for name in steps if inputs[name].closing is not None}
    last = max((len(each) - (name in closed) for name, each in steps.items()), default=0)
    return {
        name: [*each[:-1], *([] for _ in range(last - len(each) + 1)), each[-1]]
        if name in closed
        else each
        for name, each in steps.items()
    }


def write_rows(path: Path, format: str, schema: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows to a file as Spark reads them."""
    columns = columns_of(schema)
    if format == "json":
        lines = (json.dumps({n: r[n] for n in columns if n in r}) + "\n" for r in rows)
        path.write_text("".join(lines), encoding="utf-8")
    elif format == "csv":
        write_csv(path, list(columns), rows)
    else:
        write_parquet(path, columns, rows)
