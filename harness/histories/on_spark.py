"""The same check as a Spark job, for histories that are larger than one machine.

Same question, same witnesses, written as joins and windows of Spark SQL. The files must be
reachable by every worker. The order of records is that of ``--order`` and ``--arrival``, or of
Parquet's rows; lines of JSON have no order there. Spark's own reader of JSON loses long numbers
and types, so that where one history is JSON the values of both become their canonical texts in
Python, which needs Bettong on the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bettong.harness.checkers.levels import Judgement, undecided
from bettong.harness.histories.check import StoredCheck
from bettong.harness.histories.columns import Columns, whole_numbers
from bettong.harness.histories.json_values import canonical, parse, shown
from bettong.harness.histories.malformed import MalformedHistoryError
from bettong.harness.histories.readers import SUFFIXES, StoredHistory
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Anomaly, AnomalyKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EXACT = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Left to itself, Spark writes times as JSON to the millisecond."""


def judge_on_spark(check: StoredCheck, master: str) -> Judgement:
    """The verdict, from a Spark session on this master that ends with the check.

    Where Spark runs in this process already, it runs there, with settings of its own, and is
    left running: a process has one Spark, and who started it goes on with it.
    """
    with _session(master) as spark:
        return _judged(check, spark, master)


def _judged(check: StoredCheck, spark: SparkSession, master: str) -> Judgement:
    spark.conf.set("spark.sql.session.timeZone", "UTC")  # an hour that comes twice is no order
    if master.startswith("local"):  # Spark's 200 are for clusters
        partitions = 2 * spark.sparkContext.defaultParallelism
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    job = _Job(check, spark)
    try:
        return job.judge()
    except MalformedHistoryError as e:
        return undecided(str(e), [str(e)])
    finally:
        job.forget()


@contextmanager
def _session(master: str) -> Iterator[SparkSession]:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        yield SparkSession.active().newSession()
        return
    builder: Any = SparkSession.builder
    spark = _started(builder, master)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def _started(builder: Any, master: str) -> SparkSession:
    builder = builder.master(master).appName("bettong check")
    if master.startswith("local"):
        for name in ("bindAddress", "host"):
            builder = builder.config(f"spark.driver.{name}", "127.0.0.1")
        builder = builder.config("spark.ui.enabled", "false")
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as e:
        why = " ".join(str(e).split())[:300] or type(e).__name__
        raise UsageError(f"--spark {master}: Spark cannot start there: {why}") from e
    return session


class _Job:
    def __init__(self, check: StoredCheck, spark: SparkSession) -> None:
        from pyspark.sql import functions

        self.check, self.columns, self.spark = check, check.columns, spark
        self.f: Any = functions
        self.counts: dict[AnomalyKind, int] = {}
        self.anomalies: list[Anomaly] = []
        self.cached: list[DataFrame] = []
        files = (*check.expected.files, *check.observed.files)
        self.by_python = any(SUFFIXES[file.suffix] == "json" for file in files)

    def judge(self) -> Judgement:
        f, check = self.f, self.check
        expected = self._cached(self._frame(check.expected, self.columns.order).alias("e"))
        observed = self._cached(self._frame(check.observed, self.columns.arrival).alias("o"))
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
        both = self._cached(
            expected.withColumnRenamed("rank", "want")
            .withColumnRenamed("key", "right")
            .join(seen, "id", "full")
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
        keyless = expected.where("key is null").count() if check.ordering == "per-key" else 0
        return check.judged(self.anomalies, self.counts, keyless)

    def forget(self) -> None:
        """A later check of the same files reads them again."""
        for frame in self.cached:
            frame.unpersist(blocking=True)

    def _cached(self, frame: DataFrame) -> DataFrame:
        self.cached.append(frame.cache())
        return self.cached[-1]

    def _frame(self, history: StoredHistory, rank: str | None) -> DataFrame:
        """Columns id, key, content (JSON of what is compared) and rank."""
        f = self.f
        kinds = {SUFFIXES[file.suffix] for file in history.files}
        if kinds - {"parquet", "json"} or len(kinds) > 1:
            raise UsageError(f"{history.name}: Spark reads .parquet or .jsonl, not both or others")
        paths = [str(file.resolve()) for file in history.files]
        kind = kinds.pop()
        if kind == "parquet":
            frame = self.spark.read.option("mergeSchema", "true").parquet(*paths)
            place = f.struct("_metadata.file_path", "_metadata.row_index")
        else:
            if rank is None and self.check.ordering != "none":
                option = "--order" if history.name == "expected" else "--arrival"
                raise UsageError(
                    f"{history.name}: lines of JSON have no order in Spark: name a column with "
                    f"{option}, or check with --ordering none"
                )
            frame = self.spark.read.text(paths).where("trim(value) != ''")
            place = f.struct(f.lit(""), f.monotonically_increasing_id())
        if self.by_python:
            return self._in_canonical_texts(frame, place, kind, rank)
        key = f.lit(None).cast("string")
        if self.columns.key is not None:
            key = f.col(self.columns.key).cast("string")
        contents = [f.col(name) for name in self.columns.compare]
        return frame.select(
            self._id().alias("id"),
            key.alias("key"),
            (f.to_json(f.struct(*contents), _EXACT) if contents else f.lit("")).alias("content"),
            (place if rank is None else self._given(self._whole_number(frame, rank))).alias("rank"),
        )

    def _id(self) -> Any:
        """The id as one text, that no other id has; null where a part of it is null or empty."""
        f = self.f
        parts = [f.col(name).cast("string") for name in self.columns.id]
        if len(parts) > 1:
            parts = [f.when(p != "", f.regexp_replace(p, r"([\\/])", r"\\$1")) for p in parts]
            parts = [x for p in parts for x in (f.lit("/"), p)][1:]
        return f.concat(*parts)

    def _given(self, number: Any) -> Any:
        return self.f.struct(self.f.lit("").alias("file"), number.alias("number"))

    def _whole_number(self, frame: DataFrame, rank: str) -> Any:
        """An order as a column tells it, to the microsecond; null where it does not."""
        f, column = self.f, self.f.col(rank)
        match frame.schema[rank].dataType.typeName():
            case "byte" | "short" | "integer" | "long":
                return column.cast("long")
            case "float" | "double" | "decimal":
                return f.when(column == f.floor(column), column.try_cast("long"))
            case "date":
                return f.unix_date(column)
            case "timestamp" | "timestamp_ntz" | "string":
                return f.unix_micros(column.try_cast("timestamp"))
            case other:
                raise UsageError(f"{rank} is {other}: an order is given by whole numbers or times")

    def _in_canonical_texts(
        self, frame: DataFrame, place: Any, kind: str, rank: str | None
    ) -> DataFrame:
        """The same, read by Python; a line that is no object stands in the column ``bad``."""
        f = self.f
        rows = frame.select(place.alias("place"), *frame.columns)
        place_type = rows.schema["place"].dataType.simpleString()
        texts = self._cached(
            rows.mapInArrow(
                _canonical_texts(self.columns, rank, kind == "json"),
                "id string, key string, content string, given_rank bigint, "
                f"place {place_type}, bad string",
            )
        )
        for row in texts.where("bad is not null").limit(1).collect():
            raise MalformedHistoryError(row["bad"])
        order = f.col("place") if rank is None else self._given(f.col("given_rank"))
        return texts.select("id", "key", "content", order.alias("rank"))

    def _malformed(self, expected: DataFrame, observed: DataFrame) -> list[str]:
        reported = [
            f"{frame_name} record has no id: {row.asDict()}"
            for frame_name, frame in (("expected", expected), ("observed", observed))
            for row in frame.where("id is null or id = ''").limit(10).collect()
        ]
        ranks = (
            ("expected", expected, self.columns.order),
            ("observed", observed, self.columns.arrival),
        )
        reported += [
            f"{history} record {row['id']} has no {rank} that is a whole number or a time"
            for history, frame, rank in ranks
            if rank is not None
            for row in frame.where("rank.number is null").limit(10).collect()
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
            fields = row.asDict(recursive=True)
            if self.by_python:
                fields = _in_words(fields, self.columns.compare)
            self.anomalies.append(_anomaly(kind, fields))

    def _reorders(self, both: DataFrame) -> None:
        from pyspark.sql import Window

        f = self.f
        keyed = both
        parts: list[Any] = []
        if self.check.ordering == "per-key":
            keyed, parts = both.where("right is not null"), [f.col("right")]
        window = Window.partitionBy(*parts).orderBy("first.rank", "want")
        before = f.lag(f.struct("id", "want", "first", "right")).over(window)
        back = keyed.withColumn("before", before).where(
            "before.want > want and before.first.rank < first.rank"
        )
        self._take("Reorder", back.orderBy("before.first.rank"))


def _in_words(row: dict[str, Any], compare: Sequence[str]) -> dict[str, Any]:
    """A row with ids, keys and contents as reports show them, in place of canonical texts."""
    found: dict[str, Any] = {}
    for name, text in row.items():
        if isinstance(text, dict):
            found[name] = _in_words(text, compare)
        elif name in ("id", "key", "right") and text is not None:
            found[name] = "/".join(map(str, shown(text)))
        elif name in ("content", "good") and text is not None:
            values = shown(text)
            found[name] = values[0] if len(values) == 1 else dict(zip(compare, values, strict=True))
        else:
            found[name] = text
    return found


def _canonical_texts(
    columns: Columns, rank: str | None, lines: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """From rows, or lines of JSON, to what the job compares."""

    def record_of(row: dict[str, Any]) -> dict[str, Any]:
        place, bad = row.pop("place"), None
        if lines:
            line = row["value"]
            try:
                row = parse(line)
            except ValueError as e:
                row, bad = {}, f"not JSON: {line[:200]!r}: {e}"
            if not isinstance(row, dict):
                row, bad = {}, f"not a JSON object: {line[:200]!r}"
        row = {name: row.get(name) for name in columns.of(rank)}
        missing = any(row[name] in (None, "") for name in columns.id)
        key = row[columns.key] if columns.key else None
        return {
            "id": None if missing else canonical([row[name] for name in columns.id]),
            "key": None if key is None else canonical([key]),
            "content": canonical([row[name] for name in columns.compare]),
            "given_rank": None if rank is None else row[rank],
            "place": place,
            "bad": bad,
        }

    def convert(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            schema = pa.schema(
                [
                    ("id", pa.string()),
                    ("key", pa.string()),
                    ("content", pa.string()),
                    ("given_rank", pa.int64()),
                    ("place", batch.schema.field("place").type),
                    ("bad", pa.string()),
                ]
            )
            rows = [record_of(row) for row in batch.to_pylist()]
            if rank is not None:
                _number(rows, rank)
            yield pa.RecordBatch.from_pylist(rows, schema)

    return convert


def _number(rows: list[dict[str, Any]], rank: str) -> None:
    """Put whole numbers in place of the order that records of a batch give; where one gives none,
    that is what is bad about it."""
    for row in rows:
        if row["given_rank"] is None and row["bad"] is None:
            row["bad"] = f"a record has no {rank}: id {row['id']}"
    numbers: list[int] | list[None] = [None] * len(rows)
    if not any(row["bad"] for row in rows):
        try:
            numbers = whole_numbers(pa.array([row["given_rank"] for row in rows]), rank).tolist()
        except (UsageError, pa.ArrowException, OverflowError) as e:
            rows[0]["bad"] = str(e)
    for row, number in zip(rows, numbers, strict=True):
        row["given_rank"] = number


def _anomaly(kind: AnomalyKind, row: dict[str, Any]) -> Anomaly:
    name, key = str(row["id"]), row.get("right")
    match kind:
        case "Loss":
            return Anomaly(kind, (name,), key, _unless_empty(row["content"]))
        case "Duplicate":
            return Anomaly(kind, (name,), key, {"times": 1}, {"times": row["times"]})
        case "Phantom":
            first = row["first"]
            note = f"seen {row['times']} times" if row["times"] > 1 else None
            return Anomaly(kind, (name,), first["key"], None, _unless_empty(first["content"]), note)
        case "Reorder":
            early, together = str(row["before"]["id"]), row["before"]["right"] == key
            pair = (name, early)
            return Anomaly(kind, pair, key if together else None, list(pair), [early, name])
        case _:
            what = "content" if row["key"] == key else "key"
            right = {"key": key, "value": row["good"]}
            seen = {"key": row["key"], "value": row["content"]}
            return Anomaly(kind, (name,), key, right, seen, f"the {what} differs")


def _unless_empty(content: Any) -> Any:
    """The content of a record, or None where nothing is compared."""
    return None if content in ("", {}) else content
