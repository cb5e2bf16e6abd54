"""Orders that columns give, against a checker that looks at every pair of records."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from itertools import combinations
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bettong.harness.checkers import Judgement
from bettong.harness.histories import Columns, StoredCheck, StoredHistory
from bettong.harness.histories.columns import whole_numbers
from bettong.lineage.errors import UsageError

DAY = 86_400 * 10**9
BY_TIME = Columns(arrival="t")
WIDE = st.sampled_from([-(2**63), -1, 0, 1, 2**53, 2**63 - 1])
ORDERS = st.one_of(st.integers(0, 4), WIDE)
RECORDS = st.lists(st.tuples(st.sampled_from("ab"), ORDERS, ORDERS), min_size=1, max_size=12)


def judge(e: Path, o: Path, columns: Columns) -> Judgement:
    expected, observed = StoredHistory.at(e, "expected"), StoredHistory.at(o, "observed")
    return StoredCheck(expected, observed, columns).judge()


def of_times(folder: Path, times: pa.Array) -> Judgement:
    """a, b and c are expected in this order, and seen at these times."""
    table = pa.table({"id": ["a", "b", "c"], "key": ["k"] * 3})
    pq.write_table(table, folder / "e.parquet")
    pq.write_table(table.append_column("t", times), folder / "o.parquet")
    return judge(folder / "e.parquet", folder / "o.parquet", BY_TIME)


@settings(max_examples=30)
@example(records=[("a", 3, 2), ("a", 5, 1), ("a", 7, 2)], shuffled=Random(0))
@given(records=RECORDS, shuffled=st.randoms(use_true_random=False))
def test_two_records_the_other_way_round_are_found_wherever_they_are(
    records: list[tuple[str, int, int]], shuffled: Any
) -> None:
    rows = [
        {"id": n, "key": key, "seq": rank, "at": arrival}
        for n, (key, rank, arrival) in enumerate(records)
    ]
    wrong = any(
        (a["seq"] - b["seq"]) * (a["at"] - b["at"]) < 0  # type: ignore[operator]
        for a, b in combinations(rows, 2)
        if a["key"] == b["key"]
    )
    with TemporaryDirectory() as name:
        for file in ("e", "o"):
            shuffled.shuffle(rows)
            pq.write_table(pa.Table.from_pylist(rows), Path(name) / f"{file}.parquet")
        columns = Columns(order="seq", arrival="at")
        found = judge(Path(name) / "e.parquet", Path(name) / "o.parquet", columns)
    assert set(found.counts) == ({"Reorder"} if wrong else set())


def test_an_order_with_gaps_of_months_to_the_nanosecond(tmp_path: Path) -> None:
    months = [0, 400 * DAY, 200 * DAY]
    found = of_times(tmp_path, pa.array(months, pa.timestamp("ns")))
    assert found.counts == {"Reorder": 1}


@pytest.mark.parametrize(
    "times",
    [
        pa.array([date(2024, 1, day) for day in (1, 3, 2)]),
        pa.array([f"2024-01-0{day}T00:00:00" for day in (1, 3, 2)], pa.large_string()),
        pa.array([f"2024-01-0{day}T00:00:00Z" for day in (1, 3, 2)]),
        pa.array([f"2024-01-01T0{at}" for at in ("0:00:00Z", "2:00:00-01:00", "3:00:00+01:00")]),
        pa.array([f"2024-01-0{day}" for day in (1, 3, 2)]).dictionary_encode(),
        pa.array([timedelta(days=day) for day in (1, 3, 2)]),
    ],
    ids=["dates", "long texts", "UTC", "zones", "coded", "durations"],
)  # fmt: skip
def test_times_of_every_kind_are_an_order(tmp_path: Path, times: pa.Array) -> None:
    assert of_times(tmp_path, times).counts == {"Reorder": 1}


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False]),
        pa.array(["1", "2"], pa.large_string()),
        pa.array([b"1", b"2"]),
        pa.array(["2024-01-01T00:00:00Z", "2024-01-01T00:00:00"]),
        pa.array([1.0, float("nan")]),
    ],
    ids=["truths", "digits", "bytes", "zone or none", "no number"],
)
def test_what_has_no_order_is_refused(values: pa.Array) -> None:
    with pytest.raises(UsageError, match=r"whole numbers or times"):
        whole_numbers(values, "t")


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_files_that_count_time_differently_have_no_order_in_common(
    tmp_path: Path, names: str
) -> None:
    (tmp_path / "e.jsonl").write_text(
        "".join(json.dumps({"id": name, "key": "k"}) + "\n" for name in names)
    )
    (tmp_path / "o").mkdir()
    for name, unit, second in (("a", "us", 1), ("b", "ms", 2)):
        at = datetime.fromtimestamp(second, UTC).replace(tzinfo=None)
        table = pa.table({"id": [name], "key": ["k"], "t": pa.array([at], pa.timestamp(unit))})
        pq.write_table(table, tmp_path / "o" / f"{name}.parquet")
    found = judge(tmp_path / "e.jsonl", tmp_path / "o", BY_TIME)
    assert found.verdict == "unknown"
    assert "t is timestamp[us] in some records and timestamp[ms] in others" in found.reason
