"""Applications on a real Spark."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from folder_sink import FolderSink
from pyspark.sql import SparkSession

from bettong.engine import (
    Application,
    application,
    computation,
    encoder,
    expiring,
    interpret,
    key_extractor,
    sink,
    source,
    state_computation,
    watermark,
)
from bettong.engine.metrics.config import Metrics
from bettong.engine.sources.base import Extent, FileSource
from bettong.engine.sources.directory import DirectorySource
from bettong.engine.sources.generator import GeneratorSource
from bettong.engine.spark.notes import SparkNotes
from bettong.engine.spark.runner import QueryError, RunConfig, run
from bettong.engine.state.manifest import read_manifest
from bettong.harness.spark.planner_python import PLANNER
from bettong.lineage.errors import UsageError
from bettong.scenarios.applications import alerts, running_sum, running_sum_arrays, word_count

pytestmark = pytest.mark.spark

LINES = [f"They know they found it, number {n} {n % 7}." for n in range(50)]


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    """Two batches of several tasks, and a last one of one task."""
    text = tmp_path / "lines.txt"
    text.write_text("\n".join(LINES) + "\n")
    return RunConfig(
        tmp_path / "checkpoint",
        {"lines": FileSource(text)},
        {"totals": FolderSink(tmp_path / "out")},
        batch_messages=20,
        one_task_messages=15,
    )


def expected(lines: list[str] = LINES) -> list[tuple[str, object, str]]:
    outputs = interpret(word_count.app, {"lines": [line.encode() for line in lines]}).outputs
    return sorted((o.id, o.key, o.data.decode()) for o in outputs)


def rows(config: RunConfig) -> list[tuple[str, str, str]]:
    out = config.sinks["totals"]
    assert isinstance(out, FolderSink)
    return sorted(out.rows())


@pytest.mark.parametrize("one_task_messages", [0, 15, 2_000])
def test_word_count_and_its_last_batch_again(
    spark: SparkSession, config: RunConfig, tmp_path: Path, one_task_messages: int
) -> None:
    config = dataclasses.replace(config, one_task_messages=one_task_messages)
    metrics = Metrics(tmp_path / "metrics.jsonl")
    measured = dataclasses.replace(config, metrics=metrics)
    assert run(word_count.app, spark, measured).await_drained() == 3
    assert rows(config) == expected()
    reported = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    batches = [t for t in reported if t["kind"] == "batch"]
    assert [b["messages"]["lines"] for b in batches] == [20, 20, 10]
    assert [b["steps"]["lines"]["messages"] for b in batches] == [20, 20, 10]
    spark_lines = [t for t in reported if t["kind"] == "spark"]
    assert [t["batch"] for t in spark_lines][:2] == [0, 1]
    assert all(t["driver"]["addBatch"] > 0 for t in spark_lines)
    commits = config.spark_checkpoint / "commits"
    (commits / "2").unlink()
    (commits / ".2.crc").unlink()
    again = dataclasses.replace(config, state_partitions=3)
    assert run(word_count.app, spark, again).await_drained() == 3
    assert rows(config) == expected()
    manifest = read_manifest(config.store, "word_count", 2)
    assert manifest.epoch == 2
    assert manifest.offsets == {"lines": 50}


def test_a_feed_that_begins_late_and_a_start_that_goes_on(
    spark: SparkSession, config: RunConfig, tmp_path: Path
) -> None:
    late = tmp_path / "late"
    late.touch()
    waiting = dataclasses.replace(config, sources={"lines": FileSource(late, follow=True)})
    running = run(word_count.app, spark, waiting)
    notes = SparkNotes(config.spark_checkpoint)
    while not notes.is_done(0):  # its first batch, with nothing in it
        assert not running.query.awaitTermination(0.1)
    late.write_text("\n".join(LINES[:20]) + "\n")
    while not notes.is_done(1):
        assert not running.query.awaitTermination(0.1)
    running.stop()
    assert rows(config) == expected(LINES[:20])
    assert run(word_count.app, spark, config).await_drained() == 4
    assert rows(config) == expected()
    manifest = read_manifest(config.store, "word_count", 1)
    assert manifest.offsets == {"lines": 20}


class AskedSource(FileSource):
    """Notes how long it was asked to wait, by the process at hand."""

    waits: ClassVar[list[float]] = []

    def extent(self, upto: int, wait: float) -> Extent:
        self.waits.append(wait)
        return super().extent(upto, wait)


def test_whoever_waits_for_the_end_of_a_stream_keeps_no_batch_from_asking(
    spark: SparkSession, config: RunConfig, tmp_path: Path
) -> None:
    """The driver has one connection to a gateway: a question that waits there holds up others."""
    source = AskedSource(tmp_path / "lines.txt")
    AskedSource.waits.clear()
    run(
        word_count.app, spark, dataclasses.replace(config, sources={"lines": source})
    ).await_drained()
    assert set(AskedSource.waits) == {0.0}


@pytest.mark.slow  # Spark waits ten seconds
def test_a_planner_that_does_not_come_up_in_time_is_started_again(
    spark: SparkSession, config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = tmp_path / "late"
    script = tmp_path / "python"
    script.write_text(
        f'#!/bin/sh\n[ "$2" = {PLANNER} ] && mkdir {late} && exec sleep 30\n'
        f'exec {sys.executable} "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(script))
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(script))
    assert run(word_count.app, spark, config).await_drained() == 3
    assert late.exists()
    assert rows(config) == expected()


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


@dataclass
class Seen:
    words: int = 0


@key_extractor
def by_count(total: tuple[str, int]) -> int:
    return total[1]


@state_computation(state=Seen)
def so_often(total: tuple[str, int], seen: Seen) -> tuple[int, int]:
    if total[0] == "found":
        raise ValueError("not that one")
    seen.words += 1
    return total[1], seen.words


@encoder
def as_text(value: object) -> bytes:
    return repr(value).encode()


def more(number: int) -> bytes:
    return b"It is number %d" % (number % 5)


def test_two_sources_two_levels_and_dead_letters(spark: SparkSession, tmp_path: Path) -> None:
    streams = {
        "lines": [line.encode() for line in LINES],
        "more": list(map(more, range(33))),
    }
    words = [
        source(name, word_count.line).to(word_count.split, name=f"{name}_words") for name in streams
    ]
    totals = words[0].merge(words[1]).key_by(word_count.word).to(word_count.count)
    app = application(
        "two_levels",
        totals.to_sink(sink("totals", word_count.total_line)),
        totals.key_by(by_count).to(so_often).to_sink(sink("often", as_text)),
        on_error=sink("dead", as_text),
    )
    (tmp_path / "in").mkdir()
    for part in range(2):
        lines = streams["lines"][25 * part : 25 * part + 25]
        (tmp_path / "in" / f"part{part}").write_bytes(b"\n".join(lines))
    sinks = {name: FolderSink(tmp_path / name) for name in ("totals_out", "often_out", "dead_out")}
    config = RunConfig(
        tmp_path / "checkpoint",
        {
            "lines": DirectorySource(tmp_path / "in", tmp_path / "index"),
            "more": GeneratorSource(more, 33),
        },
        {name.removesuffix("_out"): out for name, out in sinks.items()},
        batch_messages=20,
        state_partitions=3,
    )
    assert run(app, spark, config).await_drained() == 3
    outputs = interpret(app, streams).outputs
    for name, out in sinks.items():
        wanted = [
            (o.id, o.key, o.data.decode()) for o in outputs if o.sink == name.removesuffix("_out")
        ]
        assert sorted(out.rows()) == sorted(wanted)
        assert wanted


def agrees(
    spark: SparkSession,
    folder: Path,
    app: Application,
    streams: Mapping[str, list[bytes]],
    **config: Any,
) -> None:
    """A run in three batches gives every sink what the interpreter says."""
    (stream, messages), *_ = streams.items()
    (folder / stream).write_bytes(b"".join(m + b"\n" for m in messages))
    sinks = {node.name: FolderSink(folder / node.name) for node in app.sinks}
    found = RunConfig(
        folder / "checkpoint",
        {stream: FileSource(folder / stream)},
        sinks,
        batch_messages=len(messages) // 3 + 1,
        state_partitions=2,
        **config,
    )
    assert run(app, spark, found).await_drained() == 3
    outputs = interpret(app, streams).outputs
    for name, out in sinks.items():
        wanted = [(o.id, o.key, o.data.decode()) for o in outputs if o.sink == name]
        assert sorted(out.rows()) == sorted(wanted)


def test_windows_travel_to_workers(spark: SparkSession, tmp_path: Path) -> None:
    agrees(spark, tmp_path, alerts.app, alerts.messages(200))


def test_steps_over_arrays_travel_to_workers(spark: SparkSession, tmp_path: Path) -> None:
    app = running_sum_arrays.app
    agrees(spark, tmp_path, app, running_sum_arrays.messages(200))


def test_expiry_travels_to_workers(spark: SparkSession, tmp_path: Path) -> None:
    transactions = source("transactions", alerts.transaction)
    ticks = watermark(transactions, alerts.when, every=20)
    rare = expiring(alerts.overall, alerts.when, 120, lambda total: [f"gone at {total.amount}"])
    keyed = transactions.key_by(alerts.user).merge(ticks)
    app = application("expiring", keyed.to(rare).to_sink(sink("out", encode)))
    agrees(spark, tmp_path, app, alerts.messages(200))


def test_without_resilience_nothing_else_is_different(spark: SparkSession, tmp_path: Path) -> None:
    app = running_sum.app
    agrees(spark, tmp_path, app, running_sum.messages(200), resilience=False)
    assert (tmp_path / "checkpoint" / "without-resilience").exists()
