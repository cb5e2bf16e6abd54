"""Throughput by the number of workers, each on a machine of its own with one core.

The keyed running sum on a Spark standalone cluster in network namespaces, with one, two and three
workers; state in a folder that all share, and in a simulated S3 (moto, a process that is as slow
as Python is). Every output is checked. Rates are steady ones, without the first batches.

What one machine has more or less of: a batch's tasks are spread over the workers, everything else
is the driver's, one after the other. So beside the rate stands the driver's own CPU for a batch,
which no worker takes away: with so many workers that tasks take no time it is what is left.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from bettong.engine.sinks.files import read_rows
from bettong.engine.state.manifest import FOLDER
from bettong.lineage.results import environment
from bettong.scenarios.benchmarks.engine import prepare
from bettong.scenarios.benchmarks.errors import WrongResultError
from bettong.scenarios.benchmarks.machines import Machines
from bettong.scenarios.benchmarks.spark_machines import DRIVER, SparkMachines
from bettong.scenarios.benchmarks.timing import WARM

EVENTS = 1_500_000
BATCH = 100_000
KEYS = 20_000
PARTITIONS = 6
MOST_WORKERS = 3
_APPLICATION = "bettong.scenarios.applications.running_sum:app"


@dataclass(frozen=True)
class Steady:
    """What the batches after the first took.

    Attributes:
        rate: events a second.
        driver, workers: CPU seconds for a million events.
        manifest: bytes of the last batch's manifest; 0 where the state is in a bucket.
    """

    rate: float
    driver: float
    workers: float
    manifest: int


def bench(events: int | None = None) -> dict[str, Any]:
    """The figures by number of workers; raises WrongResultError, and UsageError where machines
    cannot be made."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = folder / "amounts.txt"
        expected = _written(lines, events or EVENTS)
        for store in ("folder", "S3"):
            seen = {
                workers: _measured(folder / f"{store}-{workers}", lines, expected, workers, store)
                for workers in range(1, MOST_WORKERS + 1)
            }
            for workers, steady in seen.items():
                figures |= _figures(f"{workers} workers, state in {store}", steady, seen[1])
    return {"name": "workers", "figures": figures, "environment": environment()}


def _figures(way: str, steady: Steady, one: Steady) -> Mapping[str, Any]:
    return {
        way: {
            "value": round(steady.rate),
            "unit": "events/s",
            "versus": f"1 worker: {one.rate:,.0f}",
            "ratio": round(steady.rate / one.rate, 2),
        },
        f"{way}, driver": {"value": round(steady.driver, 2), "unit": "CPU s/M events"},
        f"{way}, workers": {"value": round(steady.workers, 2), "unit": "CPU s/M events"},
        f"{way}, manifest": {"value": steady.manifest, "unit": "bytes"},
    }


def _written(lines: Path, events: int) -> list[bytes]:
    """Write the messages as lines; the outputs that they should have."""
    arrow = lines.with_suffix(".arrow")
    expected = prepare(arrow, events, KEYS)
    with pa.ipc.open_file(str(arrow)) as reader, lines.open("wb") as file:
        for message in reader.read_all()["message"].to_pylist():
            file.write(message + b"\n")
    outputs: list[bytes] = expected.cast(pa.binary()).to_pylist()
    return outputs


def _measured(folder: Path, lines: Path, expected: list[bytes], workers: int, store: str) -> Steady:
    folder.mkdir()
    out, checkpoint = folder / "out", folder / "checkpoint"
    names = [f"w{n}" for n in range(1, workers + 1)]
    with Machines(folder) as machines:
        cluster = SparkMachines(machines, folder)
        state = ["--state", cluster.serve_s3()] if store == "S3" else []
        for name in names:
            cluster.join(name)
        driver = cluster.start(
            _APPLICATION,
            *("--source", f"amounts={lines}", "--sink", f"sums={out}"),
            *("--checkpoint", str(checkpoint), "--partitions", str(PARTITIONS)),
            *("--batch", str(BATCH), "--wait", "never", *state),
        )

        def spent() -> tuple[float, float]:
            own = machines.cpu_seconds(DRIVER)
            return own, sum(machines.cpu_seconds(name) for name in names)

        def done(batches: int) -> bool:
            return len(list(out.glob("batch-*.jsonl"))) >= batches

        last = len(expected) // BATCH - 1
        cluster.until(lambda: done(WARM), driver)
        began, before = time.perf_counter(), spent()
        cluster.until(lambda: done(last), driver)
        took, after = time.perf_counter() - began, spent()
        if driver.wait(300):
            raise WrongResultError(f"the run failed: {machines.log(DRIVER).read_text()[-500:]}")
    _check(out, expected)
    counted = (last - WARM) * BATCH
    own, theirs = ((b - a) * 1e6 / counted for a, b in zip(before, after, strict=True))
    manifests = sorted((checkpoint / "state" / FOLDER).glob("*.json"))
    size = manifests[-1].stat().st_size if manifests else 0
    return Steady(counted / took, own, theirs, size)


def _check(out: Path, expected: list[bytes]) -> None:
    seen = 0
    for row in read_rows(out):
        number = int(str(row["id"]).removeprefix("amounts/").partition(".")[0])
        if row["data"].encode() != expected[number]:
            raise WrongResultError(f"the output {row['id']} is wrong")
        seen += 1
    if seen != len(expected):
        raise WrongResultError(f"{seen} outputs of {len(expected)} messages")
