"""Arrow files as a sink."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.engine.errors import FencedError
from bettong.engine.sinks.arrow import ArrowSink, read_batches
from bettong.engine.sinks.base import Noted, Row
from bettong.lineage.errors import BettongError, UsageError

QUIET = Noted("")


def prepare(sink: ArrowSink, epoch: int, batch: int, partition: int, attempt: int) -> None:
    rows = [Row(f"lines/{batch}.{partition}", f"k{partition}", b"%d" % batch)]
    sink.prepare(epoch, batch, partition, attempt, rows, QUIET)


def shown(sink: ArrowSink) -> list[list[str]]:
    return [table.column("id").to_pylist() for table in read_batches(sink.directory)]


def staged(sink: ArrowSink) -> list[str]:
    return sorted(path.name for path in (sink.directory / "rows").iterdir())


def test_another_application_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    sink = ArrowSink(tmp_path)
    sink.open("app", 1, QUIET)
    for epoch in (1, 2):
        with pytest.raises(UsageError, match="holds the output of app"):
            sink.open("other", epoch, QUIET)
    sink.open("app", 2, QUIET)
    with pytest.raises(FencedError):
        sink.open("app", 1, QUIET)


def test_what_lost_or_came_late_is_not_kept(tmp_path: Path) -> None:
    sink = ArrowSink(tmp_path)
    sink.open("app", 1, QUIET)
    for attempt in range(3):
        prepare(sink, 1, 0, 0, attempt)
    prepare(sink, 1, 0, 1, 0)
    prepare(sink, 1, 1, 0, 0)
    sink.commit(1, 0, {0: 1, 1: 0}, QUIET)
    of_batch = [name.split("-")[1:4] for name in staged(sink)]
    assert of_batch == [
        ["000000000000", "0000", "1"],
        ["000000000000", "0001", "0"],
        ["000000000001", "0000", "0"],
    ]
    kept = staged(sink)
    prepare(sink, 1, 0, 0, 3)
    sink.commit(1, 0, {0: 3, 1: 0}, QUIET)
    assert staged(sink) == kept
    sink.open("app", 2, QUIET)  # does the last batch again
    prepare(sink, 2, 1, 0, 0)
    sink.commit(2, 1, {0: 0}, QUIET)
    assert [name[:6] for name in staged(sink)] == ["000001", "000001", "000002"]
    assert shown(sink) == [["lines/0.0", "lines/0.1"], ["lines/1.0"]]


def test_a_winner_that_has_prepared_nothing_is_named(tmp_path: Path) -> None:
    sink = ArrowSink(tmp_path)
    sink.open("app", 1, QUIET)
    prepare(sink, 1, 0, 0, 0)
    with pytest.raises(BettongError, match="partition 1, attempt 0 has not been prepared"):
        sink.commit(1, 0, {0: 0, 1: 0}, QUIET)
    assert shown(sink) == []
