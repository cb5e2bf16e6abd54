"""Bugs of table formats and their logs, each brought back at its step in a table of JSON files with
a manifest: what Spark's sink of that format did when it wrote, named, or committed."""

from __future__ import annotations

import contextlib
import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bettong.harness import Bag, Files, Job
from bettong.scenarios.jobs.outputs import started

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class Table(Job):
    """Data files, and a manifest entry for each commit; a reader sees the files of all entries."""

    inputs = {"orders": Files("json", "id STRING, amount INT")}  # noqa: RUF012
    oracle, compare = "batch", Bag("id", "amount")

    def transform(self, env: Any) -> DataFrame:
        rows: DataFrame = env.input("orders")
        return rows

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        self.opened(env.workdir)

        def each(batch: DataFrame, batch_id: int) -> None:
            lines = "".join(f"{line}\n" for line in batch.toJSON().collect())
            name = self.file_of(batch_id)
            self.stage(env.workdir / name, lines)
            self.commit(env.workdir, batch_id, name)

        return started(df, env, each)

    def opened(self, folder: Path) -> None:
        """The query starts."""

    def file_of(self, batch_id: int) -> str:
        """The name of a batch's data file."""
        return f"{batch_id}.json"

    def stage(self, path: Path, lines: str) -> None:
        """Write a data file; one that is there already is replaced."""
        aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}.new")
        aside.write_text(lines)
        aside.rename(path)

    def commit(self, folder: Path, batch_id: int, name: str) -> None:
        """Make a data file visible."""
        self.stage(folder / f"{batch_id:08d}.manifest", name)

    def read(self, env: Any) -> list[dict[str, Any]]:
        files = [entry.read_text() for entry in sorted(env.workdir.glob("*.manifest"))]
        lines = [line for name in files for line in (env.workdir / name).read_text().splitlines()]
        return [json.loads(line) for line in lines]


class CommittedAgain(Table):
    """Each commit has an identifier of its own, and not the batch's: a replayed one is another."""

    def file_of(self, batch_id: int) -> str:
        return f"{uuid.uuid4().hex}.json"

    def commit(self, folder: Path, batch_id: int, name: str) -> None:
        number = len(list(folder.glob("*.manifest")))
        self.stage(folder / f"{number:08d}.manifest", name)


class NamesUsedAgain(Table):
    """Data files have the query's id and a number that counts from the query's start: after a
    restart they are written over those of earlier batches, which the manifest keeps."""

    _written = 0

    def opened(self, folder: Path) -> None:
        self._written = 0

    def file_of(self, batch_id: int) -> str:
        self._written += 1
        return f"query-{self._written:05d}.json"


class UnguardedLog(Table):
    """One log of all commits, which each run keeps in memory and writes as a whole without a look
    at what is there: a driver that was thought dead takes away what its successor has committed."""

    def opened(self, folder: Path) -> None:
        log = folder / "log"
        self._committed = json.loads(log.read_text()) if log.exists() else {}

    def commit(self, folder: Path, batch_id: int, name: str) -> None:
        self._committed[str(batch_id)] = name
        self.stage(folder / "log", json.dumps(self._committed))

    def read(self, env: Any) -> list[dict[str, Any]]:
        log = env.workdir / "log"
        files = json.loads(log.read_text()).values() if log.exists() else ()
        lines = [line for name in files for line in (env.workdir / name).read_text().splitlines()]
        return [json.loads(line) for line in lines]


class RenameUnchecked(Table):
    """A rename that fails says so by its result, at which nobody looks: the file is not there, and
    is committed all the same."""

    def stage(self, path: Path, lines: str) -> None:
        aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}.new")
        aside.write_text(lines)
        with contextlib.suppress(OSError):
            aside.rename(path)


class PartitionOfThePlan(Job):
    """Totals by user, kept in a file for each partition of the plan: when the plan deals users out
    to other partitions after a restart, they begin anew there."""

    inputs = {  # noqa: RUF012
        "clicks": Files("json", "user STRING, id STRING, note STRING", per_step=12)
    }
    oracle, compare = "batch", Bag("user", "n")

    def transform(self, env: Any) -> DataFrame:
        clicks: DataFrame = env.input("clicks").select("user")
        return (
            clicks.groupBy("user").count().withColumnRenamed("count", "n") if env.static else clicks
        )

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        folder = env.workdir

        def each(batch: DataFrame, batch_id: int) -> None:
            dealt = batch.rdd.glom().collect()
            for partition, rows in enumerate(dealt):
                _add(folder / f"{partition}.json", batch_id, [row.user for row in rows])

        return started(df, env, each)

    def read(self, env: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for path in sorted(env.workdir.glob("*.json")):
            totals = json.loads(path.read_text())["totals"]
            rows += [{"user": user, "n": n} for user, n in totals.items()]
        return rows


def _add(path: Path, batch_id: int, users: list[str]) -> None:
    """Add to the totals of a partition, once for each batch."""
    state: Any = {"batch": -1, "totals": {}}
    if path.exists():
        state = json.loads(path.read_text())
    if state["batch"] >= batch_id:
        return
    for user in users:
        state["totals"][user] = state["totals"].get(user, 0) + 1
    state["batch"] = batch_id
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(state))
    aside.rename(path)
