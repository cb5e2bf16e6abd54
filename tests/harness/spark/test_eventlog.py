"""Spark's event log is read into task attempts, also when it is torn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bettong.harness.spark.driver import DriverHost
from bettong.harness.spark.eventlog import EventLogError, read_event_log
from bettong.harness.spark.session import SessionConfig


def stage(number: int, batch: int | None) -> dict[str, Any]:
    properties = {} if batch is None else {"streaming.sql.batchId": str(batch)}
    return {
        "Event": "SparkListenerStageSubmitted",
        "Stage Info": {"Stage ID": number, "Stage Attempt ID": 0},
        "Properties": properties,
    }


def task(number: int, partition: int, attempt: int, reason: str) -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": number,
        "Stage Attempt ID": 0,
        "Task End Reason": {"Reason": reason},
        "Task Info": {
            "Task ID": 10 + attempt,
            "Index": partition,
            "Attempt": attempt,
            "Executor ID": "1",
            "Host": "h",
            "Launch Time": 1,
            "Finish Time": 2,
            "Speculative": attempt > 0,
        },
        "Task Metrics": {"Shuffle Read Metrics": {"Remote Bytes Read": 7}, "Result Size": 3},
    }


def written(path: Path, *events: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(e) + "\n" for e in events))
    return path


def test_attempts_are_joined_by_batch_and_partition(tmp_path: Path) -> None:
    log = read_event_log(
        written(
            tmp_path / "log",
            {"Event": "SparkListenerLogStart"},
            stage(4, 2),
            stage(5, None),
            task(4, 0, 0, "ExceptionFailure"),
            task(4, 0, 1, "Success"),
            task(5, 0, 0, "Success"),
            {"Event": "SparkListenerExecutorRemoved", "Executor ID": "1", "Removed Reason": "lost"},
        )
    )
    attempts = log.of_batch(2)[0]
    assert [(a.attempt, a.outcome, a.speculative) for a in attempts] == [
        (0, "ExceptionFailure", False),
        (1, "Success", True),
    ]
    assert (attempts[0].remote_bytes_read, attempts[0].result_bytes) == (7, 3)
    assert log.tasks[2].batch is None
    assert log.executors_lost == {"1": "lost"}


def test_a_torn_last_line_is_left_out_and_any_other_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "log", stage(1, 0), task(1, 0, 0, "Success"))
    path.write_bytes(path.read_bytes() + b'{"Event": "Spark')
    assert len(read_event_log(path).tasks) == 1
    path.write_bytes(b"nonsense\n" + path.read_bytes())
    with pytest.raises(EventLogError, match="log:1: no event"):
        read_event_log(path)
    with pytest.raises(EventLogError):
        read_event_log(tmp_path / "nowhere")


@pytest.mark.spark
def test_a_real_log_has_each_batch(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(logs)}
    here = {"PYTHONPATH": str(Path(__file__).parent)}
    host = DriverHost(SessionConfig(spark_config=settings), here)
    try:
        host.wait_ready()
        args = {"workdir": str(tmp_path), "batches": 2}
        host.run("spark_jobs:stateful", args, timeout=120)
        (path,) = logs.iterdir()
        log = read_event_log(path)
    finally:
        host.kill()
    for batch in range(2):
        attempts = log.of_batch(batch)
        assert set(attempts) == {0, 1}
        assert all(a.outcome == "Success" for tasks in attempts.values() for a in tasks)
    assert any(t.bytes_written for t in log.tasks)
