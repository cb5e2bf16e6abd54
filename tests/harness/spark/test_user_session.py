"""A user's own session whose JVM ends says so, whatever the error is that shows it."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections import deque
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
        client = SimpleNamespace(finalizer_deque=deque())
        gateway = SimpleNamespace(proc=process, _gateway_client=client)
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


def test_a_jvm_that_is_killed_is_reported(builder: Builder, tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    with (
        pytest.raises(JvmEndedError, match=r"JVM has ended .*spark\.log.* goes on"),
        session("a", "local[1]", log) as spark,
    ):
        spark.sparkContext._gateway.proc.kill()
        raise ConnectionResetError(104, "Connection reset by peer")
    assert builder.stopped == 0, "there is nothing to be stopped"


def test_a_jvm_is_reported_too_that_no_thread_tells_what_is_gone(
    builder: Builder, tmp_path: Path
) -> None:
    """As with ``PYSPARK_PIN_THREAD=false``."""
    builder.session.sparkContext._gateway._gateway_client = SimpleNamespace()
    with (
        pytest.raises(JvmEndedError, match="JVM has ended"),
        session("a", "local[1]", tmp_path / "spark.log") as spark,
    ):
        spark.sparkContext._gateway.proc.kill()
        raise ConnectionResetError(104, "Connection reset by peer")


def test_other_errors_are_what_they_are(builder: Builder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"), session("a", "local[1]", tmp_path / "log"):
        raise ValueError("mine")
    assert builder.stopped == 1


DIES = """
import sys
import threading
from pathlib import Path
from py4j.clientserver import FinalizerWorker
from bettong.harness.spark.user_session import JvmEndedError, session

try:
    with session("a", "local[1]", Path(sys.argv[1])) as spark:
        assert spark.sparkContext.parallelize([1, 2, 3], 1).map(abs).count() == 3
        spark._jvm.java.lang.Object()
        spark._jvm.java.lang.Runtime.getRuntime().halt(9)
except JvmEndedError:
    print("told")
print([t for t in threading.enumerate() if isinstance(t, FinalizerWorker)])
"""


@pytest.mark.spark
def test_a_jvm_that_dies_while_it_is_asked_prints_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DIES, str(tmp_path / "spark.log")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1000)
    assert (done.stdout, "Traceback" in done.stderr) == ("told\n[]\n", False), done.stderr


def test_what_py4j_prints_of_a_failed_call_goes_to_the_log(
    builder: Builder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "spark.log"
    with session("a", "local[1]", log):
        for module in ("java_gateway", "mine"):
            told = {"module": module, "msg": f"of {module}", "levelno": logging.ERROR}
            logging.getLogger().handle(logging.makeLogRecord(told))
        logging.getLogger("py4j.clientserver").error("of py4j's own logger")
    assert log.read_text() == "of java_gateway\nof py4j's own logger\n"
    assert caplog.messages == ["of mine"]
