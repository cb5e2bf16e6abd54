"""Sinks under test that ship: what users write, and how each of them fails."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from bettong.harness.catalog import CatalogEntry
from bettong.lineage.results import Guarantee


@dataclass(frozen=True, slots=True)
class Shipped:
    """A sink that ships, and the level that check-sink finds.

    Attributes:
        target: for ``bettong check-sink``.
        level: what is found.
        title: one line.
    """

    target: str
    level: Guarantee
    title: str


def _of(module: str, *sinks: tuple[str, Guarantee, str]) -> list[Shipped]:
    return [Shipped(f"{__name__}.{module}:{name}", level, title) for name, level, title in sinks]


SHIPPED = [
    *_of(
        "files",
        ("Parquet", "effectively-once", "Spark's file sink, read through its metadata log"),
        ("ParquetFiles", "none", "the same files, read without the metadata log"),
        ("JsonAppend", "at-least-once", "foreachBatch appends to a file"),
        ("JsonBatchFiles", "effectively-once", "foreachBatch, a file for each batch, renamed"),
        ("SqliteInsert", "at-least-once", "SQLite, plain INSERT"),
        ("SqliteOneTransaction", "effectively-once", "SQLite, rows and batch id together"),
        ("SqliteRowsThenMarker", "at-least-once", "SQLite, rows, then the batch id"),
        ("SqliteMarkerThenRows", "at-most-once", "SQLite, the batch id, then rows"),
    ),
    *_of(
        "writers",
        ("ForeachAppend", "at-least-once", "foreach appends row by row"),
        ("DataSourceRename", "effectively-once", "a Python data source that renames at commit"),
        ("DataSourceDirect", "at-least-once", "a Python data source that writes in write()"),
    ),
    *_of(
        "postgres",
        ("PlainInsert", "at-least-once", "PostgreSQL, plain INSERT"),
        ("OnConflict", "effectively-once", "PostgreSQL, INSERT … ON CONFLICT"),
        ("OneTransaction", "effectively-once", "PostgreSQL, rows and batch id together"),
        ("RowsThenMarker", "at-least-once", "PostgreSQL, rows, then the batch id"),
        ("MarkerThenRows", "at-most-once", "PostgreSQL, the batch id, then rows"),
        ("CopyPerPartition", "at-least-once", "PostgreSQL, COPY from each task"),
        ("SwallowsErrors", "at-most-once", "PostgreSQL, errors are logged and forgotten"),
    ),
    *_of(
        "redis",
        ("Push", "at-least-once", "Redis, RPUSH"),
        ("Increment", "at-least-once", "Redis, HINCRBY"),
        ("Set", "effectively-once", "Redis, HSET by id"),
        ("GuardedPush", "effectively-once", "Redis, RPUSH and batch id in one MULTI"),
    ),
    *_of(
        "mariadb",
        ("Insert", "at-least-once", "MariaDB, plain INSERT"),
        ("Upsert", "effectively-once", "MariaDB, INSERT … ON DUPLICATE KEY UPDATE"),
    ),
    *_of(
        "rabbitmq",
        ("PublishConfirmed", "at-least-once", "RabbitMQ, publish with confirms"),
    ),
    *_of(
        "nats",
        ("Publish", "at-least-once", "NATS JetStream, publish"),
        ("PublishWithId", "effectively-once", "NATS JetStream, publish with message ids"),
    ),
    *_of(
        "http",
        ("Post", "at-least-once", "HTTP bulk API"),
        ("PostWithKey", "effectively-once", "HTTP bulk API with an idempotency key"),
    ),
]


def entries() -> list[CatalogEntry]:
    """The sinks as ``bettong list`` shows them; their names are targets of check-sink."""
    return [
        CatalogEntry(
            name=sink.target,
            kind="sink",
            title=f"{sink.title}: {sink.level}",
            load=partial(str, sink.target),
            expect="valid" if sink.level == "effectively-once" else "invalid",
        )
        for sink in SHIPPED
    ]
