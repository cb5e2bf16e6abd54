"""The source as Spark's planner and executors call it, in this process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.sinks.files import FileSink
from bettong.engine.sources.base import Extent, FileSource
from bettong.engine.spark.execution import share_of
from bettong.engine.spark.runner import _source_spec, run
from bettong.engine.spark.source import StreamReader, data_source
from bettong.engine.state.manifest import current_epoch, remove_manifest
from bettong.engine.state.planned import all_noted
from bettong.lineage.errors import UsageError
from bettong.scenarios.applications import running_sum
from bettong.scenarios.applications.running_sum_merged import app


def reader(config: RunConfig) -> StreamReader:
    """As Spark makes it: in another process, from pickled bytes."""
    spec = _source_spec(app, config, BatchProtocol(config.settings(app)))
    source = data_source("bettong_test", spec)
    made: Any = cloudpickle.loads(cloudpickle.dumps(source({}).streamReader(StructType())))
    assert isinstance(made, StreamReader)
    return made


def test_a_silent_stream_holds_nobody_up_and_a_replay_takes_what_was_noted(tmp_path: Path) -> None:
    amounts, corrections = tmp_path / "amounts", tmp_path / "corrections"
    amounts.write_text("k,1\nk,2\n")
    corrections.touch()
    config = RunConfig(
        tmp_path / "checkpoint",
        {
            "amounts": FileSource(amounts, follow=True),
            "corrections": FileSource(corrections, follow=True),
        },
        {"sums": FileSink(tmp_path / "out")},
        poll_s=0.0,
    )
    planner = reader(config)
    start = planner.initialOffset()
    end = planner.latestOffset(start, None)
    assert end == {"batch": 1, "streams": {"amounts": 2, "corrections": 0}}
    assert planner.latestOffset(end, None) == end, "nothing has come"
    with amounts.open("a") as more:
        more.write("k,3\n")
    again = reader(config)
    assert again.latestOffset(start, None) == end, "what was noted is taken again"
    assert again.latestOffset(end, None)["streams"] == {"amounts": 3, "corrections": 0}
    assert [dict(n.ends)["amounts"] for n in all_noted(config.store)] == [2, 3]
    share = share_of(again.spec.sources, 2, start, end)
    assert list(share.ranges) == [("amounts", 0, 2)], "nothing is read of the silent one"
    assert len(share) == 2


class LateSource(FileSource):
    """A file whose messages come when it is looked at for the third time."""

    looks = 0

    def extent(self, upto: int, wait: float) -> Extent:
        type(self).looks += 1
        if type(self).looks == 3:
            self.path.write_text("k,1\n")
        return super().extent(upto, wait)


def test_the_first_batch_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("amounts", "corrections"):
        (tmp_path / name).touch()
    amounts = LateSource(tmp_path / "amounts", follow=True)
    sources = {"amounts": amounts, "corrections": FileSource(tmp_path / "corrections", follow=True)}
    config = RunConfig(
        tmp_path / "checkpoint", sources, {"sums": FileSink(tmp_path / "out")}, poll_s=0.0
    )
    planner = reader(config)
    start = planner.initialOffset()
    monkeypatch.setattr("bettong.engine.spark.source.FIRST_BATCH_S", 0.0)
    empty = planner.latestOffset(start, None)
    assert empty == {"batch": 1, "streams": {"amounts": 0, "corrections": 0}}
    assert not share_of(sources, 2, start, empty)
    monkeypatch.undo()
    amounts.path.write_text("k,1\n")
    assert reader(config).latestOffset(start, None) == empty, "what was noted is taken again"
    LateSource.looks = 0
    amounts.path.write_text("")
    fresh = replace(config, checkpoint=tmp_path / "fresh")
    end = reader(fresh).latestOffset(start, None)
    assert end == {"batch": 1, "streams": {"amounts": 1, "corrections": 0}}


def test_an_input_without_messages_has_no_batch(tmp_path: Path) -> None:
    for name in ("amounts", "corrections"):
        (tmp_path / name).touch()
    sources = {name: FileSource(tmp_path / name) for name in ("amounts", "corrections")}
    config = RunConfig(tmp_path / "checkpoint", sources, {"sums": FileSink(tmp_path / "out")})
    planner = reader(config)
    assert planner.latestOffset(planner.initialOffset(), None) == planner.initialOffset()


def test_a_stream_that_was_added_begins_at_its_beginning(tmp_path: Path) -> None:
    for name in ("amounts", "corrections"):
        (tmp_path / name).write_text("k,1\nk,2\n")
    sources = {name: FileSource(tmp_path / name) for name in ("amounts", "corrections")}
    config = RunConfig(tmp_path / "checkpoint", sources, {"sums": FileSink(tmp_path / "out")})
    planner, before = reader(config), {"batch": 4, "streams": {"amounts": 1}}
    end = planner.latestOffset(before, None)
    assert end == {"batch": 5, "streams": {"amounts": 2, "corrections": 2}}
    taken = share_of(sources, 1, before, end).ranges
    assert {(part.stream, part.start) for part in taken} >= {("amounts", 1), ("corrections", 0)}


def test_spark_begins_no_state_again_of_which_it_knows_nothing(tmp_path: Path) -> None:
    amounts = tmp_path / "amounts"
    amounts.write_text("k,1\n" * 6)
    config = RunConfig(
        tmp_path / "checkpoint",
        {"amounts": FileSource(amounts)},
        {"sums": FileSink(tmp_path / "out")},
        batch_messages=1,
    )
    run_in_process(running_sum.app, config)
    remove_manifest(config.store, 0, 1)  # as housekeeping does after some batches
    with pytest.raises(UsageError, match="it was written by the in-process runner"):
        run(running_sum.app, cast(SparkSession, None), config)
    assert current_epoch(config.store) == 1, "nothing was touched"
