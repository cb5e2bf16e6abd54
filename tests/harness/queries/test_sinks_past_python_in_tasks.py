"""Sinks whose tasks change files past Python, natively or by processes that they start: what these
do is hit where it is one change, and is no pass where it is more."""

from __future__ import annotations

from pathlib import Path

import pytest
from users_sinks import written_to

from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments

pytestmark = [pytest.mark.spark, pytest.mark.slow]

THEIRS = """
import subprocess
import pyarrow
from pyarrow import parquet
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

class Moves(Mine):
    # A process moves what a task has written aside to where it is read.
    def write(self, rows, env):
        def each(batch, batch_id):
            def task(rows):
                text = "".join(json.dumps({"id": row.id}) + "\\n" for row in rows)
                self.put(env.workdir, batch_id, text)
            batch.coalesce(1).foreachPartition(task)
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()

    def put(self, folder, name, text):
        (folder / "aside").write_text(text)
        subprocess.run(["mv", folder / "aside", folder / f"rows-{name}"], check=True)

    def read(self, env):
        return [json.loads(line) for file in env.workdir.glob("rows-*") for line in file.open()]

class Marks(Moves):
    # Takes rows for written that another process has marked as such before.
    def put(self, folder, name, text):
        if not (folder / f"done-{name}").exists():
            (folder / "aside").write_text(text)
            subprocess.run(["mkdir", folder / f"done-{name}"], check=True)
            subprocess.run(["mv", folder / "aside", folder / f"rows-{name}"], check=True)

class MarksBeforeArrow(Moves):
    def put(self, folder, name, text):
        if not (folder / f"done-{name}").exists():
            (folder / f"done-{name}").mkdir()
            rows = [json.loads(line) for line in text.splitlines()]
            parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"rows-{name}")

    def read(self, env):
        files = env.workdir.glob("rows-*")
        return [row for file in files for row in parquet.read_table(file).to_pylist()]

class MarksInUdf(MarksBeforeArrow):
    def write(self, rows, env):
        def each(batch, batch_id):
            def task(frames):
                for frame in frames:
                    text = frame[["id"]].to_json(orient="records", lines=True)
                    self.put(env.workdir, batch_id, text)
                    yield frame[["id"]]
            batch.coalesce(1).mapInPandas(task, "id STRING").count()
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()

def scripted(folder, name, text):
    # The same in one process.
    done, rows = folder / f"done-{name}", folder / f"rows-{name}"
    script = f"test -e {done} || {{ mkdir {done}; cat > {rows}; }}"
    subprocess.run(["sh", "-c", script], input=text.encode(), check=True)

class Scripted(Moves):
    put = staticmethod(scripted)

class Commits(Moves):
    # The same in the commit of a data source.
    def write(self, rows, env):
        folder = env.workdir

        class Rows(WriterCommitMessage):
            pass

        class Writer(DataSourceStreamWriter):
            def write(self, rows):
                message = Rows()
                message.text = "".join(json.dumps({"id": row.id}) + "\\n" for row in rows)
                return message

            def commit(self, messages, batch_id):
                scripted(folder, batch_id, "".join(message.text for message in messages))

        class Source(DataSource):
            @classmethod
            def name(cls):
                return "scripted"

            def streamWriter(self, schema, overwrite):
                return Writer()

        env.spark.dataSource.register(Source)
        return rows.writeStream.format("scripted").option(
            "checkpointLocation", env.checkpoint).start()
"""
CHANGED = "crash(driver, before batch=1/p=0/a=0/sink.file={}.change)"
CRASH = "crash(driver, before batch=1/commits)"


@pytest.fixture
def theirs(tmp_path: Path) -> str:
    return written_to(tmp_path, THEIRS)


@pytest.mark.parametrize(
    ("name", "change", "verdict", "kinds"),
    [
        ("Moves", 2, "valid", set()),
        ("Marks", 2, "invalid", {"Loss"}),
        ("MarksBeforeArrow", 1, "invalid", {"Loss"}),
        ("MarksInUdf", 1, "invalid", {"Loss"}),
    ],
)
def test_a_driver_dies_right_after_what_a_task_changes_past_python(
    environments: SparkEnvironments,
    theirs: str,
    name: str,
    change: int,
    verdict: str,
    kinds: set[str],
) -> None:
    fault = CHANGED.format(change)
    result = check_one(Request(f"{theirs}:{name}", only=(fault,)), environments)
    assert (result.verdict, {a.kind for a in result.anomalies}) == (verdict, kinds), result.reason


@pytest.mark.parametrize("name", ["Scripted", "Commits"])
def test_a_process_that_works_in_several_steps_is_told_and_nothing_passes(
    environments: SparkEnvironments, theirs: str, name: str
) -> None:
    result = check_one(Request(f"{theirs}:{name}", only=(CRASH,)), environments)
    assert result.verdict == "unknown"
    assert "its code does several things at once" in result.reason
    who = "the process 'sh' changed files in more than one step"
    assert result.details["concurrent"] == [who]
