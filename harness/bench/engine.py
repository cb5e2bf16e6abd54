"""The engine's throughput: a keyed running sum, whole runs on prepared input, recovery on.

Each way of doing it reads the same Arrow file of messages ``key,number``, and its outputs are
checked one by one. ``plain`` is the same two functions in a Python loop over a dict, with nothing
that a crash would leave: what the language itself costs on one core. ``in-process`` is the engine
without Spark, everything durable. These two are told per second of CPU, so that what else the
machine does counts little; Spark's are wall time.
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
from bettong.engine.outputs.arrow import ArrowSink, read_batches
from bettong.engine.sources import ArrowSource
from bettong.engine.spark.runner import run
from bettong.harness.bench.errors import WrongResultError
from bettong.harness.bench.session import local_session
from bettong.lineage.results import environment
from bettong.lineage.trace import MessageRange
from bettong.scenarios.applications import running_sum, running_sum_arrays

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4
EVENTS = 4_000_000
BATCH = 250_000
KEYS = (20_000, 26)
APPLICATIONS = {"messages": running_sum.app, "arrays": running_sum_arrays.app}


@dataclass(frozen=True)
class Timing:
    """One way of doing it.

    Attributes:
        whole: events a second over the whole run, without the session's start.
        steady: events a second between the first batch's end and the last one's.
    """

    whole: float
    steady: float


def measure(
    spark: SparkSession, events: int, keys: int, batch: int, folder: Path
) -> dict[str, Timing]:
    """Run every way once; raises WrongResultError when outputs are missing or wrong."""
    path = folder / f"{keys}.arrow"
    expected = _prepare(path, events, keys)
    timings = {}
    for way, app in APPLICATIONS.items():
        timings[way] = _on_spark(spark, app, path, expected, batch, folder)
    timings |= measure_alone(path, expected, batch, folder)
    return timings


def measure_alone(path: Path, expected: pa.Array, batch: int, folder: Path) -> dict[str, Timing]:
    """The ways without Spark, per second of CPU."""
    timings = {"plain": _per_cpu_second(len(expected), lambda: _plain_loop(path, expected))}
    for way, app in APPLICATIONS.items():
        with tempfile.TemporaryDirectory(dir=folder) as name:
            config, out = _config(path, batch, Path(name))
            work = partial(run_in_process, app, config)
            timings[f"{way} in-process"] = _per_cpu_second(len(expected), work)
            _check(out.directory, expected)
    return timings


def _per_cpu_second(events: int, action: Callable[[], object]) -> Timing:
    begin = time.process_time()
    action()
    rate = events / (time.process_time() - begin)
    return Timing(rate, rate)


def _config(path: Path, batch: int, folder: Path) -> tuple[RunConfig, ArrowSink]:
    out = ArrowSink(folder / "out")
    config = RunConfig(
        folder / "checkpoint",
        {"amounts": ArrowSource(path)},
        {"sums": out},
        batch_messages=batch,
        state_partitions=PARTITIONS,
    )
    return config, out


def _prepare(path: Path, events: int, keys: int) -> pa.Array:
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


def _on_spark(
    spark: SparkSession,
    app: Application,
    path: Path,
    expected: pa.Array,
    batch: int,
    folder: Path,
) -> Timing:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        config, out = _config(path, batch, Path(name))
        begin = time.time()
        run(app, spark, config).await_drained()
        end = time.time()
        notes = sorted((out.directory / "batches").iterdir())
        done = [note.stat().st_mtime for note in notes]
        _check(out.directory, expected)
    count = len(expected)
    steady = (count - batch) / (done[-1] - done[0]) if len(done) > 1 else count / (end - begin)
    return Timing(count / (end - begin), steady)


def _check(directory: Path, expected: pa.Array) -> None:
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


def bench() -> dict[str, Any]:
    """The figures, beside the plain loop on one core."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name, local_session() as spark:
        for keys in KEYS:
            timings = measure(spark, EVENTS, keys, BATCH, Path(name))
            plain = timings["plain"].steady
            for way in APPLICATIONS:
                rates = {
                    f"{way} on Spark, {keys} keys, whole": timings[way].whole,
                    f"{way} on Spark, {keys} keys, steady": timings[way].steady,
                    f"{way} in-process, {keys} keys": timings[f"{way} in-process"].steady,
                }
                for figure, rate in rates.items():
                    figures[figure] = {
                        "value": round(rate),
                        "unit": "events/s",
                        "versus": f"plain loop: {plain:,.0f}",
                        "ratio": round(rate / plain, 2),
                    }
    return {"name": "engine", "figures": figures, "environment": environment()}
