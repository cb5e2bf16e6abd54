"""What a job is fed: rows, steps, files in place by one rename, and when all of it was consumed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from bettong.harness.queries.faults.operations import (
    PARTITIONS,
    REPEATED,
    REPLAYED_PARTITIONS,
    OperationalEvent,
)
from bettong.harness.queries.job.check import session_settings
from bettong.harness.queries.job.feed import (
    Feed,
    FileSender,
    LineSender,
    closed_at_the_end,
    in_more_steps,
    merged,
    repeated,
    write_rows,
)
from bettong.harness.queries.job.inputs import Files, Rows, Topic
from bettong.harness.queries.job.loading import load_job
from bettong.harness.queries.job.made_rows import columns_of, make_rows
from bettong.harness.queries.job.script import Lines, ScriptJob, load_script
from bettong.harness.queries.job.script_host import ScriptHost
from bettong.harness.queries.job.workload import FEW_STEPS, FEWER_STEPS, MORE_STEPS
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.run.workload import SinkWorkload
from bettong.harness.queries.script import Script
from bettong.harness.queries.sink.rows import Input
from bettong.lineage.errors import UsageError


def test_rows_are_made_for_a_schema_the_same_ones_every_time() -> None:
    schema = "id STRING, user STRING, amount INT, at TIMESTAMP, good BOOLEAN, price DECIMAL(8, 2)"
    made = list(make_rows(schema, 10))
    assert made == list(make_rows(schema, 10))
    assert len({row["id"] for row in made}) == 10
    assert len({row["user"] for row in made}) == 4
    assert made[1]["at"] == "2024-01-01T00:00:10.000000Z"


def test_a_schema_is_read_by_columns() -> None:
    assert columns_of("a STRING, b ARRAY<STRUCT<x: INT, y: INT>>, `c` INT NOT NULL") == {
        "a": "string",
        "b": "array<struct<x: int, y: int>>",
        "c": "int",
    }


def test_columns_may_be_called_as_spark_lets_them_be() -> None:
    from pyspark.sql.types import StringType, StructField, StructType

    schema = "`user id` STRING COMMENT 'who, (if known)', `a,``b<` INT NOT NULL, c:DOUBLE"
    assert columns_of(schema) == {"user id": "string", "a,`b<": "int", "c": "double"}
    named = StructType([StructField(name, StringType()) for name in ("user-id", "a`b")])
    rows = [{"user-id": "x", "a`b": "y"}]
    assert Files("json", named, per_step=1, steps=1).steps[0][0].keys() == rows[0].keys()
    assert Files("json", rows, schema=named).steps == [rows]


def test_every_closing_row_comes_when_all_inputs_have_been_fed() -> None:
    long = Rows("id STRING, at TIMESTAMP", per_step=1, steps=3)
    short = Rows("id STRING, at TIMESTAMP", per_step=1, steps=1, closing="2030-01-01")
    inputs = {"long": long, "short": short}
    steps = closed_at_the_end({name: given.steps for name, given in inputs.items()}, inputs)
    assert [len(step) for step in steps["long"]] == [1, 1, 1]
    assert [len(step) for step in steps["short"]] == [1, 0, 0, 1]
    sender = Mock()
    feed = Feed(steps, {"long": sender, "short": sender}, None)
    for number in range(feed.total):
        feed._put(number)
    assert [call.args[0] for call in sender.send.call_args_list] == [0, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Files("json", "id"), "no column"),
        (lambda: Files("json", "id BINARY"), "no rows can be made"),
        (lambda: Files("json", [{"id": "a"}]), "without schema="),
        (lambda: Files("json", [{"di": "a"}], schema="id STRING"), "column"),
        (lambda: Files("json", [], schema="id STRING"), "proves nothing"),
        (lambda: Files("xml", "id STRING"), "format of files"),
        (lambda: Files("json", "id STRING", per_step=0), "at least one"),
        (lambda: Files("json", "id STRING", closing="2030-01-01"), "TIMESTAMP"),
        (lambda: Files("json", "at TIMESTAMP", closing="tomorrow"), "is no time"),
        (lambda: Rows("id STRING", per_stap=2), "per_step"),
        (lambda: Topic("t", "id STRING", partitions=0), "partition"),
    ],
)
def test_wrong_input_is_one_clear_error(make: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        _ = make().steps


def test_schemas_and_rows_come_in_any_form() -> None:
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    schema = StructType([StructField("id", StringType()), StructField("n", IntegerType())])
    assert Rows(schema).schema == "id string, n int"
    assert Rows(lambda: [{"id": "a", "n": 1}], schema=schema).rows == [{"id": "a", "n": 1}]


@pytest.mark.servers
def test_sparks_connector_comes_along_where_topics_are_read() -> None:
    from bettong.scenarios.jobs.kafka import Copied
    from bettong.scenarios.jobs.stateless import Cleaned

    assert "spark-sql-kafka" in session_settings(Copied())["spark.jars"]
    own = Copied()
    own.spark_config = {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"}
    assert "spark.jars" not in session_settings(own)
    assert "spark.jars" not in session_settings(Cleaned())


@pytest.mark.parametrize("event", [REPEATED, PARTITIONS, REPLAYED_PARTITIONS])
def test_what_is_done_to_steps_is_for_jobs(event: OperationalEvent, tmp_path: Path) -> None:
    assert OperationalEvent.parse(event.id) == event
    workload = SinkWorkload(Target("sink"), Input())
    with pytest.raises(UsageError, match="is for jobs"):
        workload.begin("run1", tmp_path, event)


def test_the_closing_row_is_a_step_of_its_own_also_when_steps_are_merged() -> None:
    given = Rows("id STRING, at TIMESTAMP", per_step=2, steps=3, closing="2030-01-01")
    assert [len(step) for step in given.steps] == [2, 2, 2, 1]
    assert given.steps[-1][0]["at"] == "2030-01-01"
    assert [len(step) for step in merged(given, 2)] == [4, 2, 1]
    assert len(given.rows) == 6


@pytest.mark.parametrize(
    ("at_least", "sizes"), [(4, [1, 2, 1, 2, 1]), (3, [2, 2, 2, 1]), (7, [2, 2, 2, 1])]
)
def test_the_same_rows_come_in_more_steps_where_there_are_enough(
    at_least: int, sizes: list[int]
) -> None:
    given = Rows("id STRING, at TIMESTAMP", per_step=2, steps=3, closing="2030-01-01")
    steps = in_more_steps(given, at_least)
    assert [len(step) for step in steps] == sizes
    assert [row for step in steps for row in step] == [row for step in given.steps for row in step]


def test_of_fewer_than_ten_steps_some_come_apart_wherever_twelve_do() -> None:
    given = Rows("id STRING", per_step=4, steps=5, closing={"id": "z"})

    def places(joined: Sequence[tuple[int, int]]) -> set[int]:
        sizes = [len(step) for step in in_more_steps(given, MORE_STEPS.at_least, joined)]
        return set(accumulate(sizes[:-1]))

    fewer = [places(variant.joined) for variant in FEWER_STEPS]
    assert [len(each) for each in fewer] == [9, 9]
    assert set.union(*fewer) == places(())


def test_each_of_twelve_steps_is_one_of_four_in_some_run() -> None:
    given = Rows("id STRING", per_step=4, steps=3)
    in_four = [in_more_steps(given, 12, variant.joined) for variant in FEW_STEPS]
    assert {len(steps) for steps in in_four} == {4}
    alone = {row["id"] for steps in in_four for step in steps if len(step) == 1 for row in step}
    assert alone == {row["id"] for row in given.rows}
    assert all([row for step in steps for row in step] == given.rows for steps in in_four)


def test_of_an_input_with_few_rows_the_same_steps_are_joined() -> None:
    """So that what comes with them of another input does still."""
    given = Rows("id STRING", per_step=1, steps=5, closing={"id": "z"})
    sizes = [len(step) for step in in_more_steps(given, 12, [(0, 4)])]
    assert sizes == [4, 1, 1]
    assert [len(step) for step in in_more_steps(given, 12, [(8, 12)])] == [1] * 6


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_rows_are_written_as_spark_reads_them(tmp_path: Path, format: str) -> None:
    import pyarrow.parquet as pq

    rows = [{"id": "a", "n": 1}, {"id": "b", "n": 2}]
    path = tmp_path / f"x.{format}"
    write_rows(path, format, "id STRING, n INT", rows)
    if format == "json":
        assert [json.loads(line) for line in path.read_text().splitlines()] == rows
    elif format == "csv":
        assert path.read_text().splitlines() == ["id,n", "a,1", "b,2"]
    else:
        assert pq.read_table(path).to_pylist() == rows


class _Checkpoint:
    """A checkpoint as Spark's file source writes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("offsets", "commits", "sources/0"):
            (folder / name).mkdir(parents=True)

    def batch(self, number: int, *files: str, recorded: bool = True) -> None:
        log = "v1\n" + "".join(json.dumps({"path": f"file:///{f}"}) + "\n" for f in files)
        (self.folder / "sources" / "0" / str(number)).write_text(log)
        offsets = f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{number}}}'
        (self.folder / "offsets" / str(number)).write_text(offsets)
        if recorded:
            (self.folder / "commits" / str(number)).write_text("v1\n{}")


def test_the_next_step_follows_the_record_of_the_batch_that_consumed_the_last_one(
    tmp_path: Path,
) -> None:
    checkpoint = _Checkpoint(tmp_path / "checkpoint")
    sender = FileSender(tmp_path / "in", "json", "id STRING")
    feed = Feed({"in": [[{"id": "a"}], [{"id": "b"}]]}, {"in": sender}, checkpoint.folder)
    feed.advance()
    assert [p.name for p in (tmp_path / "in").iterdir()] == ["step-0000.json"]
    feed.advance()
    assert feed.fed == 1
    checkpoint.batch(0, "x/in/step-0000.json", recorded=False)
    feed.advance()
    assert feed.fed == 1, "planned is not recorded"
    checkpoint.batch(0, "x/in/step-0000.json")
    feed.advance()
    assert feed.fed == 2
    feed.advance()
    assert not feed.done
    checkpoint.batch(1, "x/in/step-0001.json")
    assert feed.done


def test_a_batch_that_read_another_folder_has_consumed_nothing(tmp_path: Path) -> None:
    checkpoint = _Checkpoint(tmp_path / "checkpoint")
    sender = FileSender(tmp_path / "in", "json", "id STRING")
    feed = Feed({"in": [[{"id": "a"}]]}, {"in": sender}, checkpoint.folder)
    feed.advance()
    checkpoint.batch(0, "x/other/step-0000.json")
    assert not feed.done


def test_a_feed_with_a_limit_is_satisfied_and_not_done(tmp_path: Path) -> None:
    checkpoint = _Checkpoint(tmp_path / "checkpoint")
    sender = FileSender(tmp_path / "in", "json", "id STRING")
    feed = Feed({"in": [[{"id": "a"}], [{"id": "b"}]]}, {"in": sender}, checkpoint.folder)
    feed.limit = 1
    feed.advance()
    checkpoint.batch(0, "x/in/step-0000.json")
    feed.advance()
    assert (feed.fed, feed.satisfied, feed.done) == (1, True, False)


def test_the_rows_of_a_step_are_sent_once_more_with_the_next_one() -> None:
    steps = [["a"], ["b"], ["c"], ["d"]]
    assert repeated(steps, 1) == [["a"], ["b"], ["c", "b"], ["d"]]
    assert repeated(steps[:2], 1) == [["a"], ["b"]]


def test_lines_of_a_csv_file_have_their_header_in_each_file(tmp_path: Path) -> None:
    sender = LineSender(tmp_path / "in", ".csv", ["id,n"])
    sender.send(0, ["a,1"])
    assert (tmp_path / "in" / "step-0000.csv").read_text() == "id,n\na,1\n"


READER = "def reader(env):\n    return []\n"


def script(folder: Path, **more: Any) -> Script:
    (folder / "main.py").write_text("")
    (folder / "reader.py").write_text(READER)
    (folder / "rows.jsonl").write_text("".join(f'{{"id": {n}}}\n' for n in range(10)))
    given = {
        "inputs": (f"{folder}/rows.jsonl@dir:in",),
        "reader": f"{folder}/reader.py:reader",
        **more,
    }
    return Script(str(folder / "main.py"), **given)


def loaded(script: Script, **more: Any) -> ScriptJob:
    return load_script(Request(script.target, contract="job", script=script, **more))


def test_the_lines_of_a_scripts_input_are_dealt_to_steps(tmp_path: Path) -> None:
    (given,) = loaded(script(tmp_path)).inputs.values()
    assert [len(step) for step in given.steps] == [3, 3, 3, 1]  # type: ignore[union-attr]


def test_a_line_ends_where_spark_ends_it(tmp_path: Path) -> None:
    """Not at each character that Unicode calls a separator: texts of JSON may have these."""
    lines = ['{"id": "a\u2028b"}', '{"id": "c\x85d"}', '{"id": "e"}']
    (tmp_path / "rows.jsonl").write_bytes("\r\n".join(lines).encode())
    given = Lines(tmp_path / "rows.jsonl", 3, folder="in")
    assert given.steps == [[line] for line in lines]


def test_variables_of_a_script_name_the_runs_folder_and_proxies(tmp_path: Path) -> None:
    variables = {"OUT": "{work}/out", "AT": "x=proxy:kafka"}
    given = script(tmp_path, variables=variables)
    reported = given.environment(Path("/run/work"), {"kafka": ("127.0.0.1", 9)})
    assert reported == {"OUT": "/run/work/out", "AT": "x=127.0.0.1:9"}
    assert given.endpoints == ("kafka",)
    assert list(loaded(given).servers) == ["kafka"]
    assert list(loaded(given, endpoints={"kafka": "127.0.0.1:1"}).servers) == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"inputs": ()}, "needs --input"),
        ({"inputs": ("rows.jsonl",)}, "write FILE@topic:NAME"),
        ({"inputs": ("none.jsonl@dir:in",)}, "there is no file"),
        ({"reader": "reader"}, "--read"),
        ({"variables": {"X": "proxy:nobody"}}, "nobody"),
    ],
)
def test_a_script_that_cannot_be_used_is_one_clear_error(
    tmp_path: Path, more: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        loaded(script(tmp_path, **more))


def test_a_script_that_has_ended_can_be_started_again() -> None:
    """What a run asks of a host that it starts again, warm or a script's own."""
    host = ScriptHost(Script("main.py"), Mock(), lambda: True)
    host.reset()
    host.close()


def test_a_scripts_folder_is_below_the_runs_own(tmp_path: Path) -> None:
    given = script(tmp_path)
    with pytest.raises(UsageError, match="below"):
        loaded(script(tmp_path, inputs=(f"{tmp_path}/rows.jsonl@dir:/data/in",)))
    assert loaded(given)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("    inputs = {}", "has no inputs"),
        ("    inputs = {'a': 1}", "write Files"),
        ("    inputs = [Rows('id STRING')]", "has no inputs"),
        (
            "    inputs = {'a': Rows('id STRING')}\n    servers = {'db': 'postgres'}",
            "the server db",
        ),
        ("    inputs = {'a': Rows('id STRING')}\n    oracle = 'bach'", "oracle is 'bach'"),
        ("    inputs = {'a': Rows('id STRING')}\n    compare = OuterBag('b')", "OuterBag"),
        ("    inputs = {'a': Topic('t', 'id STRING')}", "server of a"),
    ],
)
def test_a_job_that_cannot_be_used_is_one_clear_error(tmp_path: Path, body: str, says: str) -> None:
    path = tmp_path / f"job_{abs(hash(body))}.py"
    path.write_text(
        "from bettong.harness import Job, OuterBag, Rows, Topic\n\nclass Mine(Job):\n"
        f"{body}\n"
        "    def transform(self, env): ...\n"
        "    def write(self, df, env): ...\n"
        "    def read(self, env): ...\n"
    )
    with pytest.raises(UsageError, match=says):
        load_job(f"{path}:Mine")


def test_every_job_that_ships_can_be_loaded_and_each_right_one_has_a_broken_one() -> None:
    from bettong.scenarios.jobs import SHIPPED

    for job in SHIPPED:
        assert load_job(job.name).inputs
    right = [job for job in SHIPPED if job.level == "effectively-once"]
    assert len(right) >= 12
    assert len(SHIPPED) - len(right) >= 12
