from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bettong.harness.histories import Columns, StoredCheck, StoredHistory
from bettong.harness.histories.on_spark import judge_on_spark
from bettong.lineage.errors import UsageError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
]

ROWS = [{"id": f"in/{i}", "key": f"k{i % 3}", "value": i} for i in range(60)]


def history(directory: Path, name: str, rows: list[dict[str, object]]) -> StoredHistory:
    path = directory / f"{name}.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=16)
    return StoredHistory.at(path, name)


def test_same_verdict_as_on_one_machine(tmp_path: Path) -> None:
    observed = [r for r in ROWS if r["id"] not in ("in/7", "in/59")]
    observed[10], observed[13] = observed[13], observed[10]
    observed[20] = dict(observed[20], value=-1)
    observed += [ROWS[4], {"id": "nowhere", "key": "k0", "value": 0}]
    check = StoredCheck(
        history(tmp_path, "expected", ROWS),
        history(tmp_path, "observed", observed),
        Columns(compare=("value",)),
    )
    here, there = check.judge(), judge_on_spark(check, "local[1]")
    assert set(here.counts) == {"Loss", "Duplicate", "Reorder", "Phantom", "Corrupt"}
    assert there.counts == here.counts
    assert {(a.kind, a.messages, a.key) for a in there.anomalies} == {
        (a.kind, a.messages, a.key) for a in here.anomalies
    }
    assert (there.verdict, there.guarantee, there.ordering) == (
        here.verdict,
        here.guarantee,
        here.ordering,
    )


def test_a_session_that_runs_already_is_left_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    for rows, verdict in ((ROWS, "valid"), (ROWS[1:], "invalid")):
        expected = history(tmp_path, "expected", ROWS)
        check = StoredCheck(expected, history(tmp_path, "observed", rows), Columns())
        assert judge_on_spark(check, "local[1]").verdict == verdict
    assert spark.range(3).count() == 3
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions


def test_lines_without_an_order_are_refused(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text('{"id": "a", "key": "b"}\n')
    lines = StoredHistory.at(tmp_path / "e.jsonl", "expected")
    with pytest.raises(UsageError, match="--order"):
        judge_on_spark(StoredCheck(lines, lines, Columns()), "local[1]")


def test_json_is_compared_exactly_there_too(tmp_path: Path) -> None:
    values = ["9223372036854775808", "1", "true", "1e400", '"1"', '{"a": [1]}', "2.0"]
    others = ["9223372036854775809", '"1"', "1", "2e400", '"1"', '{"a": [1.0]}', "2"]
    for name, found in (("e", values), ("o", others)):
        lines = [f'{{"id": {i}, "key": "k", "v": {v}}}\n' for i, v in enumerate(found)]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    check = StoredCheck(
        StoredHistory.at(tmp_path / "e.jsonl", "expected"),
        StoredHistory.at(tmp_path / "o.jsonl", "observed"),
        Columns(compare=("v",)),
        "none",
    )
    here, there = check.judge(), judge_on_spark(check, "local[1]")
    assert here.counts == there.counts == {"Corrupt": 4}
    assert {a.messages for a in here.anomalies} == {a.messages for a in there.anomalies}
    told = [a.expected["value"] for a in there.anomalies]
    assert told == [a.expected for a in here.anomalies] == [2**63, 1, True, "1E+400"]
    (tmp_path / "o.jsonl").write_text('{"id": 1, "v": \n')
    assert judge_on_spark(check, "local[1]").verdict == "unknown"


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_times_within_one_second_are_an_order_there_too(tmp_path: Path, suffix: str) -> None:
    times = [f"2026-01-01T00:00:00.{i:03}" for i in range(4)]
    for name, order in (("expected", times), ("observed", [times[1], times[0], *times[2:]])):
        rows = [{"id": str(i), "key": "k", "at": at} for i, at in enumerate(order)]
        if suffix == "jsonl":
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / f"{name}.jsonl").write_text(lines)
        else:
            typed = [row | {"at": datetime.fromisoformat(row["at"])} for row in rows]
            pq.write_table(pa.Table.from_pylist(typed), tmp_path / f"{name}.parquet")
    check = StoredCheck(
        StoredHistory.at(tmp_path / f"expected.{suffix}", "expected"),
        StoredHistory.at(tmp_path / f"observed.{suffix}", "observed"),
        Columns(order="at", arrival="at"),
    )
    assert check.judge().counts == judge_on_spark(check, "local[1]").counts == {"Reorder": 1}


@pytest.mark.parametrize("order", ["9223372036854775808", "1.5", "null", "[1]"])
def test_an_order_that_is_none_is_no_pass_there_either(tmp_path: Path, order: str) -> None:
    (tmp_path / "e.jsonl").write_text(f'{{"id": "a", "key": "k", "at": {order}}}\n')
    lines = StoredHistory.at(tmp_path / "e.jsonl", "expected")
    check = StoredCheck(lines, lines, Columns(order="at", arrival="at"))
    assert judge_on_spark(check, "local[1]").verdict == "unknown"


def test_ids_of_several_columns_and_times_are_told_apart_there_too(tmp_path: Path) -> None:
    at = datetime(2024, 1, 31, 12, 0, 0, 5)
    rows = [{"a": "x/y", "b": "z", "at": at}, {"a": "x", "b": "y/z", "at": at}]
    expected = history(tmp_path, "expected", rows)
    columns = Columns(id=("a", "b"), key=None, compare=("at",))
    later = [dict(rows[0], at=at.replace(microsecond=6)), rows[0]]
    for observed, counts in ((rows, {}), (later, {"Loss": 1, "Duplicate": 1, "Corrupt": 1})):
        seen = history(tmp_path, "observed", observed)
        check = StoredCheck(expected, seen, columns, "none")
        assert judge_on_spark(check, "local[1]").counts == check.judge().counts == counts
    nameless = history(tmp_path, "observed", [*rows, dict(rows[0], b=None)])
    check = StoredCheck(expected, nameless, columns, "none")
    assert judge_on_spark(check, "local[1]").verdict == check.judge().verdict == "unknown"
