"""Applications on a real Spark."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from folder_sink import FolderSink
from pyspark.sql import SparkSession

from bettong.engine import Application, application, computation, encoder, interpret, sink, source
from bettong.engine.sources import FileSource
from bettong.engine.spark.runner import QueryError, RunConfig, run
from bettong.engine.state.manifest import read_manifest
from bettong.lineage.errors import UsageError
from bettong.scenarios.applications import word_count

pytestmark = pytest.mark.spark

LINES = [f"They know they found it, number {n} {n % 7}." for n in range(50)]


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    text = tmp_path / "lines.txt"
    text.write_text("\n".join(LINES) + "\n")
    return RunConfig(
        tmp_path / "checkpoint",
        {"lines": FileSource(text)},
        {"totals": FolderSink(tmp_path / "out")},
        batch_messages=20,
    )


def expected(app: Application = word_count.app) -> list[tuple[str, object, str]]:
    outputs = interpret(app, {"lines": [line.encode() for line in LINES]}).outputs
    return sorted((o.id, o.key, o.data.decode()) for o in outputs)


def rows(config: RunConfig) -> list[tuple[str, str, str]]:
    out = config.sinks["totals"]
    assert isinstance(out, FolderSink)
    return sorted(out.rows())


def test_word_count_and_its_last_batch_again(spark: SparkSession, config: RunConfig) -> None:
    assert run(word_count.app, spark, config).await_drained() == 3
    assert rows(config) == expected()
    commits = config.spark_checkpoint / "commits"
    (commits / "2").unlink()
    (commits / ".2.crc").unlink()
    again = dataclasses.replace(config, state_partitions=3)
    assert run(word_count.app, spark, again).await_drained() == 3
    assert rows(config) == expected()
    manifest = read_manifest(config.store, "word_count", 2)
    assert manifest.epoch == 2
    assert manifest.offsets == {"lines": 50}


def test_a_failing_function_names_step_and_message(spark: SparkSession, config: RunConfig) -> None:
    @computation
    def cautious(text: str) -> str:
        if "number 33" in text:
            raise ValueError("I do not like it")
        return text

    app = application(
        "cautious",
        source("lines", word_count.line).to(cautious).to_sink(sink("totals", encode)),
    )
    with pytest.raises(QueryError, match="step cautious failed on message lines/33: ValueError"):
        run(app, spark, config).await_drained()
    assert len(rows(config)) == 20  # the batch before is visible, nothing of this one


@encoder
def encode(text: str) -> bytes:
    return text.encode()


def test_sources_and_sinks_are_checked_before_anything_starts(
    spark: SparkSession, config: RunConfig
) -> None:
    with pytest.raises(UsageError, match=r"sinks \['totals'\], the run was given \['other'\]"):
        run(
            word_count.app,
            spark,
            dataclasses.replace(config, sinks={"other": config.sinks["totals"]}),
        )
    with pytest.raises(UsageError, match="batch_messages must be at least 1"):
        run(word_count.app, spark, dataclasses.replace(config, batch_messages=0))
