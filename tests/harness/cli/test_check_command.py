from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import run

import jsonschema
import pytest
from click.testing import CliRunner, Result

from bettong.harness.cli import cli
from bettong.lineage.results import schema

ROWS = [{"id": f"in/{i}", "key": f"k{i % 3}", "value": i * i} for i in range(30)]


@pytest.fixture
def expected(tmp_path: Path) -> Path:
    return history(tmp_path / "expected.jsonl", ROWS)


def history(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def check(*args: object) -> Result:
    return CliRunner().invoke(cli, ["check", *map(str, args)])


def test_valid(expected: Path) -> None:
    found = check(expected, expected)
    assert found.exit_code == 0
    assert "✔ valid: effectively-once, in order per key" in found.output


def test_a_planted_duplicate_with_its_report(expected: Path, tmp_path: Path) -> None:
    observed = history(tmp_path / "observed.jsonl", [*ROWS, ROWS[4]])
    found = check(expected, observed, "--json", "--out", tmp_path / "out")
    assert found.exit_code == 1
    result = json.loads(found.stdout)
    jsonschema.validate(result, schema())
    assert result["guarantee"] == "at-least-once"
    (anomaly,) = result["anomalies"]
    assert (anomaly["kind"], anomaly["messages"]) == ("Duplicate", ["in/4"])
    assert anomaly["seen"] == {"times": 2, "places": [4, 30]}
    assert "in/4" in (tmp_path / "out" / "report.html").read_text()
    assert "Duplicate" in (tmp_path / "out" / "junit.xml").read_text()
    assert check(expected, observed, "--expect", "at-least-once").exit_code == 0


def test_contents_are_compared_unless_told_otherwise(expected: Path, tmp_path: Path) -> None:
    observed = history(tmp_path / "o.jsonl", [dict(ROWS[0], value=7), *ROWS[1:]])
    found = check(expected, observed)
    assert found.exit_code == 1
    assert "Corrupt in/0 (key k0): the content differs, at place 0" in found.output
    assert "expected 0, seen 7" in found.output
    assert check(expected, observed, "--ignore", "value").exit_code == 0
    alone = check(expected, observed, "--compare", "id")
    assert alone.exit_code == 0
    assert "ids and keys alone were compared, no other contents" in alone.output
    assert "alone were compared" not in found.output


@pytest.mark.parametrize("nothing", ["", " ", ","])
def test_columns_to_compare_have_to_be_named(expected: Path, nothing: str) -> None:
    found = check(expected, expected, "--compare", nothing)
    assert found.exit_code == 2
    assert "--compare: name at least one column" in found.stderr


def test_a_column_that_was_dropped_on_the_way_is_named(expected: Path, tmp_path: Path) -> None:
    observed = history(tmp_path / "o.jsonl", [{"id": row["id"]} for row in ROWS])
    found = check(expected, observed)
    assert found.exit_code == 0
    assert "o.jsonl has no column key, value: it was not compared, and no order" in found.output
    assert "not compared" not in check(expected, observed, "--ignore", "key,value").output
    assert "not compared" not in check(expected, observed, "--compare", "id").output
    assert check(expected, expected, "--compare", "value", "--ignore", "value").exit_code == 2


def test_a_line_that_cannot_be_read_concludes_nothing(expected: Path, tmp_path: Path) -> None:
    observed = tmp_path / "o.jsonl"
    observed.write_text("no record\n")
    for words in ((expected, observed), (observed, expected)):
        found = check(*words)
        assert found.exit_code == 3
        assert "o.jsonl:1: not JSON" in found.output


def test_orders(expected: Path, tmp_path: Path) -> None:
    observed = history(tmp_path / "o.jsonl", ROWS[::-1])
    assert "27 Reorder" in check(expected, observed).output
    assert check(expected, observed, "--ordering", "none").exit_code == 0
    assert "29 Reorder" in check(expected, observed, "--ordering", "total").output
    assert check(expected, observed, "--arrival", "value").exit_code == 0


def test_unknown_is_3_and_names_the_record(expected: Path, tmp_path: Path) -> None:
    found = check(history(tmp_path / "twice.jsonl", [*ROWS, ROWS[2]]), expected)
    assert found.exit_code == 3
    assert "expected record 31 has the id in/2, as record 3 has" in found.output


@pytest.mark.parametrize(
    ("args", "reported"),
    [
        (["--id", "idd"], "did you mean id?"),
        (["--key", "kye"], "did you mean key?"),
        (["--order", "valeu"], "did you mean value?"),
        (["--compare", "values"], "did you mean value?"),
        (["--arrival", "key"], "an order is given by whole numbers or times"),
    ],
)
def test_usage_errors_name_the_nearest_column(
    expected: Path, args: list[str], reported: str
) -> None:
    found = check(expected, expected, *args)
    assert found.exit_code == 2
    assert reported in found.stderr


def test_files_that_are_not_there_or_of_no_known_kind(expected: Path, tmp_path: Path) -> None:
    assert "no such file" in str(check(expected, tmp_path / "no.parquet").stderr)
    (tmp_path / "x.csv").write_text("id\n1\n")
    assert "its name ends in .parquet" in str(check(expected, tmp_path / "x.csv").stderr)


def test_directories_of_files(expected: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    history(parts / "part-0.jsonl", ROWS[:11])
    history(parts / "part-1.jsonl", ROWS[11:])
    (parts / "_SUCCESS").touch()
    assert check(expected, parts).exit_code == 0


def test_spark_is_not_imported(expected: Path) -> None:
    code = (
        "import sys; from bettong.harness.cli import main\n"
        "sys.argv[1:] = ['check', *sys.argv[1:]]\n"
        "try: main()\nexcept SystemExit: pass\n"
        "sys.exit('pyspark' in sys.modules)"
    )
    assert (
        run([sys.executable, "-c", code, str(expected), str(expected)], check=False).returncode == 0
    )


def test_batches_are_reported(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"id": f"o/{n}", "key": "a"} for n in range(4)]
    expected = history(tmp_path / "expected.jsonl", rows)
    places = [(1, 7), (0, 7), (3, 7), (2, 8), (1, 8)]
    seen = [{**rows[n], "batch": batch} for n, batch in places]
    observed = history(tmp_path / "observed.jsonl", seen)
    found = check(expected, observed, "--batch", "batch")
    assert found.exit_code == 1
    assert "Duplicate o/1 (key a): distant, across batches 7, 8" in found.output
    assert "Reorder o/0, o/1 (key a): at places 0 and 1, within batch 7" in found.output
    assert "Reorder o/2, o/3 (key a): at places 2 and 3, across batches 7, 8" in found.output
    assert check(expected, observed).exit_code == 1
