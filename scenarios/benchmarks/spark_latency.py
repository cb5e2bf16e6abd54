"""How long a message takes through everything: sender, gateway, Spark, receiver, a reader's eyes;
and the same without Spark, in this process.

Messages are due at a steady rate, whatever becomes of those before them, and a message is late
until a reader of the receiver's file can see its output (no coordinated omission). Recovery is on;
every output is checked. A batch closes as soon as the one before is done, with what has come
meanwhile.

Where each millisecond of a batch goes is reported in three parts. ``spark`` is Spark's own split:
``latestOffset`` plans the batch and notes what it takes, ``walCommit`` is Spark's note of that,
``addBatch`` reads, applies state, publishes and commits, ``commitOffsets`` is Spark's note that it
is done; beside it Spark alone at the same rate, a query that counts rows of its own rate source.
``driver`` is what the engine does within ``addBatch``, one after the other: ``base`` reads the
manifest before, ``execute`` is Spark's job, ``manifest`` publishes the state, ``sink.commit`` the
outputs. ``tasks`` is what tasks do within ``execute``, added up (``state.load`` is a part of
``state.apply``). What none of these tells of is reported too, as the rest of the phase in which it
is: of ``execute`` the scheduling, shuffling and moving of blocks between Spark and Python, of
``addBatch`` Spark's call of the engine and what measuring takes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bettong.engine.address import Address
from bettong.engine.config import RunConfig
from bettong.engine.endpoints import GatewaySource, TcpSink
from bettong.engine.in_process import run_in_process
from bettong.engine.metrics.config import Metrics
from bettong.engine.metrics.histogram import Histogram
from bettong.engine.spark.runner import run
from bettong.harness.spark.user_session import session
from bettong.lineage.results import environment
from bettong.scenarios.applications import running_sum
from bettong.scenarios.benchmarks.live_load import STREAM, Load, ends, times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

RATE = 10_000
SLOW_RATE = 10
SECONDS = 30
FULL_SECONDS = 300
WARM_S = 15
RATES = (RATE, SLOW_RATE)
TRIGGER = "triggerExecution"
Phases = Mapping[str, Mapping[str, float]]
"""By who tells of them: milliseconds of each phase of a batch."""
SERVERS = {
    "gateway": "bettong.engine.ingest.gateway",
    "receiver": "bettong.engine.receiver.server",
}


class Lag(NamedTuple):
    """How many messages were due and their outputs not to be seen, when the window of the
    measurement began and when it ended: without growing the engine keeps up."""

    begin: int
    end: int


def bench(full: bool = False) -> dict[str, Any]:
    """The figures; raises WrongResultError."""
    seconds = FULL_SECONDS if full else SECONDS
    with (
        tempfile.TemporaryDirectory() as name,
        session("bettong-latency", "local[2]", Path(name) / "spark.log") as spark,
    ):
        folder = Path(name)
        seen = {
            f"{rate} a second": _on_spark(spark, folder / str(rate), Load(rate, seconds))
            for rate in RATES
        }
        plain = _floor(spark, folder)
    with tempfile.TemporaryDirectory() as name:
        seen[f"{RATE} a second, in-process"] = _live(Path(name), Load(RATE, seconds), _in_process)
    floor = plain[TRIGGER]
    figures: dict[str, Any] = {}
    for case, (latencies, phases, lag) in seen.items():
        for part in (0.5, 0.99, 0.999):
            value = latencies.quantile(part) / 1e6
            figures[f"{case}, sender to reader, p{100 * part:g}"] = {
                "value": round(value, 1),
                "unit": "ms",
                "versus": f"a batch of Spark alone: {floor:.1f}",
                "ratio": round(value / floor, 2),
            }
        figures[f"{case}, not seen yet at the end"] = {
            "value": lag.end,
            "unit": "messages",
            "versus": f"at the beginning: {lag.begin}",
        }
        for who, took in phases.items():
            for phase, ms in took.items():
                figure: dict[str, Any] = {"value": round(ms, 1), "unit": "ms"}
                if who == "spark":
                    figure["versus"] = f"Spark alone: {plain.get(phase, 0.0):.1f}"
                figures[f"{case}, {who} {phase}, p50"] = figure
    return {"name": "spark-latency", "figures": figures, "environment": environment()}


@contextmanager
def _servers(folder: Path) -> Iterator[dict[str, Address]]:
    """Gateway and receiver, each a process."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        found = {}
        for name, module in SERVERS.items():
            command = [sys.executable, "-m", module, "--listen", "127.0.0.1:0"]
            command += ["--dir", str(folder / name)]
            running[name] = subprocess.Popen(command, stdout=subprocess.PIPE)
            out = running[name].stdout
            assert out is not None
            found[name] = Address.parse(json.loads(out.readline())["listening"])
        yield found
    finally:
        for process in running.values():
            process.terminate()
            process.communicate()


def _live(
    folder: Path, load: Load, run_all: Callable[[RunConfig], None]
) -> tuple[Histogram, Phases, Lag]:
    """The latencies of all messages but those of the first seconds, the medians of the engine's own
    phases of the later batches, and how far the outputs were behind.

    Args:
        run_all: runs the application until every message has been made visible.
    """
    with _servers(folder) as addresses:
        config = RunConfig(
            folder / "checkpoint",
            {STREAM: GatewaySource(addresses["gateway"], STREAM)},
            {"sums": TcpSink(addresses["receiver"], "running_sum")},
            batch_wait_s=0.0,
            state_partitions=1,  # one core keeps up
            read_slices=1,
            metrics=Metrics(file=folder / "metrics.jsonl"),
        )
        output = folder / "receiver" / "running_sum" / "output.jsonl"
        with ends(load, addresses["gateway"], output, folder):
            run_all(config)
    found = times(load, folder)
    first = load.frame + WARM_S * load.rate
    latencies = Histogram()
    latencies.add_all(np.maximum(found.seen - found.due, 0)[first:])
    measured = (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    batches = [line for line in map(json.loads, measured) if line["kind"] == "batch"]
    phases = {
        part: _medians([{n: 1000 * s for n, s in batch[part].items()} for batch in batches])
        for part in ("driver", "tasks")
    }
    lag = Lag(found.late(found.due[first]), found.late(found.due[-1]))
    return latencies, phases, lag


def _on_spark(spark: SparkSession, folder: Path, load: Load) -> tuple[Histogram, Phases, Lag]:
    """What :func:`_live` gives, with Spark's phases and what is in none."""
    spans: dict[str, Mapping[str, float]] = {}

    def run_all(config: RunConfig) -> None:
        running = run(running_sum.app, spark, config)
        running.await_drained()
        spans["spark"] = _phases(running.query)

    latencies, own, lag = _live(folder, load, run_all)
    spans |= own
    spans["rest"] = rests(spans)
    return latencies, spans, lag


def _in_process(config: RunConfig) -> None:
    run_in_process(running_sum.app, config)


def rests(phases: Phases) -> dict[str, float]:
    """What of each phase that has phases of its own is in none of these."""
    spark, driver, tasks = (dict(phases[who]) for who in ("spark", "driver", "tasks"))
    tasks.pop("state.load", None)  # within state.apply
    whole = spark.pop(TRIGGER)
    return {
        f"of {TRIGGER}": whole - sum(spark.values()),
        "of addBatch": spark["addBatch"] - sum(driver.values()),
        "of execute": driver["execute"] - sum(tasks.values()),
    }


def _floor(spark: SparkSession, folder: Path) -> dict[str, float]:
    """The medians of the phases of a batch of Spark alone, in milliseconds."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", RATE).load()

    def take(frame: DataFrame, batch: int) -> None:
        frame.count()

    query = (
        rows.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(folder / "plain"))
        .start()
    )
    try:
        time.sleep(WARM_S)
        return _phases(query)
    finally:
        query.stop()


def _phases(query: StreamingQuery) -> dict[str, float]:
    """The medians of the phases of the later batches, in milliseconds, the whole first."""
    reported = [json.loads(p.json) for p in query.recentProgress]
    took = [p["durationMs"] for p in reported if "addBatch" in p["durationMs"]]
    whole = _medians(took)
    return {TRIGGER: whole.pop(TRIGGER), **dict(sorted(whole.items()))}


def _medians(batches: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of each phase over the later half of batches."""
    later = batches[len(batches) // 2 :]
    names = dict.fromkeys(name for each in later for name in each)
    return {name: float(np.median([each.get(name, 0.0) for each in later])) for name in names}
