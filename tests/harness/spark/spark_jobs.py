"""Jobs that the tests have driver hosts do."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.listener import StreamingQueryListener

ROWS_PER_BATCH = 20


def _rows(spark: SparkSession, batches: int) -> DataFrame:
    """``batches`` micro-batches of 20 rows in two partitions, then none."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS_PER_BATCH)
    rows = source.option("numPartitions", 2).load().select("value")
    return rows.where(f.col("value") < batches * ROWS_PER_BATCH)


def _until(query: Any, batches: int) -> None:
    """Run until ``batches`` batches are committed; raises what made the query fail."""
    while (query.lastProgress or {"batchId": -1})["batchId"] < batches - 1:
        if query.awaitTermination(0.05):
            return
    query.stop()


def foreach_batch(spark: SparkSession, workdir: str, batches: int) -> None:
    """Append each batch's values to a file, one line a batch, with no guard at all."""
    out = Path(workdir) / "out"

    def append(batch: DataFrame, batch_id: int) -> None:
        values = sorted(row.value for row in batch.collect())
        with out.open("a") as file:
            file.write(" ".join(map(str, values)) + "\n")

    query = (
        _rows(spark, batches)
        .writeStream.foreachBatch(append)
        .option("checkpointLocation", f"{workdir}/checkpoint")
        .start()
    )
    _until(query, batches)


def parquet(spark: SparkSession, workdir: str, batches: int) -> list[int]:
    """Write each batch with Spark's file sink; returns what a reader sees, sorted."""
    query = (
        _rows(spark, batches)
        .writeStream.format("parquet")
        .option("path", f"{workdir}/out")
        .option("checkpointLocation", f"{workdir}/checkpoint")
        .start()
    )
    _until(query, batches)
    return sorted(row.value for row in spark.read.parquet(f"{workdir}/out").collect())


def stateful(spark: SparkSession, workdir: str, batches: int) -> None:
    """Count values by parity in Spark's state store."""
    out = Path(workdir) / "out"

    def append(batch: DataFrame, batch_id: int) -> None:
        with out.open("a") as file:
            file.write(f"{sorted((r.parity, r.n) for r in batch.collect())}\n")

    query = (
        _rows(spark, batches)
        .groupBy((f.col("value") % 2).alias("parity"))
        .agg(f.count("*").alias("n"))
        .writeStream.foreachBatch(append)
        .outputMode("update")
        .option("checkpointLocation", f"{workdir}/checkpoint")
        .start()
    )
    _until(query, batches)


def count(spark: SparkSession, n: int) -> int:
    """How many rows ``range(n)`` has."""
    return spark.range(n).count()


def pid(spark: SparkSession) -> int:
    """The process of the driver."""
    return os.getpid()


def in_worker(spark: SparkSession) -> str:
    """Have a Python worker do something."""
    return str(spark.sparkContext.parallelize(["done"], 1).map(str).first())


def for_ever(spark: SparkSession) -> None:
    """Have a Python worker sleep."""
    spark.sparkContext.parallelize([3600.0], 1).foreach(time.sleep)


def waits_in_a_batch(spark: SparkSession, workdir: str) -> None:
    """A batch that never ends, once it has made the file ``waits``."""

    def wait(batch: DataFrame, batch_id: int) -> None:
        (Path(workdir) / "waits").touch()
        threading.Event().wait()

    query = _rows(spark, 1).writeStream.foreachBatch(wait)
    query.option("checkpointLocation", f"{workdir}/checkpoint").start().awaitTermination()


def hashes(spark: SparkSession) -> dict[str, int]:
    """The hash of a text in the driver and in a worker."""
    in_worker = spark.sparkContext.parallelize(["text"], 1).map(hash).first()
    return {"driver": hash("text"), "worker": int(in_worker)}


def killed_unseen(spark: SparkSession) -> int:
    """Begin a batch's task, kill it without an interrupt, and say how many tasks go on."""
    context = spark.sparkContext
    tracker = context._jsc.sc().statusTracker()

    def running(want: bool) -> int:
        for _ in range(600):
            tasks = sum(e.numRunningTasks() for e in tracker.getExecutorInfos())
            if bool(tasks) == want:
                break
            time.sleep(0.05)
        return int(tasks)

    def work() -> None:
        context.setJobGroup("killed", "unseen", interruptOnCancel=False)
        context.setLocalProperty("streaming.sql.batchId", "0")
        with contextlib.suppress(Exception):
            spark.range(1).count()

    thread = InheritableThread(target=work)
    thread.start()
    running(want=True)
    context.cancelJobGroup("killed")
    thread.join()
    return running(want=False)


def litter(spark: SparkSession, workdir: str) -> None:
    """Leave everything behind that a job should not: a query, its listener, views, a setting, a
    property, a note in the memory of a Python worker."""
    told = ("onQueryStarted", "onQueryProgress", "onQueryIdle", "onQueryTerminated")
    hears_nothing = dict.fromkeys(told, lambda self, event: None)
    spark.streams.addListener(type("Own", (StreamingQueryListener,), hears_nothing)())
    _rows(spark, 1000).writeStream.format("noop").option(
        "checkpointLocation", f"{workdir}/litter"
    ).start()
    spark.range(3).createTempView("litter")
    spark.range(3).createGlobalTempView("litter")
    _noted_in_worker(spark)
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    spark.conf.set("spark.sql.litter", "yes")
    spark.sparkContext.setLocalProperty("bettong.litter", "yes")
    raise ValueError("and an error")


def _noted_in_worker(spark: SparkSession) -> bool:
    """Whether a task finds the note of an earlier one in its Python process."""

    def note(_: Iterator[int]) -> Iterator[bool]:
        import pyspark

        found = hasattr(pyspark, "litter")
        pyspark.litter = True  # type: ignore[attr-defined]
        yield found

    found: bool = spark.sparkContext.parallelize([0], 1).mapPartitions(note).first()
    return found


def look_for_litter(spark: SparkSession) -> dict[str, Any]:
    """What of :func:`litter` is still there."""
    return {
        "queries": len(spark.streams.active),
        "listeners": len(spark.streams._jsqm.listListeners()),
        "views": [t.name for t in spark.catalog.listTables("global_temp")],
        "in worker": _noted_in_worker(spark),
        "partitions": spark.conf.get("spark.sql.shuffle.partitions"),
        "setting": spark.conf.get("spark.sql.litter", None),
        "property": spark.sparkContext.getLocalProperty("bettong.litter"),
        "instrumentation": spark.sparkContext.getLocalProperty("bettong.instrumentation"),
    }


def modes_of_local_files(spark: SparkSession, workdir: str) -> list[str]:
    """The class of Hadoop's local files, and the modes of a file that is made, of one whose mode is
    set, and of a folder with the sticky bit."""
    jvm, java = spark._jvm, spark._jsc
    assert jvm is not None
    assert java is not None
    hadoop = jvm.org.apache.hadoop.fs
    file, folder = Path(workdir) / "file", Path(workdir) / "folder"
    files = hadoop.Path(str(file)).getFileSystem(java.hadoopConfiguration())
    files.create(hadoop.Path(str(file))).close()
    made = file.stat().st_mode
    files.setPermission(hadoop.Path(str(file)), hadoop.permission.FsPermission("640"))
    files.mkdirs(hadoop.Path(str(folder)))
    files.setPermission(hadoop.Path(str(folder)), hadoop.permission.FsPermission("1750"))
    modes = (made, file.stat().st_mode, folder.stat().st_mode)
    return [files.getClass().getName(), *(f"{mode & 0o7777:o}" for mode in modes)]


class _Function:
    """A Python function that the JVM calls."""

    calls = 0

    def run(self) -> None:
        self.calls += 1

    class Java:
        implements = ("java.lang.Runnable",)


def _called_back(spark: SparkSession, *, collects: bool) -> list[str]:
    from pyspark.java_gateway import ensure_callback_server_started

    gateway = spark.sparkContext._gateway
    assert gateway is not None
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    function = _Function()
    thread = gateway.jvm.java.lang.Thread(function)
    if collects:
        gateway.jvm.java.lang.System.gc()
        gateway.jvm.java.lang.System.runFinalization()
    thread.run()
    assert function.calls == 1
    return [id for id, known in gateway.gateway_property.pool.dict.items() if known is function]


def called_back(spark: SparkSession) -> list[str]:
    """Under which names the JVM knows a function that it has called."""
    return _called_back(spark, collects=False)


def called_back_after_a_collection(spark: SparkSession) -> list[str]:
    """The same, once the JVM has given up all functions that nobody there uses any more."""
    return _called_back(spark, collects=True)
