"""The sinks that ship: one entry each, with the level that check-sink finds, and why."""

from __future__ import annotations

from collections.abc import Iterator

from bettong.harness.catalog import CatalogEntry, judged
from bettong.lineage.results import Guarantee
from bettong.scenarios.sinks.measured import MEASURED

_PACKAGE = "bettong.scenarios.sinks"
_NOTHING = "none was found"
_REPLAYED = "crash before `commits/N`"
_ATTEMPT = "a task's attempt fails"
_REPLY = "a reply is lost"
_BY_KEY = "a row that is written again replaces itself"
_ONE = "the batch id is recorded with the rows or not at all; a replay finds it and does nothing"
_AGAIN = "nothing distinguishes the replay of the batch from a new batch"
_BETWEEN = "crash between the two transactions"
_ROWS_FIRST = "the rows are there and the batch id is not, so the replay writes them again"
_MARK_FIRST = "the batch id is there and the rows are not, so the replay skips them"
_NO_ABORT = "nobody takes back what a failed attempt wrote, and the next one writes it again"


def _of(module: str, *sinks: tuple[str, str, Guarantee, str, str]) -> Iterator[CatalogEntry]:
    for name, title, level, fault, mechanism in sinks:
        yield judged("sink", f"{_PACKAGE}.{module}:{name}", title, level, fault, mechanism)


def short_name(sink: CatalogEntry) -> str:
    """``module:Object``."""
    return sink.name.removeprefix(f"{_PACKAGE}.")


SHIPPED = [
    *_of(
        "files",
        (
            "Parquet",
            "Spark's file sink, read through its metadata log",
            "effectively-once",
            _NOTHING,
            "a file counts when the log names it, and the log has each batch once",
        ),
        (
            "ParquetFiles",
            "the same files, read without the metadata log",
            "none",
            _ATTEMPT,
            "files of attempts that lost or never ended are there too",
        ),
        (
            "JsonAppend",
            "foreachBatch appends to a file",
            "none",
            _REPLAYED,
            f"{_AGAIN}, and what is appended to a line that was written by half cannot be read",
        ),
        (
            "JsonBatchFiles",
            "foreachBatch, a file for each batch, renamed",
            "effectively-once",
            _NOTHING,
            "a replay replaces the batch's file in one step",
        ),
        ("SqliteInsert", "SQLite, plain INSERT", "at-least-once", _REPLAYED, _AGAIN),
        (
            "SqliteOneTransaction",
            "SQLite, rows and batch id together",
            "effectively-once",
            _NOTHING,
            _ONE,
        ),
        (
            "SqliteRowsThenMarker",
            "SQLite, rows, then the batch id",
            "at-least-once",
            _BETWEEN,
            _ROWS_FIRST,
        ),
        (
            "SqliteMarkerThenRows",
            "SQLite, the batch id, then rows",
            "at-most-once",
            _BETWEEN,
            _MARK_FIRST,
        ),
    ),
    *_of(
        "writers",
        ("ForeachAppend", "foreach appends row by row", "at-least-once", _REPLAYED, _AGAIN),
        (
            "DataSourceRename",
            "a Python data source that renames at commit",
            "effectively-once",
            _NOTHING,
            "attempts write aside, and one rename makes a batch visible, unless it is there",
        ),
        (
            "DataSourceDirect",
            "a Python data source that writes in write()",
            "at-least-once",
            _ATTEMPT,
            _NO_ABORT,
        ),
    ),
    *_of(
        "landed",
        (
            "Landed",
            "the engine's landing of whatever Spark reads as a stream",
            "effectively-once",
            _NOTHING,
            "a batch's file is made whole, and only where there is none",
        ),
    ),
    *_of(
        "mutants",
        (
            "TasksAppend",
            "each task appends row by row, the driver empties the file first",
            "at-least-once",
            _ATTEMPT,
            _NO_ABORT,
        ),
        (
            "KeyedByPlace",
            "SQLite, upsert by a key made of a row's partition and place",
            "at-least-once",
            f"{_REPLAYED}, replayed in other partitions",
            "the same row has another key in the replay",
        ),
        (
            "OwnIdentity",
            "SQLite, rows and batch id together, under a name made at each start",
            "at-least-once",
            _REPLAYED,
            "the new driver looks for the batch under another name",
        ),
        (
            "AcknowledgesEarly",
            "rows are kept in memory until every second batch",
            "at-most-once",
            "crash after `commits/N`",
            "the batch is recorded as done while its rows are in memory only",
        ),
        (
            "WritesInPlace",
            "a file for each batch under its name, left alone when it is there",
            "none",
            "crash in the midst of writing",
            "the replay takes a file that was begun for the whole batch",
        ),
        (
            "MarksBeforeArrow",
            "a folder for each batch, left alone when it is there, with a Parquet file by Arrow",
            "at-most-once",
            "crash between folder and file",
            "the replay takes a folder without its file for the batch",
        ),
        (
            "NamedByDay",
            "a file for each batch and day, renamed",
            "at-least-once",
            "crash before `commits/N`, replayed a day later",
            "the same batch has another name in the replay",
        ),
        (
            "MergesThirds",
            "a file for each batch, and each third batch merges them",
            "at-most-once",
            "a file cannot be removed in the third batch",
            "the merged file is written again, without those that are removed already",
        ),
        (
            "OneNameAside",
            "a file for each batch, always renamed from the same name aside",
            "none",
            "a late driver amid a batch of its successor",
            "it puts the other one's file in place as that of its own batch",
        ),
        (
            "AsksOutside",
            "SQLite, rows and batch id together, the id not unique",
            "at-least-once",
            "two drivers at once",
            "both ask before either of them writes, and find nothing",
        ),
        (
            "StagesByPartition",
            "SQLite, tasks stage rows by batch and partition, the driver moves them in the end",
            "none",
            "a late driver amid its successor's replay",
            "it stages rows once more that the replay has in other partitions",
        ),
    ),
    *_of(
        "postgres",
        ("PlainInsert", "PostgreSQL, plain INSERT", "at-least-once", _REPLAYED, _AGAIN),
        (
            "OnConflict",
            "PostgreSQL, INSERT … ON CONFLICT",
            "effectively-once",
            _NOTHING,
            "a row whose id is there is not inserted again",
        ),
        (
            "OneTransaction",
            "PostgreSQL, rows and batch id together",
            "effectively-once",
            _NOTHING,
            _ONE,
        ),
        (
            "AskFirst",
            "PostgreSQL, rows and batch id together, and nothing that keeps the id from being "
            "there twice",
            "at-least-once",
            "two drivers at once",
            "both ask before either of them writes, and find nothing",
        ),
        (
            "AsynchronousCommit",
            "PostgreSQL, rows and batch id together, `synchronous_commit` off",
            "at-most-once",
            "the server is killed when it has answered COMMIT",
            "Spark records the batch as done while the server has it in memory only",
        ),
        (
            "RowsThenMarker",
            "PostgreSQL, rows, then the batch id",
            "at-least-once",
            _BETWEEN,
            _ROWS_FIRST,
        ),
        (
            "MarkerThenRows",
            "PostgreSQL, the batch id, then rows",
            "at-most-once",
            _BETWEEN,
            _MARK_FIRST,
        ),
        (
            "CopyPerPartition",
            "PostgreSQL, COPY from each task",
            "at-least-once",
            _ATTEMPT,
            "the task is tried again after its own COMMIT",
        ),
        (
            "RowByRow",
            "PostgreSQL, an INSERT for each row from each task",
            "at-least-once",
            _ATTEMPT,
            "the task dies after some of its requests, and the next attempt makes all of them",
        ),
        (
            "SwallowsErrors",
            "PostgreSQL, errors are logged and forgotten",
            "at-most-once",
            "a request is lost",
            "the error is caught, so that Spark records the batch as done",
        ),
    ),
    *_of(
        "jdbc",
        (
            "JdbcAppend",
            "foreachBatch and Spark's JDBC writer into PostgreSQL",
            "at-least-once",
            _ATTEMPT,
            "each task commits by itself, and nothing distinguishes its rows from new ones",
        ),
    ),
    *_of(
        "duckdb",
        ("Append", "DuckDB, plain INSERT", "at-least-once", _REPLAYED, _AGAIN),
        (
            "OneTransaction",
            "DuckDB, rows and batch id together",
            "effectively-once",
            _NOTHING,
            _ONE,
        ),
    ),
    *_of(
        "redis",
        (
            "Push",
            "Redis, RPUSH",
            "at-least-once",
            _REPLY,
            "the client sends the command again by itself",
        ),
        (
            "Increment",
            "Redis, HINCRBY",
            "at-least-once",
            _REPLAYED,
            "adding is not idempotent",
        ),
        ("Set", "Redis, HSET by id", "effectively-once", _NOTHING, _BY_KEY),
        (
            "GuardedPush",
            "Redis, RPUSH and batch id in one MULTI",
            "effectively-once",
            _NOTHING,
            _ONE,
        ),
        (
            "MarksFirst",
            "Redis, five SETs: the batch id among others, then the rows",
            "at-most-once",
            "crash between two SETs",
            "the batch id is there and the rows are not, so the replay skips them",
        ),
    ),
    *_of(
        "mariadb",
        ("Insert", "MariaDB, plain INSERT", "at-least-once", _REPLAYED, _AGAIN),
        (
            "Upsert",
            "MariaDB, INSERT … ON DUPLICATE KEY UPDATE",
            "effectively-once",
            _NOTHING,
            _BY_KEY,
        ),
    ),
    *_of(
        "rabbitmq",
        (
            "PublishConfirmed",
            "RabbitMQ, publish with confirms",
            "at-least-once",
            _REPLAYED,
            "a confirm says that a message is safe, not that it is new",
        ),
    ),
    *_of(
        "nats",
        ("Publish", "NATS JetStream, publish", "at-least-once", _REPLAYED, _AGAIN),
        (
            "PublishWithId",
            "NATS JetStream, publish with message ids",
            "effectively-once",
            _NOTHING,
            "the stream drops ids that it has seen, within its window for duplicates",
        ),
    ),
    *_of(
        "kafka",
        (
            "SparkKafka",
            "Spark's Kafka sink",
            "at-least-once",
            _ATTEMPT,
            _NO_ABORT,
        ),
        (
            "IdempotentProducer",
            "Kafka, idempotent producer in foreachBatch",
            "at-least-once",
            _REPLAYED,
            "idempotence ends with the producer; the new driver's is another one",
        ),
        (
            "Transactional",
            "Kafka, rows and batch id in one transaction, read committed",
            "effectively-once",
            _NOTHING,
            _ONE,
        ),
        (
            "PreparedThenMarked",
            "Kafka, the batch is marked as done before its transaction is committed",
            "at-most-once",
            "crash between the mark and EndTxn",
            "the broker aborts the transaction that was prepared, and the replay skips the batch",
        ),
    ),
    *_of(
        "http",
        ("Post", "HTTP bulk API", "at-least-once", _REPLAYED, _AGAIN),
        (
            "PostWithKey",
            "HTTP bulk API with an idempotency key",
            "effectively-once",
            _NOTHING,
            "the service answers a key that it has seen without storing anything",
        ),
        (
            "PostInBackground",
            "HTTP bulk API with an idempotency key, by a thread that the next batch waits for",
            "at-most-once",
            "crash while a POST is on its way",
            "Spark has recorded the batch, and nobody sends its rows again",
        ),
    ),
    *_of(
        "delta",
        (
            "DeltaStream",
            "Delta's streaming sink (Spark 4.1)",
            "effectively-once",
            _NOTHING,
            "the table's log has query id and batch id beside the files",
        ),
        (
            "DeltaAppend",
            "foreachBatch, Delta append (Spark 4.1)",
            "at-least-once",
            _REPLAYED,
            _AGAIN,
        ),
        (
            "DeltaAppendOnce",
            "foreachBatch, Delta append with txnAppId and txnVersion (Spark 4.1)",
            "effectively-once",
            _NOTHING,
            _ONE,
        ),
        (
            "DeltaMerge",
            "foreachBatch, Delta MERGE by id (Spark 4.1)",
            "effectively-once",
            _NOTHING,
            "a row whose id is there is not inserted again",
        ),
    ),
    *_of(
        "iceberg",
        (
            "IcebergStream",
            "Iceberg's streaming sink (Spark 4.1)",
            "effectively-once",
            _NOTHING,
            "the table's snapshots have query id and batch id",
        ),
        (
            "IcebergAppend",
            "foreachBatch, Iceberg append (Spark 4.1)",
            "at-least-once",
            _REPLAYED,
            _AGAIN,
        ),
    ),
]


def table() -> str:
    """The sinks as a Markdown table."""
    head = "| sink | what it does | level | runs | smallest fault | why |\n"
    lines = [
        f"| `{short_name(s)}` | {s.title} | {s.level} | {MEASURED[short_name(s)].runs} "
        f"| {s.fault} | {s.mechanism} |\n"
        for s in SHIPPED
    ]
    return head + "|---|---|---|---|---|---|\n" + "".join(lines)
