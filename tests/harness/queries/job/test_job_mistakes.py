"""Mistakes in what users write of a job: each is one clear error, before anything runs or after
the first run."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from bettong.harness import Bag, Files, OuterBag, Rows, Table, Topic
from bettong.harness.queries.job.compare import expect_columns
from bettong.harness.queries.job.feed import FileSender, TopicSender, write_rows
from bettong.harness.queries.job.host import plain
from bettong.harness.queries.job.loading import load_job
from bettong.harness.queries.job.script import load_script
from bettong.harness.queries.request import Request
from bettong.harness.queries.script import Script
from bettong.harness.queries.sink.rows import read_back
from bettong.lineage.errors import UsageError

Row = dict[str, Any]
OUTPUT = [{"user": "a", "n": 1, "fired_at": 5}]


# --- how outputs are compared


@pytest.mark.parametrize(
    ("compare", "said"),
    [
        (Bag(free="fired_att"), "'fired_att' of free=; did you mean fired_at"),
        (Table("user", free=("fired_att",)), "did you mean fired_at"),
        (OuterBag("ads", free="fired_att"), "did you mean fired_at"),
        (Bag("user", "n", free=("n", "user")), "leaves no column"),
        (Bag(free=("user", "n", "fired_at")), "leaves no column"),
    ],
)
def test_what_is_free_is_a_column_and_leaves_one_to_be_judged(compare: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        expect_columns("Mine", compare, OUTPUT)


@pytest.mark.parametrize(
    "compare", [Bag(free="fired_at"), Bag(free="error"), Table("user", free=("n", "fired_at"))]
)
def test_what_is_free_may_be_null_without_a_fault(compare: Any) -> None:
    expect_columns("Mine", compare, OUTPUT)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Bag(["user", "n"]), r"Bag\(…\): \['user', 'n'\] is no name"),  # type: ignore[arg-type]
        (lambda: Bag("user", free=None), "free=None"),  # type: ignore[arg-type]
        (lambda: Bag("user", free=[1]), "1 is no name"),  # type: ignore[list-item]
        (lambda: Table(5), "key=5"),  # type: ignore[arg-type]
        (lambda: Table("user", latest=5), "latest=5"),  # type: ignore[arg-type]
        (lambda: Bag(tolerance="0.1"), "tolerance='0.1'"),  # type: ignore[arg-type]
        (lambda: Bag(tolerance=-1), "tolerance=-1"),
        (lambda: Bag(tolerance=float("inf")), "tolerance=inf"),
        (lambda: Bag(tolerance=float("nan")), "tolerance=nan"),
    ],
)
def test_comparisons_are_made_of_names_and_a_number(make: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make()


# --- inputs


def _parquet(kind: str, *values: Any) -> Files:
    return Files("parquet", [{"n": value} for value in values], schema=f"n {kind}")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Rows(["a"], schema="id STRING"), "a row is 'a'"),
        (lambda: Rows({"id": "a"}, schema="id STRING"), "a row is 'id'"),
        (lambda: Rows(5, schema="id STRING"), "5 is no schema"),
        (lambda: Rows(lambda: None, schema="id STRING"), "None is no schema"),
        (lambda: Rows([{"id": {1}}], schema="id STRING"), r"column id.*\{1\}"),
        (lambda: Rows([{"id": "a"}], schema=5), "schema=5"),
        (lambda: Rows("id STRING", per_step="2"), "per_step='2'"),
        (lambda: Rows("id STRING", steps=1.5), "steps=1.5"),
        (lambda: Rows("at TIMESTAMP", closing=5), "closing=5"),
        (lambda: Rows("at TIMESTAMP", closing=["x"]), "closing="),
        (lambda: Files("parquet", "id STRING, parts ARRAY<INT>"), "parts of type array<int>"),
        (
            lambda: Files("parquet", [{"parts": [1]}], schema="parts ARRAY<INT>"),
            r"parts.*array<int>.*parquet",
        ),
        (lambda: Topic("t", "id STRING", key="di"), "key= of topic t 'di'"),
        (lambda: Files("csv", "id STRING", {"sep": ";"}), "option sep=';'.*written with ','"),
        (lambda: Files("csv", "id STRING", {"Delimiter": "|"}), "option Delimiter"),
        (lambda: Files("csv", "id STRING", {"header": "false"}), "header='false'.*'true'"),
        (lambda: Files("json", "id STRING", {"multiLine": True}), "multiLine=True.*'false'"),
        (lambda: _parquet("INT", "x"), "column n of type int cannot have 'x'"),
        (lambda: _parquet("INT", 1, 1.5), "int cannot have 1.5"),
        (lambda: _parquet("INT", 3_000_000_000), "int cannot have 3000000000"),
        (lambda: _parquet("BOOLEAN", 1), "boolean cannot have 1"),
        (lambda: _parquet("STRING", 1), "string cannot have 1"),
        (lambda: _parquet("DATE", "noon"), "date cannot have 'noon'"),
        (lambda: _parquet("TIMESTAMP", None, "noon"), "timestamp cannot have 'noon'"),
        (lambda: _parquet("DECIMAL(4, 2)", 123.4), r"decimal\(4, 2\) cannot have 123.4"),
        (lambda: _parquet("DECIMAL(39, 2)", 1), r"n of type decimal\(39, 2\)"),
        (lambda: Files("parquet", "at TIMESTAMP", closing={"at": "far"}), "cannot have 'far'"),
        (lambda: Files("csv", "id STRING, parts ARRAY<INT>"), "parts of type array<int>"),
        (lambda: Files("csv", [{"n": [1]}], schema="n ARRAY<INT>"), r"n of type array<int>.*csv"),
        (lambda: Files("csv", [{"n": {"a": 1}}], schema="n STRING"), r"n .*\{'a': 1\}.*csv"),
    ],
)
def test_an_input_that_cannot_be_fed_is_one_clear_error(make: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        _ = make().steps


def test_rows_may_have_values_of_python_and_be_sparks() -> None:
    from pyspark.sql import Row as SparkRow

    schema = "day DATE, at TIMESTAMP, price DECIMAL(8, 2), parts STRUCT<at: TIMESTAMP>"
    at = datetime(2024, 1, 1, tzinfo=UTC)
    row = {"day": date(2024, 1, 1), "at": at, "price": Decimal("1.50"), "parts": {"at": at}}
    given = Rows([row, SparkRow(**row)], schema=schema, closing=date(2030, 1, 1))
    first, second, closing = (step for steps in given.steps for step in steps)
    assert first == second
    assert json.loads(json.dumps(first)) == {
        "day": "2024-01-01",
        "at": "2024-01-01T00:00:00.000000Z",
        "price": 1.5,
        "parts": {"at": "2024-01-01T00:00:00.000000Z"},
    }
    assert closing["at"] == "2030-01-01"


def test_each_type_that_rows_are_made_of_can_be_written_as_parquet(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    schema = (
        "id STRING, a TINYINT, b SMALLINT, c INT, d BIGINT, e FLOAT, f DOUBLE, g BOOLEAN, "
        "h TIMESTAMP, i TIMESTAMP_NTZ, j DECIMAL(8, 2), k DECIMAL"
    )
    given = Files("parquet", schema, per_step=2, steps=1)
    (rows,) = given.steps
    write_rows(tmp_path / "x.parquet", "parquet", given.schema, rows)
    read = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert read[1]["j"] == Decimal(str(rows[1]["j"]))
    assert read[1]["i"] == datetime(2024, 1, 1, 0, 0, 10)
    assert read[1]["h"] == datetime(2024, 1, 1, 0, 0, 10, tzinfo=UTC)


def test_decimals_of_all_digits_and_times_that_are_numbers_can_be_parquet(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    exact = Decimal("12345678901234567890123456789012.123456")
    rows: Any = [{"n": exact, "at": 1704067200}, {"n": 1.5, "at": "2024-01-01 00:00:01"}]
    given = Files("parquet", rows, schema="n DECIMAL(38, 6), at TIMESTAMP")
    write_rows(tmp_path / "x.parquet", "parquet", given.schema, given.steps[0])
    first, second = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert (first["n"], second["n"]) == (exact, Decimal("1.5"))
    assert first["at"] == datetime(2024, 1, 1, tzinfo=UTC)
    assert second["at"] == datetime(2024, 1, 1, 0, 0, 1, tzinfo=UTC)


def test_csv_has_what_is_no_number_as_spark_reads_it(tmp_path: Path) -> None:
    rows = [{"n": float("nan"), "g": True}, {"n": float("inf"), "g": None}, {"n": -float("inf")}]
    write_rows(tmp_path / "x.csv", "csv", "n DOUBLE, g BOOLEAN", rows)
    lines = (tmp_path / "x.csv").read_text().split()
    assert lines == ["n,g", "NaN,true", "Infinity,", "-Infinity,"]


def test_a_record_without_its_key_column_has_no_key() -> None:
    sender: Any = TopicSender.__new__(TopicSender)
    sender._topic, sender._key, sender._sent, sender._producer = "t", "user", [0, 0], Mock()
    sender.send(0, [{"user": "a", "n": 1}, {"n": 2}, {"user": None, "n": 3}])
    keys = [call.args[2] for call in sender._producer.send.call_args_list]
    assert keys == [b"a", None, None]


def test_a_folder_whose_name_ends_like_anothers_has_not_been_read(tmp_path: Path) -> None:
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    (tmp_path / "checkpoint" / "sources" / "0").mkdir(parents=True)
    (tmp_path / "checkpoint" / "offsets" / "0").write_text('v1\n{}\n{"logOffset":0}')
    log = tmp_path / "checkpoint" / "sources" / "0" / "0"
    log.write_text('v1\n{"path":"file:///x/loads/step-0000.json"}\n')
    loads = FileSender(tmp_path / "loads", "json", "id STRING")
    ads = FileSender(tmp_path / "ads", "json", "id STRING")
    for sender in (loads, ads):
        sender.send(0, [{"id": "a"}])
    assert loads.consumed(tmp_path / "checkpoint", 0)
    assert not ads.consumed(tmp_path / "checkpoint", 0)


# --- jobs and scripts


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("    oracle = OnePerKey", r"write OnePerKey\(…\)"),
        ("    oracle = Clean", r"write Clean\(…\)"),
        ("    oracle = OnePerKey('di')", "OnePerKey's column 'di'"),
        ("    oracle = OnePerKey(['id'])", r"\['id'\] is no name"),
        ("    oracle = 'batch'\n    compare = OuterBag('r')", "needs an input that is fed"),
    ],
)
def test_an_oracle_that_cannot_be_used_is_one_clear_error(
    tmp_path: Path, body: str, said: str
) -> None:
    inputs = "{'a': Rows('id STRING'), 'r': Recorded('rate')}" if "'r'" in body else "None"
    path = tmp_path / "job_of_mine.py"
    path.write_text(
        "from bettong.harness import Clean, Job, OnePerKey, OuterBag, Recorded, Rows\n\n"
        "class Mine(Job):\n"
        f"    inputs = {inputs} or {{'a': Rows('id STRING')}}\n"
        f"{body}\n"
        "    def transform(self, env): ...\n"
        "    def write(self, df, env): ...\n"
        "    def read(self, env): ...\n"
    )
    with pytest.raises(UsageError, match=said):
        load_job(f"{path}:Mine", fresh=True)


def test_two_inputs_of_a_script_do_not_go_to_the_same_place(tmp_path: Path) -> None:
    """Their files would be called alike, and one would replace the other."""
    for name in ("main.py", "a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("{}\n")
    (tmp_path / "reader.py").write_text("def reader(env):\n    return []\n")
    for place in ("dir:in", "topic:t"):
        inputs = tuple(f"{tmp_path / name}@{place}" for name in ("a.jsonl", "b.jsonl"))
        given = Script(
            str(tmp_path / "main.py"), {}, inputs=inputs, reader=f"{tmp_path}/reader.py:reader"
        )
        with pytest.raises(UsageError, match=f"--input.*{place}.*one file"):
            load_script(Request(given.target, contract="job", script=given))


# --- values that are read back


def test_two_columns_that_are_called_alike_are_an_error() -> None:
    """A dict would have one of them, and the other would not be judged."""
    from pyspark.sql import Row as SparkRow

    with pytest.raises(TypeError, match=r"read\(\) returned a row with two columns called id"):
        list(read_back([SparkRow("id", "n", "id")("a", 1, "b")]))


def test_values_of_python_are_read_back_as_json_has_them() -> None:
    numpy = pytest.importorskip("numpy")
    row = {
        "price": Decimal("1.50"),
        "whole": Decimal("3.00"),
        "exact": Decimal("1.23456789012345678901"),
        "raw": memoryview(b"\x01"),
        "some": {"b", "a"},
        "vector": numpy.array([1, 2]),
        "odd": [float("nan"), Decimal("NaN")],
    }
    assert plain(row) == {
        "price": 1.5,
        "whole": 3,
        "exact": "1.23456789012345678901",
        "raw": "01",
        "some": ["a", "b"],
        "vector": [1, 2],
        "odd": ["nan", "NaN"],
    }
