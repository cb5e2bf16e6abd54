"""Make a session that served one job as good as new for the next."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import psutil

from bettong.engine.steps import Instrumentation
from bettong.harness.processes.children import children_of
from bettong.harness.spark import instrument
from bettong.lineage.errors import BettongError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET_S = 10.0
_POLL_S = 0.01
# By their whole names, for which the JVM is asked once, as a view of it remembers classes.
_STATE_STORES = "org.apache.spark.sql.execution.streaming.state.StateStore"
_PROPERTIES = "java.util.Properties"


class NotCleanError(BettongError):
    """Something of the last job still runs; the session must not be used again."""


class Resetter:
    """Remembers how a session was at first, and brings it back there.

    Args:
        jvm: process id of its JVM.
        fork_servers: of those that fork Spark's daemons, beside the JVM, which starts them.
    """

    def __init__(self, spark: SparkSession, jvm: int, fork_servers: Sequence[int] = ()) -> None:
        self._spark = spark
        self._jvm = jvm
        self._fork_servers = fork_servers
        self._settings = spark._jsparkSession.sessionState().conf().settings()
        self._first_settings = spark._jsparkSession.conf().getAllAsJava()
        self._listeners = list(_query_manager(spark).listListeners())

    def reset(self) -> None:
        """Stop queries and jobs, remove their listeners, drop views and caches, restore settings,
        turn hooks off, end Python workers.

        Raises NotCleanError when tasks or workers still run after 10 s: they could act in the
        next job.
        """
        spark = self._spark
        instrument.install(spark, Instrumentation())
        for query in spark.streams.active:
            query.stop()
        spark.streams.resetTerminated()
        self._remove_listeners()
        self.until_quiet()
        self._end_workers()
        getattr(spark.sparkContext._jvm, _STATE_STORES).stop()
        spark.catalog.clearCache()
        self._drop_views()
        self._restore_settings()
        properties = getattr(spark.sparkContext._jvm, _PROPERTIES)()
        spark.sparkContext._jsc.sc().setLocalProperties(properties)

    def until_quiet(self) -> None:
        """Cancel the jobs that run, and return when no task does; raises NotCleanError."""
        context = self._spark.sparkContext
        context.cancelAllJobs()
        tracker = context._jsc.sc().statusTracker()
        deadline = time.monotonic() + QUIET_S
        while any(int(e.numRunningTasks()) for e in tracker.getExecutorInfos()):
            if time.monotonic() > deadline:
                raise NotCleanError(f"tasks of the last job still run after {QUIET_S:.0f} s")
            time.sleep(_POLL_S)

    def _end_workers(self) -> None:
        """Spark keeps idle workers for later tasks, and what a job's modules hold in their memory
        with them: connections, what they have seen. The daemon forks new ones."""
        deadline = time.monotonic() + QUIET_S
        while workers := self._workers():
            if time.monotonic() > deadline:
                raise NotCleanError(
                    f"Python workers of the last job still run after {QUIET_S:.0f} s"
                )
            for worker in workers:
                with contextlib.suppress(psutil.NoSuchProcess):
                    worker.kill()
            psutil.wait_procs(workers, QUIET_S)

    def _workers(self) -> list[psutil.Process]:
        found = []
        for parent in (self._jvm, *self._fork_servers):
            for daemon in children_of(parent):
                with contextlib.suppress(psutil.NoSuchProcess):
                    found += [w for w in children_of(daemon.pid) if w.pid != self._jvm]
        return found

    def _remove_listeners(self) -> None:
        """What a job's own listener keeps, and does when it is told of a query, ends with it."""
        manager = _query_manager(self._spark)
        for listener in manager.listListeners():
            if listener not in self._listeners:
                manager.removeListener(listener)

    def _drop_views(self) -> None:
        """All at once: to list them takes Spark a query, which is most of what a reset would
        take."""
        catalog = self._spark._jsparkSession.sessionState().catalog()
        catalog.clearTempTables()
        catalog.globalTempViewManager().clear()

    def _restore_settings(self) -> None:
        """Java compares all of them: to ask for one after the other takes longer than most jobs."""
        if not self._settings.equals(self._first_settings):
            self._settings.keySet().retainAll(self._first_settings.keySet())
            self._settings.putAll(self._first_settings)


def _query_manager(spark: SparkSession):  # type: ignore[no-untyped-def]  # a py4j view
    return spark._jsparkSession.streams()
