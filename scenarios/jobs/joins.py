"""Joins of two streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bettong.harness import Bag, Files, Job, OuterBag
from bettong.scenarios.jobs.outputs import ToAppendedFile, ToParquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FAR = "2030-01-01T00:00:00Z"


def _at(number: int, after: int = 0) -> str:
    second = number * 10 + after
    return f"2024-01-01T00:{second // 60:02d}:{second % 60:02d}Z"


_ADS = [{"ad": f"a{n}", "shown": _at(n)} for n in range(12)]
_CLICKS = [{"clicked": f"a{n}", "at": _at(n, 5)} for n in range(12) if n % 3]
_INPUTS = {
    "ads": Files(
        "json",
        _ADS,
        schema="ad STRING, shown TIMESTAMP",
        per_step=3,
        closing={"ad": "last", "shown": _FAR},
    ),
    "clicks": Files(
        "json",
        _CLICKS,
        schema="clicked STRING, at TIMESTAMP",
        per_step=2,
        closing={"clicked": "none", "at": _FAR},
    ),
}


class _Matched(Job):
    inputs = _INPUTS
    oracle = "batch"
    how = "inner"

    def transform(self, env: Any) -> DataFrame:
        from pyspark.sql.functions import expr

        ads = env.input("ads").withWatermark("shown", "10 seconds")
        clicks = env.input("clicks").withWatermark("at", "10 seconds")
        within = "ad = clicked AND at >= shown AND at <= shown + interval 20 seconds"
        joined: DataFrame = ads.join(clicks, expr(within), self.how)
        return joined.select("ad", "shown", "at")


class Matched(_Matched, ToParquet):
    """Ads and their clicks, inner join, into Spark's file sink."""

    compare = Bag("ad", "shown", "at")


class MatchedAppended(_Matched, ToAppendedFile):
    """The same, appended to a file."""

    compare = Bag("ad")


class MatchedOrNot(_Matched, ToParquet):
    """Ads with their clicks, or none: left outer join, into Spark's file sink."""

    compare = OuterBag(left="ads")
    how = "left_outer"


class MatchedOrNotAppended(_Matched, ToAppendedFile):
    """The same, appended to a file."""

    compare = Bag("ad")
    how = "left_outer"
