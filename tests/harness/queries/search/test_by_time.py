"""Whether what a query puts out may hang on the time."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.by_time import asks_for_time, goes_by_time
from bettong.harness.queries.sink.ran_lines import RanLine
from bettong.lineage.trace import TraceEvent

TODAY = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("stamp = datetime.now(UTC)", True),
        ("if date.today() > self.day:", True),
        ("started = time.time()", True),
        ("df = batch.withColumn('at', F.current_timestamp())", True),
        ("spark.sql('INSERT INTO t SELECT *, now() FROM b')", True),
        ("clock = datetime.now", True),
        ("rows = batch.collect()", False),
        ("self.known = timeout", False),
    ],
)
def test_a_line_that_began_asks_for_the_time(tmp_path: Path, line: str, asks: bool) -> None:
    file = tmp_path / "sink.py"
    file.write_text(f"def write(batch):\n    {line}\n    time.time()\n")
    assert asks_for_time([RanLine(str(file), "write", 1, 2)]) is asks
    assert not asks_for_time([RanLine(str(tmp_path / "gone.py"), "write", 1, 2)])


def test_a_file_that_was_changed_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "sink.py"
    line = RanLine(str(file), "write", 1, 1)
    file.write_text("collect()\n")
    assert not asks_for_time([line])
    file.write_text("date.today()\n")
    assert asks_for_time([line])


@pytest.mark.parametrize(
    ("row", "goes"),
    [
        ({"day": date(2026, 3, 1)}, True),
        ({"day": "20260302"}, True),
        ({"day": "2024-01-01"}, False),
    ],
)
def test_rows_and_files_that_name_a_day_go_by_it(row: dict[str, Any], goes: bool) -> None:
    assert goes_by_time(QueryRun(rows=[row]), TODAY) is goes
    name = next(iter(row.values()))
    detail = {"op": "open", "path": f"out/{name}.json"}
    event = TraceEvent("batch=0/sink.file=1.open", "before", "driver", detail=detail)
    assert goes_by_time(QueryRun(events=[event]), TODAY) is goes
