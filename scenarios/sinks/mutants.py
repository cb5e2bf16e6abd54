"""Sinks that are broken in one way each, without a server, and must be found out."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bettong.harness.queries.sink.contract import Environment
from bettong.scenarios.sinks.files import JsonBatchFiles, SqliteOneTransaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class TasksAppend(JsonBatchFiles):
    """Each task appends row by row to the batch's file: one that dies on the way leaves its first
    rows there, and the next attempt writes them again."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        folder = env.workdir / "out"

        def apply(batch: DataFrame, batch_id: int) -> None:
            folder.mkdir(exist_ok=True)
            whole = folder / f"{batch_id}.jsonl"
            whole.unlink(missing_ok=True)  # so that a replay of the batch begins anew
            batch.foreachPartition(lambda part: _append(whole, part))

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()


def _append(path: Path, rows: Iterable[Any]) -> None:
    with path.open("a", buffering=1) as out:
        for row in rows:
            print(json.dumps(row.asDict(), default=str), file=out)


class KeyedByPlace(SqliteOneTransaction):
    """Writes by key, but by one that Spark makes of a row's partition and place in it: a replay
    that deals the same rows out in another way has other keys."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        from pyspark.sql.functions import monotonically_increasing_id

        def apply(batch: DataFrame, batch_id: int) -> None:
            numbered = batch.withColumn("place", monotonically_increasing_id()).collect()
            found = [(f"{batch_id}/{r.place}", r.id, r.key, r.seq, r.value) for r in numbered]
            db = self._connect(env)
            with db:
                db.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?)", found)
            db.close()

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def setup(self, env: Environment) -> None:
        columns = "place TEXT PRIMARY KEY, id TEXT, key TEXT, seq INTEGER, value INTEGER"
        with self._connect(env) as db:
            db.execute(f"CREATE TABLE rows ({columns})")
        db.close()


class OwnIdentity(SqliteOneTransaction):
    """Rows and batch id in one transaction, but it tells batches by a name that it gives itself
    at each start, not by the checkpoint's: after a restart it knows none of them."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        self._name = random.getrandbits(40) << 20
        return super().write(rows, env)

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        super().apply(db, self._name + batch_id, rows)


class AcknowledgesEarly(JsonBatchFiles):
    """Keeps rows in memory until every second batch, and says of each batch that it is done."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        folder = env.workdir / "out"
        kept: list[Any] = []

        def keep(batch: DataFrame, batch_id: int) -> None:
            kept.extend(batch.collect())
            if batch_id % 2:
                folder.mkdir(exist_ok=True)
                temporary = folder / f".{batch_id}"
                with temporary.open("w") as out:
                    for row in kept:
                        print(json.dumps(row.asDict(), default=str), file=out)
                temporary.rename(folder / f"{batch_id}.jsonl")
                kept.clear()

        writer = rows.writeStream.foreachBatch(keep)
        return writer.option("checkpointLocation", env.checkpoint).start()


class WritesInPlace(JsonBatchFiles):
    """A file for each batch, written under its name and left alone when it is there: one that a
    driver did not come to the end of is taken for the batch."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        folder = env.workdir / "out"

        def apply(batch: DataFrame, batch_id: int) -> None:
            folder.mkdir(exist_ok=True)
            whole = folder / f"{batch_id}.jsonl"
            if not whole.exists():
                whole.write_text(_lines(batch.collect()))

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()


class MarksBeforeArrow(JsonBatchFiles):
    """A folder for each batch, and in it a Parquet file that Arrow writes, past Python: a folder
    that is there is taken for the batch."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def apply(batch: DataFrame, batch_id: int) -> None:
            import pyarrow.parquet

            folder = env.workdir / f"batch-{batch_id}"
            if not folder.exists():
                found = batch.toArrow()
                folder.mkdir()
                pyarrow.parquet.write_table(found, folder / "rows.parquet")

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> Iterable[Any]:
        import pyarrow.parquet

        return [
            row
            for file in sorted(env.workdir.glob("batch-*/rows.parquet"))
            for row in pyarrow.parquet.read_table(file).to_pylist()
        ]


class NamedByDay(JsonBatchFiles):
    """A file for each batch, renamed into place under the batch's id and the day: a replay after
    midnight has another name."""

    def name_of(self, batch_id: int) -> str:
        """Of a batch's file."""
        return f"{date.today()}-{batch_id}.jsonl"


class MergesThirds(JsonBatchFiles):
    """A file for each batch, and each third batch merges what is there into one and removes the
    rest: when it is done again, half of them are gone, and the merged file is written without."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        folder = env.workdir / "out"

        def apply(batch: DataFrame, batch_id: int) -> None:
            folder.mkdir(exist_ok=True)
            if batch_id > _merged(folder):
                _replaced(folder / f"{batch_id}.jsonl", _lines(batch.collect()))
            parts = sorted(folder.glob("[0-9]*.jsonl"))
            if batch_id % 3 == 2 and parts:
                whole = "".join(part.read_text() for part in parts)
                _replaced(folder / f"merged-{batch_id}.jsonl", whole)
                for part in parts:
                    part.unlink()

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> Iterable[Any]:
        folder = env.workdir / "out"
        merged = _merged(folder)
        found = [
            *folder.glob("merged-*.jsonl"),
            *(part for part in folder.glob("[0-9]*.jsonl") if int(part.stem) > merged),
        ]
        return [json.loads(line) for file in found for line in file.read_text().splitlines()]


class OneNameAside(JsonBatchFiles):
    """A file for each batch, written aside and put in place by a rename, always under the same name
    aside: a driver that comes late renames what its successor has written there for another
    batch."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        folder = env.workdir / "out"
        folder.mkdir(exist_ok=True)

        def apply(batch: DataFrame, batch_id: int) -> None:
            aside = folder / ".rows"
            aside.write_text(_lines(batch.collect()))
            aside.rename(folder / f"{batch_id}.jsonl")

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()


class AsksOutside(SqliteOneTransaction):
    """Asks whether the batch is there, and then begins the transaction that writes it: of two
    drivers both may hear that it is not."""

    def setup(self, env: Environment) -> None:
        with self._connect(env) as db:
            db.execute("CREATE TABLE rows (id TEXT, key TEXT, seq INTEGER, value INTEGER)")
            db.execute("CREATE TABLE applied (batch INTEGER)")
        db.close()


class StagesByPartition(SqliteOneTransaction):
    """Tasks stage their rows under batch and partition, in place of what was there under the same;
    the driver empties the batch's stage before that, and in the end moves what it holds. A task
    that comes late, in between, stages rows that the replay has in other partitions."""

    def setup(self, env: Environment) -> None:
        super().setup(env)
        with self._connect(env) as db:
            db.execute(
                "CREATE TABLE stage "
                "(batch INTEGER, part INTEGER, id TEXT, key TEXT, seq INTEGER, value INTEGER)"
            )
        db.close()

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        path = env.workdir / "sink.db"

        def apply(batch: DataFrame, batch_id: int) -> None:
            with closing(sqlite3.connect(path)) as db, db:
                db.execute("DELETE FROM stage WHERE batch = ?", (batch_id,))
            batch.foreachPartition(lambda part: _stage(path, batch_id, part))
            with closing(sqlite3.connect(path)) as db, db:
                new = db.execute("INSERT OR IGNORE INTO applied VALUES (?)", (batch_id,)).rowcount
                if new:
                    db.execute(
                        "INSERT INTO rows SELECT id, key, seq, value FROM stage WHERE batch = ?",
                        (batch_id,),
                    )

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()


def _stage(path: Path, batch_id: int, rows: Iterable[Any]) -> None:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    place = (batch_id, context.partitionId())
    found = [(*place, r.id, r.key, r.seq, r.value) for r in rows]
    with closing(sqlite3.connect(path, timeout=60)) as db, db:
        db.execute("DELETE FROM stage WHERE batch = ? AND part = ?", place)
        db.executemany("INSERT INTO stage VALUES (?, ?, ?, ?, ?, ?)", found)


def _lines(rows: Iterable[Any]) -> str:
    return "".join(f"{json.dumps(row.asDict(), default=str)}\n" for row in rows)


def _replaced(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(text)
    temporary.rename(path)


def _merged(folder: Path) -> int:
    """The last batch that is in a merged file."""
    found = (int(file.stem.partition("-")[2]) for file in folder.glob("merged-*.jsonl"))
    return max(found, default=-1)
