"""The same check as a Spark job, for histories that are larger than one machine.

Same question, same witnesses, written as joins and windows of Spark SQL. The files must be
reachable by every worker. The order of records is that of ``--order`` and ``--arrival``, or of
Parquet's rows; lines of JSON have no order there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bettong.harness.checkers.levels import Judgement, judge, undecided
from bettong.harness.histories.check import StoredCheck
from bettong.harness.histories.readers import SUFFIXES, StoredHistory
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Anomaly, AnomalyKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def judge_on_spark(check: StoredCheck, master: str) -> Judgement:
    """The verdict, from a Spark session on this master that ends with the check."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    spark = (
        builder.master(master)
        .appName("bettong check")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
        if master.startswith("local")
        else builder.master(master).appName("bettong check").getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    if master.startswith("local"):  # Spark's 200 are for clusters
        partitions = 2 * spark.sparkContext.defaultParallelism
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        return _Job(check, spark).judge()
    finally:
        spark.stop()


class _Job:
    def __init__(self, check: StoredCheck, spark: SparkSession) -> None:
        from pyspark.sql import functions

        self.check, self.columns, self.spark = check, check.columns, spark
        self.f: Any = functions
        self.counts: dict[AnomalyKind, int] = {}
        self.anomalies: list[Anomaly] = []

    def judge(self) -> Judgement:
        f, check = self.f, self.check
        expected = self._frame(check.expected, self.columns.order).alias("e").cache()
        observed = self._frame(check.observed, self.columns.arrival).alias("o").cache()
        check.rows = {"expected": expected.count(), "observed": observed.count()}
        bad = self._malformed(expected, observed)
        if bad:
            return undecided(f"the histories cannot be judged: {bad[0]}", bad)
        if not any(check.rows.values()):
            return undecided("nothing was expected and nothing was seen: that proves nothing")
        seen = observed.groupBy("id").agg(
            f.count("*").alias("times"),
            f.min(f.struct("rank", "key", "content")).alias("first"),
        )
        both = (
            expected.withColumnRenamed("rank", "want")
            .withColumnRenamed("key", "right")
            .join(seen, "id", "full")
            .cache()
        )
        self._take("Loss", both.where("times is null").orderBy("want"))
        self._take("Duplicate", both.where("times > 1 and want is not null").orderBy("first.rank"))
        self._take("Phantom", both.where("want is null").orderBy("first.rank"))
        changed = observed.join(
            expected.select("id", f.col("key").alias("right"), f.col("content").alias("good")),
            "id",
        ).where("not (key <=> right) or not (content <=> good)")
        self._take("Corrupt", changed.orderBy("rank"))
        if check.ordering != "none":
            self._reorders(both.where("want is not null and times is not null"))
        order = check.ordering
        return judge(self.anomalies, expect=check.expect, order=order, counts=self.counts)

    def _frame(self, history: StoredHistory, rank: str | None) -> DataFrame:
        """Columns id, key, content (JSON of what is compared) and rank."""
        f = self.f
        kinds = {SUFFIXES[file.suffix] for file in history.files}
        if kinds - {"parquet", "json"} or len(kinds) > 1:
            raise UsageError(f"{history.name}: Spark reads .parquet or .jsonl, not both or others")
        paths = [str(file.resolve()) for file in history.files]
        kind = kinds.pop()
        if kind == "parquet":
            frame = self.spark.read.parquet(*paths)
            place = f.struct("_metadata.file_path", "_metadata.row_index")
        else:
            if rank is None and self.check.ordering != "none":
                option = "--order" if history.name == "expected" else "--arrival"
                raise UsageError(
                    f"{history.name}: lines of JSON have no order in Spark: name a column with "
                    f"{option}, or check with --ordering none"
                )
            frame = self.spark.read.json(paths)
            place = f.struct(f.lit(""), f.monotonically_increasing_id())
        key = f.lit(None).cast("string")
        if self.columns.key is not None:
            key = f.col(self.columns.key).cast("string")
        contents = [f.col(name) for name in self.columns.compare]
        return frame.select(
            f.concat_ws("/", *[f.col(name).cast("string") for name in self.columns.id]).alias("id"),
            key.alias("key"),
            (f.to_json(f.struct(*contents)) if contents else f.lit("")).alias("content"),
            (place if rank is None else f.struct(f.lit(""), f.col(rank).cast("long"))).alias(
                "rank"
            ),
        )

    def _malformed(self, expected: DataFrame, observed: DataFrame) -> list[str]:
        reported = [
            f"{frame_name} record has no id: {row.asDict()}"
            for frame_name, frame in (("expected", expected), ("observed", observed))
            for row in frame.where("id is null or id = ''").limit(10).collect()
        ]
        twice = expected.groupBy("id").count().where("count > 1").limit(10).collect()
        return reported + [
            f"the id {row['id']} is {row['count']} times in the expected history" for row in twice
        ]

    def _take(self, kind: AnomalyKind, rows: DataFrame) -> None:
        number = rows.count()
        if not number:
            return
        self.counts[kind] = number
        for row in rows.limit(self.check.witnesses).collect():
            self.anomalies.append(_anomaly(kind, row.asDict(recursive=True)))

    def _reorders(self, both: DataFrame) -> None:
        from pyspark.sql import Window

        f = self.f
        keyed = both
        parts: list[Any] = []
        if self.check.ordering == "per-key":
            keyed, parts = both.where("right is not null"), [f.col("right")]
        window = Window.partitionBy(*parts).orderBy("first.rank")
        before = f.lag(f.struct("id", "want", "first", "right")).over(window)
        back = keyed.withColumn("before", before).where(
            "before.want > want and before.first.rank < first.rank"
        )
        self._take("Reorder", back.orderBy("before.first.rank"))


def _anomaly(kind: AnomalyKind, row: dict[str, Any]) -> Anomaly:
    name, key = str(row["id"]), row.get("right")
    match kind:
        case "Loss":
            return Anomaly(kind, (name,), key, row["content"] or None)
        case "Duplicate":
            return Anomaly(kind, (name,), key, {"times": 1}, {"times": row["times"]})
        case "Phantom":
            first = row["first"]
            note = f"seen {row['times']} times" if row["times"] > 1 else None
            return Anomaly(kind, (name,), first["key"], None, first["content"] or None, note)
        case "Reorder":
            early, together = str(row["before"]["id"]), row["before"]["right"] == key
            pair = (name, early)
            return Anomaly(kind, pair, key if together else None, list(pair), [early, name])
        case _:
            what = "content" if row["key"] == key else "key"
            right = {"key": key, "value": row["good"]}
            seen = {"key": row["key"], "value": row["content"]}
            return Anomaly(kind, (name,), key, right, seen, f"the {what} differs")
