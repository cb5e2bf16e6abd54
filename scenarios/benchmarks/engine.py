"""The engine's throughput: a keyed running sum, whole runs on prepared input, recovery on.

Each way of doing it gets the same messages ``key,number``, and its outputs are checked one by one.
``plain loop`` is the same functions in a Python loop over a dict, with nothing that a crash would
leave: what the language itself costs on one core. Bytewax runs the same functions without
recovery; ``applyInPandasWithState`` and Spark's own aggregation get the messages as columns, and
the latter gives one total for a key and batch. They have a session with Spark's defaults, the
engine one with its own settings. Ratios are of events per second of CPU, of all processes, so that
what else the machine does counts little, and of steady rates on the clock, without the first
batches. Of many messages the others get the first ones only: their rates are the same from the
first minute on, and the slowest of them would run for an hour.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bettong.engine import Application
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.sinks.arrow import ArrowSink, read_batches
from bettong.engine.sources.base import ArrowSource
from bettong.engine.spark.runner import run
from bettong.harness.spark.user_session import local_settings
from bettong.lineage.results import environment
from bettong.lineage.trace import MessageRange
from bettong.scenarios.applications import running_sum, running_sum_arrays
from bettong.scenarios.benchmarks import bytewax_peer, peers
from bettong.scenarios.benchmarks.errors import WrongResultError
from bettong.scenarios.benchmarks.session import local_session
from bettong.scenarios.benchmarks.timing import Spent, cpu_seconds, steady

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Way = Callable[[], "list[float] | Spent | None"]
"""Does it; says when each batch was done, or what it has spent."""

PARTITIONS = 4
EVENTS = 1_000_000
FULL_EVENTS = 20_000_000
PEER_EVENTS = 6_000_000
BATCH = 250_000
BATCHES = 20
"""Of many messages; of few there are fewer."""
KEYS = (20_000, 26)
APPLICATIONS = {"messages": running_sum.app, "arrays": running_sum_arrays.app}
PEERS = {
    "applyInPandasWithState": peers.applied_in_pandas,
    "Spark's aggregation": peers.aggregated,
}


@dataclass(frozen=True)
class Timing:
    """One way of doing it.

    Attributes:
        whole: events a second over the whole run, without the session's start.
        per_cpu: events for a second of CPU of this process and all its children.
        steady: events a second on the clock after the first batches; ``whole`` where there are
            no batches, or few.
    """

    whole: float
    per_cpu: float
    steady: float


def measure(events: int, keys: int, folder: Path) -> dict[str, Timing]:
    """Run every way once; raises WrongResultError when outputs are missing or wrong."""
    batch = max(BATCH, events // BATCHES)
    fewer, few = folder / f"{keys}-fewer.arrow", min(events, PEER_EVENTS)
    expected = prepare(fewer, few, keys)
    messages = ArrowSource(fewer).read(MessageRange("amounts", 0, few), "", ())
    lines = expected.cast(pa.binary()).to_pylist()
    ways: dict[str, Way] = {"plain loop": partial(_plain_loop, fewer, expected)}
    if bytewax_peer.is_there():
        for threads in (1, 2):
            name = "Bytewax" if threads == 1 else f"Bytewax, {threads} threads"
            ways[name] = partial(bytewax_peer.run, messages.to_pylist(), lines, threads)
        ways["Bytewax, 2 processes"] = partial(bytewax_peer.run_processes, fewer, lines, 2)
    timings = {name: _timed(few, batch, way) for name, way in ways.items()}
    with local_session({}) as spark:
        for name, peer in PEERS.items():
            way = peer(spark, messages, expected, batch, folder)
            timings[name] = _timed(few, batch, way)
    path = folder / f"{keys}.arrow"
    expected = prepare(path, events, keys)
    for name, app in APPLICATIONS.items():
        own = partial(_engine, None, app, path, batch, expected, folder)
        timings[f"{name}, in-process"] = _timed(events, batch, own)
    with local_session(local_settings()) as spark:
        for name, app in APPLICATIONS.items():
            own = partial(_engine, spark, app, path, batch, expected, folder)
            timings[f"{name}, Spark"] = _timed(events, batch, own)
    return timings


def _timed(events: int, batch: int, way: Way) -> Timing:
    begin, cpu = time.perf_counter(), cpu_seconds()
    reported = way()
    spent = Spent(time.perf_counter() - begin, cpu_seconds() - cpu)
    if isinstance(reported, Spent):
        spent = reported
    whole = events / spent.seconds
    rate = steady(reported, batch) if isinstance(reported, list) else None
    return Timing(whole, events / spent.cpu, rate or whole)


def configured(path: Path, batch: int, folder: Path) -> tuple[RunConfig, ArrowSink]:
    """How the running sum is run, and where its outputs go."""
    out = ArrowSink(folder / "out")
    config = RunConfig(
        folder / "checkpoint",
        {"amounts": ArrowSource(path)},
        {"sums": out},
        batch_messages=batch,
        state_partitions=PARTITIONS,
    )
    return config, out


def prepare(path: Path, events: int, keys: int) -> pa.Array:
    """Write the messages; gives the outputs that they should have."""
    chance = np.random.default_rng(7)
    key = chance.integers(0, keys, events)
    number = chance.integers(0, 100, events)
    name = pc.binary_join_element_wise("key", pa.array(key).cast(pa.string()), "")
    text = pc.binary_join_element_wise(name, pa.array(number).cast(pa.string()), ",")
    table = pa.table({"message": text.cast(pa.binary())})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=1 << 16)
    running = pd.Series(number).groupby(key).cumsum().to_numpy()
    return pc.binary_join_element_wise(name, pa.array(running).cast(pa.string()), " ")


def _engine(
    spark: SparkSession | None,
    app: Application,
    path: Path,
    batch: int,
    expected: pa.Array,
    folder: Path,
) -> list[float]:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        config, out = configured(path, batch, Path(name))
        if spark is None:
            run_in_process(app, config)
        else:
            run(app, spark, config).await_drained()
        check(out.directory, expected)
        return [p.stat().st_mtime for p in (out.directory / "batches").iterdir()]


def check(directory: Path, expected: pa.Array) -> None:
    seen = np.zeros(len(expected), bool)
    for table in read_batches(directory):
        number = pc.utf8_slice_codeunits(table["id"], len("amounts/")).cast(pa.int64())
        place = number.to_numpy()
        if seen[place].any():
            raise WrongResultError("an output is there twice")
        seen[place] = True
        wanted = expected.take(pa.array(place)).cast(pa.binary())
        if not pc.all(pc.equal(table["data"], pa.chunked_array([wanted]))).as_py():
            raise WrongResultError("an output is wrong")
    if not seen.all():
        raise WrongResultError(f"{int((~seen).sum())} outputs are missing")


def _plain_loop(path: Path, expected: pa.Array) -> None:
    everything = MessageRange("amounts", 0, len(expected))
    messages = ArrowSource(path).read(everything, "", ()).to_pylist()
    parse, key, add, line = (
        running_sum.amount.call,
        running_sum.name.call,
        running_sum.add.call,
        running_sum.line.call,
    )
    state: dict[Any, running_sum.Sum] = {}
    outputs = []
    for data in messages:
        message = parse(data)
        own = key(message)
        if own not in state:
            state[own] = running_sum.Sum()
        outputs.append(line(add(message, state[own])))
    if outputs != expected.cast(pa.binary()).to_pylist():
        raise WrongResultError("the plain loop's outputs are wrong")


def bench(full: bool = False, events: int | None = None) -> dict[str, Any]:
    """The figures of every way, beside each of the others that is no part of the engine."""
    count = events or (FULL_EVENTS if full else EVENTS)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for keys in KEYS:
            timings = measure(count, keys, Path(name))
            beside = {w: t for w, t in timings.items() if not w.startswith(tuple(APPLICATIONS))}
            for way, timing in timings.items():
                for unit, rate in (
                    ("events/s", timing.whole),
                    ("events/s steady", timing.steady),
                    ("events/CPU s", timing.per_cpu),
                ):
                    figures[f"{way}, {keys} keys, {unit}"] = {"value": round(rate), "unit": unit}
                if way in beside:
                    continue
                for other, peer in beside.items():
                    figures[f"{way}, {keys} keys, beside {other}"] = {
                        "value": round(timing.per_cpu),
                        "unit": "events/CPU s",
                        "versus": f"{other}: {peer.per_cpu:,.0f}",
                        "ratio": round(timing.per_cpu / peer.per_cpu, 2),
                    }
                    figures[f"{way}, {keys} keys, steady, beside {other}"] = {
                        "value": round(timing.steady),
                        "unit": "events/s",
                        "versus": f"{other}: {peer.steady:,.0f}",
                        "ratio": round(timing.steady / peer.steady, 2),
                    }
    return {"name": "engine", "figures": figures, "environment": environment()}
