"""Settings of a Spark session that runs applications and little else."""

from __future__ import annotations

from collections.abc import Mapping

LOCAL_SETTINGS: Mapping[str, str] = {
    # Compiled quickly rather than well: messages are handled in Python, the JVM moves blocks.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC",
    # Blocks go from one process to another on the same machine.
    "spark.shuffle.compress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    # A second hash of every block, for queries whose tasks do not give the same rows again.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    # A file of the checkpoint is one rename, without a checksum file by Hadoop beside Spark's own.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""For ``local[N]`` sessions: give each to the session's builder before the JVM starts.

Together they take half of the time of a batch of 250,000 short messages, and nearly all of what
Spark adds to a small one.
"""
