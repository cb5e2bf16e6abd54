"""Sinks of which each is broken under one kind of fault, and the right ones beside them."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bettong.harness.queries.sink.contract import Environment
from bettong.scenarios.sinks.files import JsonBatchFiles, SqliteOneTransaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class _TaskFiles(JsonBatchFiles):
    """Each task writes a file of its own, named by batch and partition, row by row."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        folder, open_part = env.workdir / "out", self.open_part

        def apply(batch: DataFrame, batch_id: int) -> None:
            folder.mkdir(exist_ok=True)
            named = self.named(batch)

            def write(part: Iterable[Any]) -> None:
                from pyspark import TaskContext

                context = TaskContext.get()
                assert context is not None
                with open_part(folder / f"{batch_id}-{context.partitionId()}{named}.jsonl") as out:
                    for row in part:
                        print(json.dumps(row.asDict(), default=str), file=out, flush=True)

            self.dealt(batch).foreachPartition(write)

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def dealt(self, batch: DataFrame) -> DataFrame:
        return batch.coalesce(1)  # however the rows come

    def named(self, batch: DataFrame) -> str:
        return ""

    @staticmethod
    def open_part(path: Path) -> Any:
        raise NotImplementedError


class ClearsFirst(_TaskFiles):
    """An attempt throws away what one before it left, then appends: right as long as no two
    attempts are there at once."""

    @staticmethod
    def open_part(path: Path) -> Any:
        path.unlink(missing_ok=True)
        return _Appending(path)


class _Appending:
    """Opens the file anew for each line, as a client that sends row by row would."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> _Appending:
        return self

    def __exit__(self, *error: object) -> None: ...

    def write(self, text: str) -> None:
        with self._path.open("a") as out:
            out.write(text)

    def flush(self) -> None: ...


class RenamesAtEnd(_TaskFiles):
    """An attempt writes aside, under a name of its own, and renames at its end."""

    @staticmethod
    @contextlib.contextmanager
    def open_part(path: Path) -> Any:
        aside = path.with_name(f".{path.name}-{os.urandom(4).hex()}")
        with aside.open("w") as out:
            yield out
        aside.rename(path)


class PartPerCore(RenamesAtEnd):
    """As many files as Spark has cores, each replaced by a replay if there are as many again."""

    def dealt(self, batch: DataFrame) -> DataFrame:
        return batch.repartition(batch.sparkSession.sparkContext.defaultParallelism, "id")

    def named(self, batch: DataFrame) -> str:
        return f"-of-{batch.sparkSession.sparkContext.defaultParallelism}"


class CompactsThirds(JsonBatchFiles):
    """A file for each batch, and each third batch writes all rows so far into one more, unless it
    is there: one that was begun is taken for the whole."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        folder = env.workdir / "out"

        def apply(batch: DataFrame, batch_id: int) -> None:
            folder.mkdir(exist_ok=True)
            found = batch.collect()
            _put(folder / f"part-{batch_id}.jsonl", found)
            compact = folder / f"compact-{batch_id}.jsonl"
            if batch_id % 3 == 2 and not compact.exists():
                parts = sorted(folder.glob("part-*"))
                compact.write_text("".join(part.read_text() for part in parts))

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> list[Any]:
        folder = env.workdir / "out"
        compacts = {int(file.stem[8:]): file for file in folder.glob("compact-*")}
        last = max(compacts, default=-1)
        parts = [part for part in folder.glob("part-*") if int(part.stem[5:]) > last]
        files = [*parts, compacts[last]] if compacts else parts
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


class AsksThenReads(JsonBatchFiles):
    """Rows are put aside, and published where nobody has done that: what was put aside may be gone
    by then, and nothing is published."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        folder = env.workdir / "out"

        def apply(batch: DataFrame, batch_id: int) -> None:
            if not folder.exists():
                folder.mkdir()
            aside, shown = (folder / f"{batch_id}.{end}" for end in ("aside", "jsonl"))
            aside.write_text("".join(f"{line}\n" for line in batch.toJSON().collect()))
            if not shown.exists():
                found = [name for name in os.listdir(folder) if name == aside.name]  # noqa: PTH208
                text = "".join((folder / name).read_text() for name in found)
                unfinished = folder / f"{batch_id}.unfinished"
                unfinished.write_text(text)
                unfinished.rename(shown)
            aside.unlink(missing_ok=True)

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()


class AppendsLines(JsonBatchFiles):
    """A line for each batch, the first of which counts: what is torn has no end, so that the line
    of the replay is a part of it."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def apply(batch: DataFrame, batch_id: int) -> None:
            found = [json.loads(line) for line in batch.toJSON().collect()]
            line = json.dumps({"batch": batch_id, "rows": found})
            with (env.workdir / "log").open("a+") as log:
                self.end(log)
                log.write(f"{line}\n")

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def end(self, log: TextIO) -> None:
        """Make ready what is there for a line to be appended."""

    def read(self, env: Environment) -> list[Any]:
        lines: dict[int, list[Any]] = {}
        for line in (env.workdir / "log").read_text().splitlines():
            with contextlib.suppress(ValueError):
                batch = json.loads(line)
                lines.setdefault(batch["batch"], batch["rows"])
        return [row for rows in lines.values() for row in rows]


class CutsOff(AppendsLines):
    """The same, and right: what has no end is cut off first."""

    def end(self, log: TextIO) -> None:
        log.seek(0)
        log.truncate(log.read().rfind("\n") + 1)


class AsksTwice(SqliteOneTransaction):
    """Asks whether the batch is there, then for a version that is set with the rows if it is still
    the same: of what another driver has done in between it knows nothing."""

    def setup(self, env: Environment) -> None:
        with self._connect(env) as db:
            db.execute("CREATE TABLE rows (id TEXT, key TEXT, seq INTEGER, value INTEGER)")
            db.execute("CREATE TABLE versions (version INTEGER)")
            db.execute("INSERT INTO versions VALUES (0)")
        db.close()

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        known = db.execute("SELECT 1 FROM rows WHERE id = ?", (rows[0][0],)).fetchall()
        (version,) = db.execute("SELECT version FROM versions").fetchone()
        if known:
            return
        with db:
            set_to = "UPDATE versions SET version = ? WHERE version = ?"
            if db.execute(set_to, (version + 1, version)).rowcount:
                db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)


class AsksThenInserts(SqliteOneTransaction):
    """Asks whether the batch is there, and writes it in one statement, its own transaction: right
    as long as there is one driver."""

    def setup(self, env: Environment) -> None:
        with self._connect(env) as db:
            db.execute("CREATE TABLE rows (id TEXT, key TEXT, seq INTEGER, value INTEGER)")
        db.close()

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        known = db.execute("SELECT 1 FROM rows WHERE id = ?", (rows[0][0],)).fetchall()
        db.isolation_level = None
        if not known:
            places = ", ".join(["(?, ?, ?, ?)"] * len(rows))
            db.execute(f"INSERT INTO rows VALUES {places}", [x for row in rows for x in row])


class AsksThenConnects(JsonBatchFiles):
    """Asks DuckDB whether the batch is there, and connects once more to write it: right as long as
    there is one driver."""

    def setup(self, env: Environment) -> None:
        with self._connect(env) as db:
            db.execute("CREATE TABLE rows (batch BIGINT, id TEXT)")

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def apply(batch: DataFrame, batch_id: int) -> None:
            found = [(batch_id, row.id) for row in batch.collect()]
            with self._connect(env) as db:
                known = db.execute("SELECT 1 FROM rows WHERE batch = ?", [batch_id]).fetchall()
            if not known:
                with self._connect(env) as db:
                    db.begin()
                    db.executemany("INSERT INTO rows VALUES (?, ?)", found)
                    db.commit()

        writer = rows.writeStream.foreachBatch(apply)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> list[Any]:
        with self._connect(env) as db:
            return [{"id": id} for (id,) in db.execute("SELECT id FROM rows").fetchall()]

    @staticmethod
    def _connect(env: Environment) -> Any:
        import duckdb

        return duckdb.connect(env.workdir / "sink.duckdb")


def _put(path: Path, rows: Iterable[Any]) -> None:
    aside = path.with_name(f".{path.name}")
    aside.write_text("".join(json.dumps(row.asDict(), default=str) + "\n" for row in rows))
    aside.rename(path)


class NeedsRows(JsonBatchFiles):
    """Names a batch's file by its first row."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        folder = env.workdir / "out"

        def replace(batch: DataFrame, batch_id: int) -> None:
            folder.mkdir(exist_ok=True)
            found = sorted(batch.collect())
            path = folder / f"{found[0].id.replace('/', '-')}.jsonl"
            text = "".join(json.dumps(row.asDict(), default=str) + "\n" for row in found)
            path.with_suffix(".new").write_text(text)
            path.with_suffix(".new").rename(path)

        writer = rows.writeStream.foreachBatch(replace)
        return writer.option("checkpointLocation", env.checkpoint).start()


class SkipsTheFirst(SqliteOneTransaction):
    """Takes the first batch after a restart for a replay of what it has."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        self._restarted = len(list(self.read(env))) > 0
        return super().write(rows, env)

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if not self._restarted:
            super().apply(db, batch_id, rows)
        self._restarted = False


class EndsTooEarly(SqliteOneTransaction):
    """After a restart with a batch that it has, it takes all that follows for had as well."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        self._had = False
        return super().write(rows, env)

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        known = db.execute("SELECT 1 FROM applied WHERE batch = ?", (batch_id,)).fetchall()
        self._had = self._had or bool(known)
        if not self._had:
            super().apply(db, batch_id, rows)


class SwallowsOddRows(JsonBatchFiles):
    """Keys have at most 100 characters; a batch with a longer one is logged and forgotten."""

    forgets = True

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        folder, forgets = env.workdir / "out", self.forgets

        def replace(batch: DataFrame, batch_id: int) -> None:
            folder.mkdir(exist_ok=True)
            found = batch.collect()
            if any(len(row.key) > 100 for row in found):
                print(f"batch {batch_id} has a key that is too long")
                if forgets:
                    return
                raise ValueError("a key is too long")
            text = "".join(json.dumps(row.asDict(), default=str) + "\n" for row in found)
            (folder / f".{batch_id}").write_text(text)
            (folder / f".{batch_id}").rename(folder / f"{batch_id}.jsonl")

        writer = rows.writeStream.foreachBatch(replace)
        return writer.option("checkpointLocation", env.checkpoint).start()


class RefusesOddRows(SwallowsOddRows):
    """The same, but the error gets out."""

    forgets = False


class UpsertById(SqliteOneTransaction):
    """Writes by the row's id."""

    def setup(self, env: Environment) -> None:
        columns = "id TEXT PRIMARY KEY, key TEXT, seq INTEGER, value INTEGER"
        with self._connect(env) as db:
            db.execute(f"CREATE TABLE rows ({columns})")
        db.close()

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        with db:
            db.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)", rows)


class BatchesAsText(UpsertById):
    """Skips what is not after the last batch; of its id, which is text, 10 is not after 9."""

    def setup(self, env: Environment) -> None:
        super().setup(env)
        with self._connect(env) as db:
            db.execute("CREATE TABLE done (batch TEXT)")
        db.close()

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        (last,) = db.execute("SELECT max(batch) FROM done").fetchone()
        if last is None or str(batch_id) > last:
            super().apply(db, batch_id, rows)
            with db:
                db.execute("INSERT INTO done VALUES (?)", (str(batch_id),))


class OneKeyForAllPieces(SqliteOneTransaction):
    """At most 500 rows at a time, of which only the first are not known as the batch's."""

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        for begin in range(0, len(rows), 500):
            super().apply(db, batch_id, rows[begin : begin + 500])


class RefusesMany(UpsertById):
    """At most 500 rows at a time; more of them are an error."""

    def apply(self, db: sqlite3.Connection, batch_id: int, rows: list[tuple[Any, ...]]) -> None:
        if len(rows) > 500:
            raise ValueError("there are too many rows")
        super().apply(db, batch_id, rows)
