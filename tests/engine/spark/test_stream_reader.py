"""The source as Spark's planner and executors call it, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql.types import StructType

from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.config import RunConfig
from bettong.engine.sinks.files import FileSink
from bettong.engine.sources.base import FileSource
from bettong.engine.spark.runner import _source_spec
from bettong.engine.spark.source import StreamReader, data_source
from bettong.engine.state.planned import all_noted
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
    executor: StreamReader = cloudpickle.loads(cloudpickle.dumps(again))
    parts = executor.partitions(start, end)
    blocks = [block for part in parts for block in executor.read(part)]
    assert len(parts) == 2 and sum(batch.num_rows for batch in blocks) > 0
