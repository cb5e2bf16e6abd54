"""Makes the shared archive of class data, by a JVM that runs a small streaming query and ends by
itself (about 15 s), in the background and niced."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from bettong.harness.spark.archive import archive_path, forget_unused
from bettong.harness.spark.cache import made_whole
from bettong.harness.spark.host import start_session
from bettong.harness.spark.session import SessionConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def make_in_background() -> subprocess.Popen[bytes] | None:
    """Start making the archive unless it is there or being made by someone else."""
    path = archive_path()
    if path.exists():
        return None
    lock = path.with_suffix(".making")
    with contextlib.suppress(FileNotFoundError, ValueError):
        if not psutil.pid_exists(int(lock.read_text())):  # its maker was killed
            lock.unlink()
    with contextlib.suppress(FileExistsError), lock.open("x") as file:
        maker = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        file.write(str(maker.pid))
        return maker
    return None


def make() -> Path:
    """Make the archive and return its path."""
    path = archive_path()
    forget_unused()
    with (
        tempfile.TemporaryDirectory(prefix="bettong-") as name,
        made_whole(path) as temporary,
    ):
        home = Path(name)
        os.environ.update(SessionConfig().environment(home))
        options = (f"-XX:ArchiveClassesAtExit={temporary}",)
        spark, jvm = start_session(SessionConfig(), home, options)
        _exercise(spark, home)
        spark.stop()
        assert jvm.stdin is not None
        jvm.stdin.close()
        jvm.wait()
    return path


def _exercise(spark: SparkSession, home: Path) -> None:
    """Load the classes that streaming queries use."""

    def take(batch: DataFrame, batch_id: int) -> None:
        batch.collect()

    rows = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 10)
        .option("numPartitions", 2)
        .load()
    )
    counts = rows.groupBy("value").count()
    queries = [
        rows.writeStream.foreachBatch(take).option("checkpointLocation", str(home / "a")).start(),
        counts.writeStream.foreachBatch(take)
        .outputMode("update")
        .option("checkpointLocation", str(home / "b"))
        .start(),
        rows.writeStream.format("parquet")
        .option("path", str(home / "out"))
        .option("checkpointLocation", str(home / "c"))
        .start(),
    ]
    for query in queries:
        while (query.lastProgress or {"batchId": 0})["batchId"] < 2:
            if not query.awaitTermination(1):
                continue
            break
        query.stop()
    spark.read.parquet(str(home / "out")).count()


if __name__ == "__main__":
    os.nice(10)
    try:
        make()
    finally:
        archive_path().with_suffix(".making").unlink(missing_ok=True)
