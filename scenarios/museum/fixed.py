"""What brought about bugs that are mended: the same operators, state and settings, for check-job to
look whether they are still there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bettong.scenarios.jobs.kafka import Copied
from bettong.scenarios.jobs.state import Sessions
from bettong.scenarios.jobs.windows import Counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_STATE = "spark.sql.streaming.stateStore"
_ROCKSDB = {
    f"{_STATE}.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
}


class CountsOnRocksDB(Counts):
    """Windows counted in RocksDB with changelogs, a snapshot after each batch."""

    spark_config = {**_ROCKSDB, f"{_STATE}.minDeltasForSnapshot": "1"}  # noqa: RUF012


class CountsOfFormatTwo(Counts):
    """The same in the checkpoint's second format, whose files have names of their own for each
    attempt."""

    spark_config = {**_ROCKSDB, f"{_STATE}.checkpointFormatVersion": "2"}  # noqa: RUF012


class SessionsOnRocksDB(Sessions):
    """State of the job's own with timers, in RocksDB."""

    spark_config = _ROCKSDB


class CopiedByTheDay(Copied):
    """A topic, copied by a query that is started for what is there now, again and again."""

    trigger = {"availableNow": True}  # noqa: RUF012


class CountsByTheDay(Counts):
    """A query that is started for what is there now, again and again."""

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        writer = df.writeStream.format("parquet").option("path", str(env.workdir / "out"))
        writer = writer.trigger(availableNow=True)
        return writer.option("checkpointLocation", env.checkpoint).start()
