"""A Spark session for a user's own run."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bettong.engine.spark.settings import LOCAL_SETTINGS
from bettong.harness.spark import jar
from bettong.harness.spark.session import sockets_fit
from bettong.lineage.errors import BettongError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENT = {"spark.python.authenticate.socketTimeout": "2m"}
"""How long a Python worker may take to start on a machine with other work: Spark gives it 15 s, and
ends the query."""

_ENDS_S = 5.0

LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def local_settings() -> dict[str, str]:
    """Settings of a session on this machine alone: fast for applications, listening on loopback
    only. To be given before its JVM starts."""
    settings = {
        **LOCAL_SETTINGS,
        **LOOPBACK,
        jar.FILES_SETTING: jar.RAW_FILES,
        "spark.driver.extraClassPath": str(jar.hooks().path),
    }
    if not sockets_fit(Path(tempfile.gettempdir())):
        del settings["spark.python.unix.domain.socket.enabled"]
    return settings


class JvmEndedError(BettongError):
    """Spark's JVM was killed, or has ended by itself."""


@contextmanager
def session(name: str, master: str, log: Path) -> Iterator[SparkSession]:
    """A session, ended afterwards; on this machine alone it listens on loopback.

    Args:
        name: of the application.
        master: Spark's master URL.
        log: what the JVM and its workers say goes there.

    Raises UsageError when Spark cannot be started, JvmEndedError when it ends before the run.
    """
    from py4j.protocol import Py4JNetworkError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master)
    local = local_settings() if master.startswith("local") else {}
    for setting, value in {**PATIENT, **local}.items():
        builder = builder.config(setting, value)
    try:
        with _stderr_to(log):
            spark = builder.getOrCreate()
    except OSError:
        raise
    except Exception as e:
        why = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise UsageError(f"--master {master}: Spark cannot start there: {why} (see {log})") from e
    with _failed_calls_to(log, spark):
        try:
            yield spark
        except Exception as e:
            lost = isinstance(e, ConnectionError | Py4JNetworkError)
            if _has_ended(spark, _ENDS_S if lost else 0.0):
                raise JvmEndedError(
                    f"Spark's JVM has ended before the run has (see {log}): the next start goes on "
                    "where it ended"
                ) from e
            raise
        finally:
            if _has_ended(spark):
                _end_finalizer(spark)
            else:
                spark.stop()


@contextmanager
def _failed_calls_to(log: Path, spark: SparkSession) -> Iterator[None]:
    """Tracebacks that py4j and Spark print themselves when the JVM does not answer go to a file:
    the error that is raised as well is what the run says."""
    kept = logging.FileHandler(log, delay=True)

    def is_not_py4j(record: logging.LogRecord) -> bool:
        if record.module != "java_gateway":
            return True
        kept.handle(record)
        return False

    def handle_error(*_: object) -> None:
        kept.handle(logging.makeLogRecord({"msg": traceback.format_exc()}))

    root, py4j = logging.getLogger(), logging.getLogger("py4j")
    updates = getattr(spark.sparkContext, "_accumulatorServer", None)
    if updates is not None:
        updates.handle_error = handle_error
    root.addFilter(is_not_py4j)
    py4j.addHandler(kept)
    propagated, py4j.propagate = py4j.propagate, False
    try:
        yield
    finally:
        py4j.propagate = propagated
        py4j.removeHandler(kept)
        root.removeFilter(is_not_py4j)
        kept.close()


def _end_finalizer(spark: SparkSession) -> None:
    """Waits for the thread that tells a JVM, now and then, which objects Python no longer has: it
    would ask the one that is gone, after what it prints of that is no longer kept from the user.
    Without ``PYSPARK_PIN_THREAD`` there is none."""
    from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER, FinalizerWorker

    gateway: Any = spark.sparkContext._gateway
    waiting = getattr(gateway._gateway_client, "finalizer_deque", None)
    if waiting is None:
        return
    waiting.clear()
    waiting.append(SHUTDOWN_FINALIZER_WORKER)
    for thread in threading.enumerate():
        if isinstance(thread, FinalizerWorker) and thread.deque is waiting:
            thread.join()


def _has_ended(spark: SparkSession, within: float = 0.0) -> bool:
    """Whether the JVM of the session is gone, or goes within so many seconds: its connections are
    closed a moment before it has ended."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(within)
    return process.poll() is not None


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """What processes that are started meanwhile say goes to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    own = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)
