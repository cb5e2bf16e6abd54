"""What ``bettong check`` makes of folders, and of columns that not all records have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bettong.harness.cli import cli
from bettong.harness.histories import json_lines

Rows = list[dict[str, Any]]


def check(*args: object) -> Result:
    return CliRunner().invoke(cli, ["check", *map(str, args)])


def lines(path: Path, rows: Rows) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def parquet(path: Path, rows: Rows) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


WRITERS = pytest.mark.parametrize(("write", "suffix"), [(lines, "jsonl"), (parquet, "parquet")])


@WRITERS
def test_a_column_that_only_a_later_file_has_is_compared(
    tmp_path: Path, write: Any, suffix: str
) -> None:
    for side, amount in (("e", 1), ("o", 2)):
        write(tmp_path / side / f"0.{suffix}", [{"id": 1, "v": 1}])
        write(tmp_path / side / f"1.{suffix}", [{"id": 2, "v": 1, "amount": amount}])
    found = check(tmp_path / "e", tmp_path / "o")
    assert found.exit_code == 1, found.output
    assert "Corrupt 2" in found.output
    assert check(tmp_path / "e", tmp_path / "e").exit_code == 0
    assert check(tmp_path / "e", tmp_path / "o", "--ignore", "amount").exit_code == 0


@WRITERS
def test_a_column_that_a_later_file_lacks_is_empty_there(
    tmp_path: Path, write: Any, suffix: str
) -> None:
    for side, amount in (("e", None), ("o", 2)):
        write(tmp_path / side / f"0.{suffix}", [{"id": 1, "amount": 1}])
        more = {} if amount is None else {"amount": amount}
        write(tmp_path / side / f"1.{suffix}", [{"id": 2, "v": 1, **more}])
    assert "Corrupt 2" in check(tmp_path / "e", tmp_path / "o").output
    assert check(tmp_path / "e", tmp_path / "e").exit_code == 0


def test_a_file_without_the_ids_is_unknown(tmp_path: Path) -> None:
    parquet(tmp_path / "o" / "0.parquet", [{"id": 1}])
    parquet(tmp_path / "o" / "1.parquet", [{"other": 1}])
    found = check(tmp_path / "o" / "0.parquet", tmp_path / "o")
    assert found.exit_code == 3
    assert "1.parquet cannot be read: it has none of the columns id" in found.output


def test_a_member_of_later_lines_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "JSON_BLOCK", 64)
    plain: Rows = [{"id": n} for n in range(30)]
    e = lines(tmp_path / "e.jsonl", [*plain, {"id": 30, "amount": 1}])
    o = lines(tmp_path / "o.jsonl", [*plain, {"id": 30, "amount": 2}])
    assert "Corrupt 30" in check(e, o).output
    assert check(e, e).exit_code == 0
    without = lines(tmp_path / "w.jsonl", [*plain, {"id": 30}])
    assert "w.jsonl has no column amount: it was not compared" in check(e, without).output


def test_a_key_that_only_later_lines_have_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "JSON_BLOCK", 64)
    plain: Rows = [{"id": n} for n in range(30)]
    keyed: Rows = [{"id": n, "key": "k"} for n in (30, 31)]
    e = lines(tmp_path / "e.jsonl", [*plain, *keyed])
    o = lines(tmp_path / "o.jsonl", [*plain, *keyed[::-1]])
    found = check(e, o)
    assert found.exit_code == 1
    assert "1 Reorder" in found.output


@pytest.mark.parametrize("name", ["1.jsonl.gz", "1.csv", "1"])
def test_a_file_of_another_kind_is_not_passed_over(tmp_path: Path, name: str) -> None:
    lines(tmp_path / "o" / "0.jsonl", [{"id": 1}])
    (tmp_path / "o" / name).write_bytes(b"more")
    found = check(tmp_path / "o", tmp_path / "o")
    assert found.exit_code == 2
    assert name in found.stderr
    assert "not a history that can be read" in found.stderr


def test_what_an_unfinished_writer_has_left_is_no_part(tmp_path: Path) -> None:
    parquet(tmp_path / "o" / "day=1" / "0.parquet", [{"id": 1}])
    parquet(tmp_path / "o" / "_temporary" / "0" / "0.parquet", [{"id": 1}])
    lines(tmp_path / "o" / "_delta_log" / "0.json", [{"add": 1}])
    assert check(tmp_path / "o" / "day=1", tmp_path / "o").exit_code == 0


def test_one_id_that_is_no_number_is_none(tmp_path: Path) -> None:
    e = parquet(tmp_path / "e.parquet", [{"id": 1.0}, {"id": float("nan")}])
    found = check(e, e)
    assert found.exit_code == 3
    assert "expected record 2 has no id" in found.output


def test_having_seen_nothing_is_no_pass(tmp_path: Path) -> None:
    e, o = lines(tmp_path / "e.jsonl", [{"id": 1}]), lines(tmp_path / "o.jsonl", [])
    found = check(e, o, "--expect", "at-most-once")
    assert found.exit_code == 3
    assert "nothing was seen" in found.output
    assert check(e, o).exit_code == 1


def test_no_order_is_claimed_where_no_record_has_a_key(tmp_path: Path) -> None:
    e = lines(tmp_path / "e.jsonl", [{"id": 1, "key": None}, {"id": 2, "key": None}])
    found = check(e, e)
    assert found.exit_code == 0
    assert "in order per key" not in found.output
    assert "nothing expected has a key" in found.output


def test_records_without_a_key_are_counted_where_others_have_one(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"id": 1, "key": None}, {"id": 2, "key": None}]
    keyed: list[dict[str, Any]] = [{"id": 3, "key": "a"}, {"id": 4, "key": "a"}]
    e = lines(tmp_path / "e.jsonl", rows + keyed)
    o = lines(tmp_path / "o.jsonl", rows[::-1] + keyed)
    found = check(e, o)
    assert found.exit_code == 0
    assert "2 expected records have no key: their order was not checked" in found.output
    assert "have no key" in json.loads(check(e, o, "--json").stdout)["reason"]
    assert "no key" not in check(e, o, "--ordering", "none").output
    one = lines(tmp_path / "one.jsonl", rows[:1] + keyed)
    assert "1 expected record has no key: its order was not checked" in check(one, one).output


def test_names_of_columns_may_stand_apart(tmp_path: Path) -> None:
    e = lines(tmp_path / "e.jsonl", [{"id": 1, "a": 1, "b": 1}])
    o = lines(tmp_path / "o.jsonl", [{"id": 1, "a": 1, "b": 2}])
    assert "Corrupt 1" in check(e, o, "--compare", "a, b").output


@WRITERS
def test_two_columns_of_an_id_are_in_order(tmp_path: Path, write: Any, suffix: str) -> None:
    expected = [{"partition": 1, "offset": 2}, {"partition": 2, "offset": 1}]
    e = write(tmp_path / f"e.{suffix}", expected)
    o = write(tmp_path / f"o.{suffix}", [expected[0], expected[0]])
    assert check(e, e, "--id", "partition,offset").exit_code == 0
    found = check(e, o, "--id", "partition,offset")
    assert found.exit_code == 1, found.output
    assert "Loss 2/1" in found.output and "Duplicate 1/2" in found.output


def test_what_only_the_names_of_folders_say_is_named(tmp_path: Path) -> None:
    for side, day in (("e", 1), ("o", 2)):
        parquet(tmp_path / side / f"day={day}" / "0.parquet", [{"id": 1}])
    found = check(tmp_path / "e", tmp_path / "o")
    assert "day in the names of folders was not compared" in " ".join(found.output.split())
    assert "not compared" not in check(tmp_path / "e", tmp_path / "o", "--ignore", "day").output


def test_a_link_to_a_folder_is_not_passed_over(tmp_path: Path) -> None:
    rows = lines(tmp_path / "elsewhere" / "0.jsonl", [{"id": 1}])
    lines(tmp_path / "o" / "0.jsonl", [{"id": 1}])
    (tmp_path / "o" / "again").symlink_to(tmp_path / "elsewhere")
    found = check(rows, tmp_path / "o")
    assert found.exit_code == 2 and "again: no file" in found.output
    (tmp_path / "o" / "again").unlink()
    (tmp_path / "o" / "again.jsonl").symlink_to(rows)
    assert check(rows, tmp_path / "o").exit_code == 1


def test_a_key_that_is_ignored_is_none(tmp_path: Path) -> None:
    e = lines(tmp_path / "e.jsonl", [{"id": 1, "key": "a"}])
    o = lines(tmp_path / "o.jsonl", [{"id": 1, "key": "b"}])
    assert check(e, o).exit_code == 1
    assert check(e, o, "--ignore", "key").exit_code == 0
    found = check(e, o, "--key", "key", "--ignore", "key")
    assert found.exit_code == 2 and "say one of the two" in found.output


def test_bytes_within_others_are_shown(tmp_path: Path) -> None:
    e = parquet(tmp_path / "e.parquet", [{"id": 1, "v": [{"raw": b"\xff"}]}])
    o = parquet(tmp_path / "o.parquet", [{"id": 1, "v": [{"raw": b"\xfe"}]}])
    found = check(e, o, "--json")
    assert json.loads(found.output)["anomalies"][0]["seen"] == [{"raw": "fe"}]


def test_in_which_order_files_are_read_is_said_where_it_counts(tmp_path: Path) -> None:
    """Names are texts: the tenth part comes before the ninth."""
    for side in ("e", "o"):
        for number in (9, 10):
            lines(tmp_path / side / f"part-{number}.jsonl", [{"id": number, "seq": number}])
    said = "the 2 files of expected are read in the order of their names, part-10.jsonl before part"
    total = check(tmp_path / "e", tmp_path / "o", "--ordering", "total", "--json")
    assert said in total.output, total.output
    ordered = ("--ordering", "total", "--order", "seq", "--arrival", "seq", "--json")
    for others in (ordered, ("--json",)):
        found = check(tmp_path / "e", tmp_path / "o", *others)
        assert found.exit_code == 0, found.output
        assert "are read in the order of their names" not in found.output


def test_two_columns_of_one_name_are_no_history(tmp_path: Path) -> None:
    both = pa.table([[1], [2]], names=["id", "id"])
    pq.write_table(both, tmp_path / "e.parquet")
    found = check(tmp_path / "e.parquet", tmp_path / "e.parquet")
    assert found.exit_code == 2, found.output
    assert "several columns are called id: rename all but one" in found.output
