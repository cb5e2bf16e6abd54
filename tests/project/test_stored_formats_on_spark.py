"""Damage of Spark's own notes in a checkpoint of the engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from stored_formats import Format
from test_stored_formats import check

from bettong.engine.config import RunConfig
from bettong.engine.sinks.files import FileSink, read_rows
from bettong.engine.sources.base import FileSource
from bettong.engine.spark.runner import run
from bettong.scenarios.applications.word_count import app

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]


def config_of(folder: Path) -> RunConfig:
    return RunConfig(
        folder / "checkpoint",
        {"lines": FileSource(folder / "lines")},
        {"totals": FileSink(folder / "out")},
        batch_messages=8,
    )


def test_damaged_notes_of_sparks_are_named_or_change_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A run goes on whose last batch is not recorded as done, and beside whose notes there are no
    checksums of Hadoop's: ``bettong start`` has Spark write none."""

    def write(folder: Path) -> None:
        (folder / "lines").write_text("".join(f"they know number {n % 5}\n" for n in range(24)))
        assert run(app, spark, config_of(folder)).await_drained() == 3
        notes = folder / "checkpoint" / "spark"
        for file in (notes / "commits" / "2", *notes.rglob(".*.crc")):
            file.unlink()

    def gone_on(folder: Path) -> list[str]:
        run(app, spark, config_of(folder)).await_drained()
        return sorted(map(str, read_rows(folder / "out")))

    kinds = ("checkpoint/spark/offsets/[0-9]*", "checkpoint/spark/commits/[0-9]*")
    assert check(Format("Spark's notes", write, kinds, gone_on), tmp_path, 4, 60) == []
