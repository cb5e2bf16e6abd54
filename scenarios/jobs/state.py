"""State of the job's own, with timers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bettong.harness import Bag, Clean, Files, Job
from bettong.scenarios.jobs.outputs import ToAppendedFile, ToParquet

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

_FAR = "2030-01-01T00:00:00Z"
_CLOSING = {"user": "closing", "at": _FAR}


def _sum_of_user(key: Any, batches: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """Sums a user's values until the watermark has passed the last one by ten seconds."""
    import pandas as pd

    if state.hasTimedOut:
        (total,) = state.get
        state.remove()
        yield pd.DataFrame({"user": [key[0]], "total": [total]})
        return
    (total,) = state.get if state.exists else (0,)
    latest = state.getCurrentWatermarkMs()
    for rows in batches:
        total += int(rows["value"].sum())
        latest = max(latest, int(rows["at"].max().timestamp() * 1000))
    state.update((total,))
    state.setTimeoutTimestamp(latest + 10_000)


class _Sessions(Job):
    inputs = {  # noqa: RUF012
        "clicks": Files("json", "user STRING, value INT, at TIMESTAMP", closing=_CLOSING)
    }
    oracle, compare = Clean(["merged", "partitions", "restart"]), Bag("user", "total")

    def transform(self, env: Any) -> DataFrame:
        clicks = env.input("clicks").withWatermark("at", "5 seconds")
        totals: DataFrame = clicks.groupBy("user").applyInPandasWithState(
            _sum_of_user,
            "user STRING, total INT",
            "total INT",
            "append",
            "EventTimeTimeout",
        )
        return totals


class Sessions(_Sessions, ToParquet):
    """applyInPandasWithState with event-time timers, into Spark's file sink."""


class SessionsAppended(_Sessions, ToAppendedFile):
    """The same, appended to a file."""
