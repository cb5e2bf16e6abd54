"""A user's own session whose JVM ends says so, whatever the error is that shows it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bettong.harness.spark.user_session import JvmEndedError, session


class Builder:
    """Makes a session that has a process like a JVM's and nothing else."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.stopped = 0
        gateway = SimpleNamespace(proc=process)
        self.session = SimpleNamespace(
            sparkContext=SimpleNamespace(_gateway=gateway), stop=self.stop
        )

    def stop(self) -> None:
        self.stopped += 1

    def getOrCreate(self) -> Any:  # noqa: N802 - Spark's name
        return self.session

    def __getattr__(self, name: str) -> Any:
        return lambda *words: self


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Builder]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        found = Builder(process)
        monkeypatch.setattr(SparkSession, "builder", found)
        yield found
        process.kill()


def test_a_jvm_that_is_killed_is_told_of(builder: Builder, tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    with (
        pytest.raises(JvmEndedError, match=r"JVM has ended .*spark\.log.* goes on"),
        session("a", "local[1]", log) as spark,
    ):
        spark.sparkContext._gateway.proc.kill()
        raise ConnectionResetError(104, "Connection reset by peer")
    assert builder.stopped == 0, "there is nothing to be stopped"


def test_other_errors_are_what_they_are(builder: Builder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"), session("a", "local[1]", tmp_path / "log"):
        raise ValueError("mine")
    assert builder.stopped == 1
