"""Sinks that keep what they keep in one place, the same in every run: never called wrong for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.harness.events import Event, Warned
from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.lineage.errors import UsageError

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

SINKS = """
import contextlib
import sqlite3
from pathlib import Path

from bettong.harness import Sink

PLACE = Path(__file__).parent / "place"


class Python(Sink):
    def db(self):
        PLACE.mkdir(exist_ok=True)
        return contextlib.closing(sqlite3.connect(PLACE / "rows.db", timeout=30))

    def setup(self, env):
        with self.db() as db:
            db.execute("DROP TABLE IF EXISTS rows")
            db.execute("CREATE TABLE rows (id TEXT PRIMARY KEY, value INT)")

    def write(self, rows, env):
        def each(batch, batch_id):
            found = [(row.id, row.value) for row in batch.collect()]
            with self.db() as db, db:
                db.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", found)
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()

    def read(self, env):
        with self.db() as db:
            found = db.execute("SELECT id, value FROM rows").fetchall()
        return [{"id": id, "value": value} for id, value in found]


class Jvm(Sink):
    place = str(PLACE / "files")

    def setup(self, env):
        path = env.spark._jvm.org.apache.hadoop.fs.Path(self.place)
        path.getFileSystem(env.spark._jsc.hadoopConfiguration()).delete(path, True)

    def write(self, rows, env):
        def each(batch, batch_id):
            to = f"{self.place}/batch={batch_id}"
            batch.coalesce(1).write.mode("overwrite").parquet(to)
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()

    def read(self, env):
        return env.spark.read.parquet(self.place).select("id", "value").collect()


class Appends(Jvm):
    def write(self, rows, env):
        def each(batch, batch_id):
            batch.coalesce(1).write.mode("append").parquet(self.place)
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()


class AppendsAndMarks(Jvm):
    def write(self, rows, env):
        def each(batch, batch_id):
            mark = env.workdir / str(batch_id)
            if not mark.exists():
                batch.coalesce(1).write.mode("append").parquet(self.place)
                mark.touch()
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()


class Leaves(Python):
    def setup(self, env):
        with self.db() as db:
            db.execute("CREATE TABLE IF NOT EXISTS rows (id TEXT PRIMARY KEY, value INT)")
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "fixed.py"
    path.write_text(SINKS)
    return path


@pytest.mark.parametrize("name", ["Python", "Jvm"])
def test_its_runs_are_made_one_at_a_time(
    name: str, module: Path, environments: SparkEnvironments
) -> None:
    seen: list[Event] = []
    result = check_one(Request(f"{module}:{name}", faults=1), environments, seen.append)
    assert (result.verdict, result.guarantee) == ("valid", "effectively-once"), result.reason
    told = [event.message for event in seen if isinstance(event, Warned)]
    assert len(told) == 1
    assert f"it writes outside its workdir, such as {module.parent}/place" in told[0]


def test_what_is_not_seen_is_not_taken_to_be_the_same(
    module: Path, environments: SparkEnvironments
) -> None:
    result = check_one(Request(f"{module}:Appends", faults=1, first=True), environments)
    assert (result.verdict, result.guarantee) == ("invalid", "at-least-once"), result.reason
    assert result.counterexamples[0].faults == ("crash(driver, before batch=1/commits)",)


def test_a_mark_that_is_seen_does_not_stand_for_rows_that_are_not(
    module: Path, environments: SparkEnvironments
) -> None:
    """Between the rows and the mark nothing changes in sight, and a driver dies there all the
    same, also where no other run beside it shows that they share a place."""
    asked = Request(f"{module}:AppendsAndMarks", faults=1, first=True, side_by_side=False)
    result = check_one(asked, environments)
    assert (result.verdict, result.guarantee) == ("invalid", "at-least-once"), result.reason
    assert any("is outside of env.workdir" in told for told in result.assumptions)


def test_rows_that_setup_leaves_are_an_error(module: Path, environments: SparkEnvironments) -> None:
    with pytest.raises(UsageError, match=r"setup\(\) leaves 80 row\(s\) of an earlier run"):
        check_one(Request(f"{module}:Leaves", faults=1), environments)
