from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.harness.checkers import Judgement, Record, check_outputs
from bettong.harness.checkers.levels import Order
from bettong.harness.histories import Columns, StoredCheck, StoredHistory
from bettong.harness.strategies.data import PlantedHistory, planted_histories

COMPARED = Columns(compare=("value",))


def write(path: Path, records: tuple[Record, ...] | list[Record]) -> Path:
    rows = [
        {
            "id": r.id,
            "key": r.key,
            "value": r.value if isinstance(r.value, str) else json.dumps(r.value),
        }
        for r in records
    ]
    schema = pa.schema({"id": pa.string(), "key": pa.string(), "value": pa.string()})
    table = pa.Table.from_pylist(rows, schema)
    match path.suffix:
        case ".parquet":
            pq.write_table(table, path, row_group_size=5)
        case ".arrow":
            with pa.ipc.new_file(str(path), schema) as file:
                file.write_table(table, max_chunksize=3)
        case ".arrows":
            with pa.ipc.new_stream(str(path), schema) as file:
                file.write_table(table, max_chunksize=3)
        case _:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def check(
    directory: Path, expected: object, observed: object, suffix: str = ".parquet", **options: object
) -> Judgement:
    e = write(directory / f"expected{suffix}", expected)  # type: ignore[arg-type]
    o = write(directory / f"observed{suffix}", observed)  # type: ignore[arg-type]
    return StoredCheck(
        StoredHistory.at(e, "expected"),
        StoredHistory.at(o, "observed"),
        **{"columns": COMPARED, **options},  # type: ignore[arg-type]
    ).judge()


def as_text(records: tuple[Record, ...]) -> list[Record]:
    return [replace(r, value=json.dumps(r.value)) for r in records]


def reported(judgement: Judgement) -> list[str]:
    return sorted(map(repr, judgement.anomalies))


@pytest.mark.parametrize(
    ("suffix", "memory"),
    [(".parquet", 0), (".parquet", 1 << 30), (".jsonl", 0), (".arrow", 0), (".arrows", 1 << 30)],
)
@settings(max_examples=25)
@given(history=planted_histories(max_size=40, max_anomalies=10))
def test_agrees_with_the_small_checker(suffix: str, memory: int, history: PlantedHistory) -> None:
    small = check_outputs(as_text(history.expected), as_text(history.observed))
    with TemporaryDirectory() as name:
        stored = check(Path(name), history.expected, history.observed, suffix, memory=memory)
    assert reported(stored) == reported(small)
    assert (stored.verdict, stored.guarantee, stored.ordering) == (
        small.verdict, small.guarantee, small.ordering,
    )  # fmt: skip
    assert stored.counts == small.counts


@settings(max_examples=25)
@given(history=planted_histories(), order=st.sampled_from(["total", "none"]))
def test_agrees_with_the_small_checker_on_other_orders(
    history: PlantedHistory, order: Order
) -> None:
    small = check_outputs(as_text(history.expected), as_text(history.observed), order=order)
    with TemporaryDirectory() as name:
        stored = check(Path(name), history.expected, history.observed, ordering=order)
    assert stored.counts == small.counts
    assert {(a.kind, a.messages) for a in stored.anomalies} == {
        (a.kind, a.messages) for a in small.anomalies
    }
    assert stored.verdict == small.verdict


@settings(max_examples=30)
@given(history=planted_histories(max_size=60, max_anomalies=20), whole=st.booleans())
def test_histories_that_differ_everywhere(history: PlantedHistory, whole: bool) -> None:
    observed = history.observed[::-1] if whole else history.observed * 3
    small = check_outputs(as_text(history.expected), as_text(observed))
    with TemporaryDirectory() as name:
        stored = check(Path(name), history.expected, observed, memory=0)
    assert stored.counts == small.counts
    assert reported(stored) == reported(small)


def test_order_by_columns(tmp_path: Path) -> None:
    rows = [{"id": i, "key": i % 2, "seq": 10 * i, "offset": 7 * i} for i in range(20)]
    mixed = sorted(rows, key=lambda r: r["id"] * 7 % 20)
    for name, content in (("expected", mixed), ("observed", rows)):
        pq.write_table(pa.Table.from_pylist(content), tmp_path / f"{name}.parquet")
    e = StoredHistory.at(tmp_path / "expected.parquet", "expected")
    o = StoredHistory.at(tmp_path / "observed.parquet", "observed")
    assert StoredCheck(e, o, Columns()).judge().verdict == "invalid"
    assert StoredCheck(e, o, Columns(order="seq")).judge().verdict == "valid"
    assert StoredCheck(o, e, Columns(arrival="offset")).judge().verdict == "valid"
    swapped = [dict(r, seq=-r["seq"]) for r in rows]
    pq.write_table(pa.Table.from_pylist(swapped), tmp_path / "expected.parquet")
    judgement = StoredCheck(e, o, Columns(order="seq")).judge()
    assert judgement.counts == {"Reorder": 18}


def test_ids_of_several_columns_and_of_other_types(tmp_path: Path) -> None:
    rows = [{"topic": t, "n": n, "key": "k"} for t in "ab" for n in range(3)]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    narrow = pa.schema(
        {"topic": pa.dictionary(pa.int8(), pa.large_string()), "n": pa.int16(), "key": pa.string()}
    )
    pq.write_table(pa.Table.from_pylist(rows[:-1], narrow), tmp_path / "o.parquet")
    judgement = StoredCheck(
        StoredHistory.at(tmp_path / "e.jsonl", "expected"),
        StoredHistory.at(tmp_path / "o.parquet", "observed"),
        Columns(id=("topic", "n")),
    ).judge()
    assert [a.messages for a in judgement.anomalies] == [("b/2",)]
    assert judgement.anomalies[0].note == "tail lost"


def test_malformed_histories_are_unknown_and_name_the_record(tmp_path: Path) -> None:
    good = [Record("a", "k", 1), Record("b", "k", 2)]
    twice = check(tmp_path, [*good, good[0]], [*good, good[0]])
    assert twice.verdict == "unknown"
    assert "expected record 3 has the id a, as record 1" in twice.reason
    without = check(tmp_path, good, [*good, Record(None, "k", 7)])
    assert without.verdict == "unknown"
    assert "observed record 3 has no id" in without.reason
    assert check(tmp_path, good, [Record("", "k", 7)]).verdict == "unknown"
    assert check(tmp_path, [], []).verdict == "unknown"


@pytest.mark.parametrize("bad", ['{"id": "c"', "[1]", '"x"'])
def test_unreadable_line_is_named(tmp_path: Path, bad: str) -> None:
    good = write(tmp_path / "good.jsonl", [Record("a", "k", 1), Record("b", "k", 1)])
    broken = tmp_path / "broken.jsonl"
    broken.write_text(good.read_text() + bad)
    history = StoredHistory.at(broken, "observed")
    judgement = StoredCheck(StoredHistory.at(good, "expected"), history, Columns()).judge()
    assert judgement.verdict == "unknown"
    assert "broken.jsonl:3: not " in judgement.reason


def test_a_cut_parquet_file_is_unknown(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.parquet", [Record("a", "k", 1)])
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-9])
    judgement = StoredCheck(
        StoredHistory.at(whole, "expected"), StoredHistory.at(cut, "observed"), Columns()
    ).judge()
    assert judgement.verdict == "unknown"
    assert "cut.parquet cannot be read" in judgement.reason


def test_lines_whose_types_change(tmp_path: Path) -> None:
    lines = '{"id": 1, "key": "a", "value": 1}\n{"id": "x", "key": 2, "value": {"b": [1]}}\n\n'
    (tmp_path / "e.jsonl").write_text(lines)
    history = StoredHistory.at(tmp_path / "e.jsonl", "expected")
    judgement = StoredCheck(history, history, COMPARED).judge()
    assert judgement.verdict == "valid"


def test_witnesses_are_a_sample_and_all_are_counted(tmp_path: Path) -> None:
    records = [Record(f"in/{i}", f"k{i % 3}", i) for i in range(500)]
    judgement = check(tmp_path, records, records[:100], witnesses=7)
    assert judgement.counts == {"Loss": 400}
    assert [a.messages[0] for a in judgement.anomalies] == [f"in/{i}" for i in range(100, 107)]
