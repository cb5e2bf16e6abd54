"""The jobs that ship, each right one with one that does the same and is broken."""

from __future__ import annotations

from bettong.harness.catalog import CatalogEntry, judged
from bettong.lineage.results import Guarantee

_PACKAGE = "bettong.scenarios.jobs"


def _job(name: str, title: str, level: Guarantee = "effectively-once") -> CatalogEntry:
    return judged("job", f"{_PACKAGE}.{name}", title, level)


SHIPPED = (
    _job("stateless:Cleaned", "files, filtered, to Parquet"),
    _job("stateless:CleanedAppended", "files, filtered, appended to a file", "at-least-once"),
    _job("stateless:Upserted", "files, filtered, upserted by id"),
    _job("stateless:KeyedByPlace", "files, upserted by a row's place", "at-least-once"),
    _job("stateless:KeyedByChance", "files, upserted by a key that is drawn", "at-least-once"),
    _job("stateless:NumberedByBatch", "files, a file a batch with the batch's number"),
    _job("stateless:NumberedByDriver", "files, a file a batch with a number counted", "none"),
    _job("stateless:SkippedByMarker", "files, a marker before the rows", "at-most-once"),
    _job("stateless:TwoSinks", "two tables in one foreachBatch, one transaction"),
    _job("stateless:TwoSinksOneMarked", "two tables, one knows no batches", "at-least-once"),
    _job("windows:Counts", "files, window count, append mode, to Parquet"),
    _job("windows:CountsAppended", "files, window count, appended to a file", "at-least-once"),
    _job("postgres:LateCounts", "files, windows that close late, PostgreSQL, batch id and rows"),
    _job(
        "postgres:LateCountsMarkedFirst",
        "files, windows that close late, PostgreSQL, the batch id before the rows",
        "at-most-once",
    ),
    _job("windows:Totals", "update mode, each update replaces its key's row of earlier batches"),
    _job("windows:TotalsOfWhoeverWritesLast", "update mode, each replaces its key's row", "none"),
    _job("windows:TotalsAdded", "sums of each batch, added to a table", "none"),
    _job("windows:Overwritten", "complete mode, the table of an earlier batch replaced"),
    _job("windows:OverwrittenInTwo", "complete mode, emptied and filled apart", "at-most-once"),
    _job("deduplication:Distinct", "files, dropDuplicatesWithinWatermark, to Parquet"),
    _job(
        "deduplication:DistinctAppended",
        "files, dropDuplicatesWithinWatermark, appended to a file",
        "at-least-once",
    ),
    _job("deduplication:Merged", "files, merged by key"),
    _job("deduplication:Remembered", "ids seen are in the driver's memory", "at-least-once"),
    _job("joins:Matched", "two streams, inner join, to Parquet"),
    _job("joins:MatchedAppended", "two streams, inner join, appended to a file", "at-least-once"),
    _job("joins:MatchedOrNot", "two streams, left outer join, to Parquet"),
    _job(
        "joins:MatchedOrNotAppended",
        "two streams, left outer join, appended to a file",
        "at-least-once",
    ),
    _job("state:Sessions", "applyInPandasWithState with timers, to Parquet"),
    _job(
        "state:SessionsAppended",
        "applyInPandasWithState with timers, appended to a file",
        "at-least-once",
    ),
    _job("processors:Visits", "transformWithStateInPandas with timers, SQLite, batch id and rows"),
    _job(
        "processors:VisitsMarkedFirst",
        "transformWithStateInPandas with timers, SQLite, the batch id before the rows",
        "at-most-once",
    ),
    _job("kafka:CountsToTopic", "Kafka, window count, Kafka, last record of a key counts"),
    _job("kafka:CountsToTopicOfAll", "Kafka, window count, Kafka, all records", "at-least-once"),
    _job("kafka:Copied", "Kafka, upserted by id"),
    _job("kafka:CopiedOfOnePartition", "Kafka, one partition of it, upserted", "at-most-once"),
    _job("kafka:CopiedTwice", "Kafka, inserted", "at-least-once"),
)
