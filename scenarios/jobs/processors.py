"""State of the job's own by transformWithStateInPandas, with timers, into SQLite.

Spark's Python needs ``protobuf`` for it, which pyspark does not bring.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from bettong.harness import Bag, Clean, Files
from bettong.scenarios.jobs.outputs import ToSqlite

if TYPE_CHECKING:
    import sqlite3

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

_CLOSING = {"user": "closing", "at": "2030-01-01T00:00:00Z"}
_QUIET_MS = 10_000


class _CountVisits(StatefulProcessor):
    """Counts a user's clicks until the watermark has passed the last one by ten seconds."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._clicks = handle.getValueState("clicks", "clicks INT")

    def handleInputRows(  # noqa: N802 - Spark's name, as those of the arguments
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        (clicks,) = self._clicks.get() or (0,)
        latest = 0
        for batch in rows:
            clicks += len(batch)
            latest = max(latest, int(batch["at"].max().timestamp() * 1000))
        self._clicks.update((clicks,))
        for timer in list(self._handle.listTimers()):
            latest = max(latest, timer - _QUIET_MS)
            self._handle.deleteTimer(timer)
        self._handle.registerTimer(latest + _QUIET_MS)
        return iter(())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        (clicks,) = self._clicks.get() or (0,)
        self._clicks.clear()
        yield pd.DataFrame({"user": [key[0]], "clicks": [clicks]})

    def close(self) -> None:
        """Nothing is kept open."""


class Visits(ToSqlite):
    """Visits that have ended, the batch's id in one transaction with its rows."""

    inputs = {"clicks": Files("json", "user STRING, at TIMESTAMP", closing=_CLOSING)}  # noqa: RUF012
    spark_config = {  # noqa: RUF012
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        )
    }
    oracle, compare = Clean(), Bag("user", "clicks")
    tables = (
        "CREATE TABLE visits (user TEXT, clicks INTEGER)",
        "CREATE TABLE batches (id INTEGER PRIMARY KEY)",
    )
    select = "SELECT user, clicks FROM visits"

    def transform(self, env: Any) -> DataFrame:
        clicks = env.input("clicks").withWatermark("at", "5 seconds")
        visits: DataFrame = clicks.groupBy("user").transformWithStateInPandas(
            _CountVisits(), "user STRING, clicks INT", "Append", "EventTime"
        )
        return visits

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if self.is_new(db, batch_id):
            db.executemany("INSERT INTO visits VALUES (?, ?)", rows)

    def is_new(self, db: sqlite3.Connection, batch_id: int) -> bool:
        """Whether no driver has begun with the batch; from now on one has."""
        begun = db.execute("INSERT OR IGNORE INTO batches VALUES (?)", (batch_id,))
        return begun.rowcount == 1


class VisitsMarkedFirst(Visits):
    """The batch's id is recorded beside its rows, before they are written: a crash between the two
    loses them."""

    def is_new(self, db: sqlite3.Connection, batch_id: int) -> bool:
        new = super().is_new(db, batch_id)
        db.commit()
        return new
