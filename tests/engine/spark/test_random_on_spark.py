"""Spark and the interpreter agree, whatever the application, its input, the batch boundaries, the
numbers of partitions and the crashes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from batch_run import CrashingProtocol, aligned, crashes, in_order
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from bettong.engine import Application, interpret
from bettong.engine.keys import HASH_SPACE, parse
from bettong.engine.sinks.arrow import SCHEMA, ArrowSink, read_batches
from bettong.engine.sources.base import FileSource
from bettong.engine.spark.runner import QueryError, RunConfig, run
from bettong.engine.state.entities import FileCache, entities_of
from bettong.engine.state.manifest import read_manifest
from bettong.engine.state.scan import scan
from bettong.harness.strategies.pipelines import numbers, pipelines

pytestmark = pytest.mark.spark


def check(spark: SparkSession, data: st.DataObject) -> None:
    """One random run, with a crash of the driver's part of a batch, or without."""
    app = data.draw(pipelines())
    streams = {n.name: data.draw(st.lists(numbers(), max_size=12)) for n in app.sources}
    size = data.draw(st.integers(3, 12))
    batches = len(aligned(streams, size))
    crash = data.draw(crashes(max(batches, 1)))
    event(f"crash: {crash[1]}")
    event("for every key" if any(n.visits for n in app.nodes) else "for own keys alone")
    before, after = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stream, messages in streams.items():
            (folder / stream).write_bytes(b"".join(m + b"\n" for m in messages))
        for partitions in (before, after):
            config = RunConfig(
                folder / "checkpoint",
                {stream: FileSource(folder / stream) for stream in streams},
                {node.name: ArrowSink(folder / "out" / node.name) for node in app.sinks},
                batch_messages=size,
                state_partitions=partitions,
                one_task_messages=data.draw(st.sampled_from([0, size, 100])),
                batch_class=CrashingProtocol,
                options={"crash": crash},
            )
            try:
                assert run(app, spark, config).await_drained() == batches
            except QueryError as e:
                assert "CrashError" in str(e), e
                continue
            break
        judge(app, config, streams, batches)


def judge(
    app: Application, config: RunConfig, streams: Mapping[str, list[bytes]], batches: int
) -> None:
    """Outputs, ids, their order and the state are what the interpreter says."""
    expected = interpret(app, streams)
    for node in app.sinks:
        sink = config.sinks[node.name]
        assert isinstance(sink, ArrowSink)
        rows = [
            (i, None if key is None else parse(key), value)
            for table in read_batches(sink.directory)
            for i, key, value in zip(*(table[c].to_pylist() for c in SCHEMA.names), strict=True)
        ]
        wanted = [(o.id, o.key, o.data) for o in expected.outputs if o.sink == node.name]
        assert in_order(node, rows) == in_order(node, wanted)
    manifest = read_manifest(config.store, app.name, batches - 1)
    for state in app.states:
        files = manifest.files_of(state.name, 0, HASH_SPACE)
        found = scan(state, FileCache(config.store), files, 0, HASH_SPACE)
        entities = entities_of(state, found.column)
        assert (
            dict(zip(map(parse, found.keys), entities, strict=True)) == expected.state[state.name]
        )


# An example takes seconds: a failing one is shown as it was drawn.
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)


@settings(max_examples=4, suppress_health_check=list(HealthCheck), phases=UNSHRUNK)
@given(st.data())
def test_random_applications_on_spark(spark: SparkSession, data: st.DataObject) -> None:
    check(spark, data)


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_many_random_applications_on_spark(spark: SparkSession, data: st.DataObject) -> None:
    check(spark, data)
