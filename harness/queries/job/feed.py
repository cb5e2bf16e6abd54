"""Feeds a job step by step: the next step is put in place while the query waits at the record of
the batch that consumed the last one, so that one step is one micro-batch.

Sources stand outside of the job: what was fed stays, whatever dies.
"""

from __future__ import annotations

import csv
import json
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from bettong.harness.queries.job.inputs import Files, Input, StepInput, Topic
from bettong.harness.queries.job.made_rows import Row, columns_of

FOLDER = "input"


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

    def __init__(self, folder: Path, format: str, schema: str) -> None:
        self._folder, self._format, self._schema = folder, format, schema
        self._sent: list[str] = []
        folder.mkdir(parents=True)

    def send(self, number: int, rows: Sequence[Row]) -> None:
        """Put a step in place."""
        name = f"step-{number:04d}.{self._format}"
        aside = self._folder.with_name(f".{self._folder.name}-{name}")
        write_rows(aside, self._format, self._schema, rows)
        aside.rename(self._folder / name)
        self._sent.append(name)

    def consumed(self, checkpoint: Path, batch: int) -> bool:
        """Whether all files are in the source's log up to the batch's offset."""
        seen = ""
        for source, offset in enumerate(_offsets(checkpoint, batch)):
            if isinstance(offset, dict) and "logOffset" in offset:
                for log in (checkpoint / "sources" / str(source)).glob("[0-9]*"):
                    if int(log.name.partition(".")[0]) <= offset["logOffset"]:
                        seen += log.read_text(encoding="utf-8")
        return all(f"{self._folder.name}/{name}" in seen for name in self._sent)

    def close(self) -> None:
        """Files stay until the run's folder goes."""


class TopicSender:
    """A record a row, acknowledged before the step counts as sent."""

    def __init__(self, topic: str, address: str, given: Topic) -> None:
        import kafka
        from kafka.admin import NewTopic

        self._topic, self._given = topic, given
        admin = kafka.KafkaAdminClient(bootstrap_servers=address)
        admin.create_topics([NewTopic(topic, given.partitions, 1)])
        admin.close()
        self._producer = kafka.KafkaProducer(bootstrap_servers=address, acks="all")
        self._sent = [0] * given.partitions

    def send(self, number: int, rows: Sequence[Row]) -> None:
        """Put a step in place."""
        sent = []
        for place, row in enumerate(rows):
            key = str(row[self._given.key]) if self._given.key else ""
            at = (sum(key.encode()) if key else place) % self._given.partitions
            value = json.dumps(row).encode()
            sent.append(self._producer.send(self._topic, value, key.encode() or None, partition=at))
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

    def close(self) -> None:
        """Nothing more is sent."""
        self._producer.close()


def _offsets(checkpoint: Path, batch: int) -> list[Any]:
    """The offset of each source at the end of a batch; none when the batch was not planned."""
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [json.loads(line) if line.startswith(("{", "[")) else None for line in lines[2:]]


def last_recorded(checkpoint: Path) -> int:
    """The last batch that is recorded as done, or -1."""
    found = [int(p.name) for p in (checkpoint / "commits").glob("[0-9]*") if p.name.isdigit()]
    return max(found, default=-1)


class Feed:
    """Feeds one run.

    Args:
        inputs: of the job.
        folder: in which files appear; made, and removed at the end.
        brokers: for topics, the address of each broker that no proxy is before.
        topics: what each topic is called in this run.
        checkpoint: of the query.
        merge: so many steps at once.
    """

    def __init__(
        self,
        inputs: Mapping[str, Input],
        folder: Path,
        brokers: Mapping[str, str],
        topics: Mapping[str, str],
        checkpoint: Path,
        merge: int = 1,
    ) -> None:
        self._folder, self._checkpoint = folder, checkpoint
        self._steps: dict[str, list[list[Row]]] = {}
        self._senders: dict[str, Sender] = {}
        self._fed = 0
        self._lock = threading.Lock()
        self.limit: int | None = None
        for name, given in inputs.items():
            if not isinstance(given, StepInput):
                continue
            self._steps[name] = _merged(given, merge)
            if isinstance(given, Topic):
                self._senders[name] = TopicSender(topics[name], brokers[given.server], given)
            else:
                format = given.format if isinstance(given, Files) else "json"
                self._senders[name] = FileSender(folder / name, format, given.schema)
        self.total = max((len(steps) for steps in self._steps.values()), default=0)

    @property
    def fed(self) -> int:
        """How many steps were put in place."""
        return self._fed

    def advance(self) -> None:
        """Put the next step in place, if all before it was consumed and recorded."""
        with self._lock:
            most = self.total if self.limit is None else min(self.total, self.limit)
            if self._fed < most and (self._fed == 0 or self._consumed()):
                self._put(self._fed)
                self._fed += 1

    def _put(self, number: int) -> None:
        for name, steps in self._steps.items():
            if number < len(steps):
                self._senders[name].send(number, steps[number])

    def _consumed(self) -> bool:
        last = last_recorded(self._checkpoint)
        return all(sender.consumed(self._checkpoint, last) for sender in self._senders.values())

    @property
    def done(self) -> bool:
        """Whether every step was put in place, consumed and recorded."""
        with self._lock:
            return self._fed == self.total and self._consumed()

    def close(self) -> None:
        """The run is over."""
        for sender in self._senders.values():
            sender.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _merged(given: StepInput, merge: int) -> list[list[Row]]:
    """The steps, so many at once; the closing row stays a step of its own."""
    steps = given.steps
    closing = [steps.pop()] if given.closing is not None else []
    merged = [
        [row for step in steps[at : at + merge] for row in step]
        for at in range(0, len(steps), merge)
    ]
    return [*merged, *closing]


def write_rows(path: Path, format: str, schema: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows to a file as Spark reads them."""
    columns = columns_of(schema)
    if format == "json":
        lines = (json.dumps({n: r[n] for n in columns if n in r}) + "\n" for r in rows)
        path.write_text("".join(lines), encoding="utf-8")
    elif format == "csv":
        with path.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, list(columns))
            writer.writeheader()
            writer.writerows(rows)
    else:
        _write_parquet(path, columns, rows)


def _write_parquet(
    path: Path, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]
) -> None:
    from datetime import datetime

    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        "string": pa.string(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "integer": pa.int32(),
        "bigint": pa.int64(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", "UTC"),
    }
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    arrays = []
    for name, kind in columns.items():
        values = [row.get(name) for row in rows]
        if kind == "timestamp":
            values = [
                v if v is None else datetime.fromisoformat(str(v).replace("Z", "+00:00"))
                for v in values
            ]
        arrays.append(pa.array(values, types[kind]))
    pq.write_table(pa.table(arrays, schema), path)
