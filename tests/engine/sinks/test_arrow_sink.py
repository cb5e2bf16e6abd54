"""Arrow files as a sink."""

from __future__ import annotations

import errno
import os
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


def test_what_an_executor_has_left_that_died_over_it_is_not_committed(tmp_path: Path) -> None:
    """Spark repeats its stage then, and counts the attempts at each task from 0 again."""
    sink = ArrowSink(tmp_path)
    sink.open("app", 1, QUIET)
    prepare(sink, 1, 0, 0, 0)
    (whole,) = (tmp_path / "rows").iterdir()
    torn = whole.with_name(f"{whole.stem[:-12]}ffffffffffff.arrow")
    torn.write_bytes(whole.read_bytes()[:100])
    assert max(staged(sink)) == torn.name, "it would be taken for the newest"
    sink.commit(1, 0, {0: 0}, QUIET)
    assert shown(sink) == [["lines/0.0"]]
    assert staged(sink) == [whole.name]


def test_what_an_earlier_release_has_staged_is_done_again(tmp_path: Path) -> None:
    """Its names of files say nothing of their sizes."""
    sink = ArrowSink(tmp_path)
    sink.open("app", 1, QUIET)
    prepare(sink, 1, 0, 0, 0)
    (staged_before,) = (tmp_path / "rows").iterdir()
    epoch, batch, partition, attempt, _, own = staged_before.name.split("-")
    staged_before.rename(staged_before.with_name("-".join((epoch, batch, partition, attempt, own))))
    sink.open("app", 2, QUIET)
    prepare(sink, 2, 0, 0, 0)
    sink.commit(2, 0, {0: 0}, QUIET)
    assert shown(sink) == [["lines/0.0"]]
    assert [name[:6] for name in staged(sink)] == ["000002"]


def test_rows_that_could_not_be_made_durable_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = ArrowSink(tmp_path)
    sink.open("app", 1, QUIET)
    prepare(sink, 1, 0, 1, 0)
    before = staged(sink)

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="Input/output error"):
            prepare(sink, 1, 0, 0, 0)
    assert staged(sink) == before


def test_a_winner_that_has_prepared_nothing_is_named(tmp_path: Path) -> None:
    sink = ArrowSink(tmp_path)
    sink.open("app", 1, QUIET)
    prepare(sink, 1, 0, 0, 0)
    with pytest.raises(BettongError, match="partition 1, attempt 0 has not been prepared"):
        sink.commit(1, 0, {0: 0, 1: 0}, QUIET)
    assert shown(sink) == []
