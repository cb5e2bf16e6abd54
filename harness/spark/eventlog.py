"""Spark's event log as typed records of task attempts: where they ran and what they moved.

Format: JSON lines of SparkListener events, as ``spark.eventLog.enabled`` writes them.
https://spark.apache.org/docs/latest/monitoring.html
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow

from bettong.lineage.errors import BettongError

_CHUNK = 1 << 16
_BATCH = "streaming.sql.batchId"


class EventLogError(BettongError):
    """An event log that cannot be read: which file, which line."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One task attempt that has ended.

    Attributes:
        batch: the micro-batch, or None for tasks of no streaming batch.
        stage, stage_attempt: Spark's own numbers, over the life of the session.
        partition, attempt: within the stage.
        task: Spark's id of the attempt.
        executor, host: where it ran.
        launched_ms, finished_ms: milliseconds since 1970.
        outcome: ``Success``, or the class of why it ended otherwise (``ExceptionFailure`` …).
        speculative: whether it was started beside another attempt.
        local_bytes_read, remote_bytes_read, bytes_written: of shuffles.
        result_bytes: size of its result.
    """

    batch: int | None
    stage: int
    stage_attempt: int
    partition: int
    attempt: int
    task: int
    executor: str
    host: str
    launched_ms: int
    finished_ms: int
    outcome: str
    speculative: bool
    local_bytes_read: int
    remote_bytes_read: int
    bytes_written: int
    result_bytes: int


@dataclass(frozen=True, slots=True)
class EventLog:
    """What one session's log says.

    Attributes:
        tasks: in the order in which they ended.
        executors_lost: executor id -> why.
    """

    tasks: tuple[TaskRecord, ...]
    executors_lost: Mapping[str, str]

    def of_batch(self, batch: int) -> dict[int, list[TaskRecord]]:
        """The attempts of a batch by partition."""
        found: dict[int, list[TaskRecord]] = {}
        for task in self.tasks:
            if task.batch == batch:
                found.setdefault(task.partition, []).append(task)
        return found


def read_event_log(path: Path) -> EventLog:
    """Read a log: a file, or the directory of a rolling one, plain or ``zstd`` (Spark's default
    from 4.0 on). A torn last line is left out.

    Raises EventLogError for any other line that is no event.
    """
    files = sorted(path.glob("events_*"), key=_part) if path.is_dir() else [path]
    if not files:
        raise EventLogError(f"{path}: there is no event log")
    return event_log(event for file in files for event in _events(file))


def _part(file: Path) -> int:
    number = file.name.split("_")[1]
    return int(number) if number.isdigit() else 0


def _events(file: Path) -> Iterator[Mapping[str, Any]]:
    try:
        lines = _content(file).splitlines(keepends=True)
    except OSError as e:
        raise EventLogError(f"{file}: {e}") from e
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
        except ValueError as e:
            if not line.endswith(b"\n"):
                return
            raise EventLogError(f"{file}:{number}: no event: {line[:100]!r}") from e
        if isinstance(event, dict):
            yield event


def _content(file: Path) -> bytes:
    """What a file holds, decompressed; of a torn one, what can be read."""
    if file.suffix != ".zstd":
        return file.read_bytes()
    content = b""
    with (
        contextlib.suppress(OSError),  # it ends in the midst of a frame
        file.open("rb") as raw,
        pyarrow.CompressedInputStream(raw, "zstd") as stream,
    ):
        while chunk := stream.read(_CHUNK):
            content += chunk
    return content


def event_log(events: Iterable[Mapping[str, Any]]) -> EventLog:
    """The records of parsed events."""
    batches: dict[tuple[int, int], int | None] = {}
    tasks = []
    lost = {}
    for event in events:
        kind = event.get("Event")
        if kind == "SparkListenerStageSubmitted":
            stage = event["Stage Info"]
            batch = (event.get("Properties") or {}).get(_BATCH)
            at = (stage["Stage ID"], stage["Stage Attempt ID"])
            batches[at] = None if batch is None else int(batch)
        elif kind == "SparkListenerTaskEnd":
            tasks.append(_task(event, batches))
        elif kind == "SparkListenerExecutorRemoved":
            lost[str(event["Executor ID"])] = str(event.get("Removed Reason", ""))
    return EventLog(tuple(tasks), lost)


def _task(event: Mapping[str, Any], batches: Mapping[tuple[int, int], int | None]) -> TaskRecord:
    info = event["Task Info"]
    metrics = event.get("Task Metrics") or {}
    read = metrics.get("Shuffle Read Metrics") or {}
    written = metrics.get("Shuffle Write Metrics") or {}
    stage = (event["Stage ID"], event["Stage Attempt ID"])
    return TaskRecord(
        batch=batches.get(stage),
        stage=stage[0],
        stage_attempt=stage[1],
        partition=info.get("Partition ID", info["Index"]),
        attempt=info["Attempt"],
        task=info["Task ID"],
        executor=str(info["Executor ID"]),
        host=info["Host"],
        launched_ms=info["Launch Time"],
        finished_ms=info["Finish Time"],
        outcome=event["Task End Reason"]["Reason"],
        speculative=bool(info.get("Speculative")),
        local_bytes_read=read.get("Local Bytes Read", 0),
        remote_bytes_read=read.get("Remote Bytes Read", 0),
        bytes_written=written.get("Shuffle Bytes Written", 0),
        result_bytes=metrics.get("Result Size", 0),
    )
