"""What a batch costs when more and more entities are stored, of which it touches as many as ever.

Each size has a state log that was written beforehand, as one file for each state partition. The
same batches of 20,000 keys then run on it, spread over all entities; every output shows its
entity's earlier value and is checked. Batches are counted per second of CPU, beside the smallest
size; a restart in seconds on the clock, from opening the log to the first batch's end.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.engine.batch.protocol import BatchProtocol, Execute
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.keys import bounds, canonical, hash_bytes
from bettong.engine.sinks.arrow import ArrowSink, read_batches
from bettong.engine.sources.base import ArrowSource
from bettong.engine.state.files import FileEntry, Rows, write_rows
from bettong.engine.state.housekeeping import file_name
from bettong.engine.state.manifest import Manifest, write_manifest
from bettong.engine.state.store import Store
from bettong.lineage.results import environment
from bettong.scenarios.applications import running_sum
from bettong.scenarios.benchmarks.errors import WrongResultError

SIZES = (20_000, 200_000, 1_000_000)
FULL_SIZES = (20_000, 200_000, 1_000_000, 10_000_000)
TOUCHED = 20_000
BATCHES = 8
PARTITIONS = 4


class TimedProtocol(BatchProtocol):
    """Notes of each batch the CPU time that it took and when it ended."""

    def run(self, batch: int, execute: Execute) -> Manifest:
        begin = time.process_time()
        manifest = super().run(batch, execute)
        spent = time.process_time() - begin
        self.settings.options["batches"].append((spent, time.perf_counter()))
        return manifest


def bench(full: bool = False) -> dict[str, Any]:
    """The figures; raises WrongResultError."""
    figures: dict[str, Any] = {}
    smallest = 0.0
    for entities in FULL_SIZES if full else SIZES:
        batch, restart = measure(entities)
        smallest = smallest or batch
        figures[f"a batch at {entities:,} entities"] = {
            "value": round(1000 * batch, 1),
            "unit": "CPU ms",
            "versus": f"{SIZES[0]:,} entities: {1000 * smallest:.1f}",
            "ratio": round(batch / smallest, 2),
        }
        figures[f"restart at {entities:,} entities"] = {"value": round(restart, 2), "unit": "s"}
    return {"name": "state-size", "figures": figures, "environment": environment()}


def measure(entities: int) -> tuple[float, float]:
    """Median CPU seconds of a batch, and seconds of a restart up to its first batch's end."""
    touched = np.arange(TOUCHED) * (entities // TOUCHED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out = ArrowSink(folder / "out")
        batches: list[tuple[float, float]] = []
        config = RunConfig(
            folder / "checkpoint",
            {"amounts": ArrowSource(_messages(folder / "in", touched))},
            {"sums": out},
            batch_messages=TOUCHED,
            state_partitions=PARTITIONS,
            batch_class=TimedProtocol,
            options={"batches": batches},
        )
        _prefill(config.store, entities)
        begin = time.perf_counter()
        run_in_process(running_sum.app, config)
        _check(out.directory, touched)
    spent = [cpu for cpu, _ in batches[1:]]  # the first is the last one before, done again
    return statistics.median(spent[1:]), batches[1][1] - begin


def _key(number: int) -> str:
    return f"key{number}"


def _messages(path: Path, touched: Sequence[int] | np.ndarray[Any, Any]) -> Path:
    texts = [f"{_key(n)},1".encode() for n in touched]
    table = pa.table({"message": pa.array(texts * BATCHES, pa.binary())})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=1 << 16)
    return path


def _prefill(store: Store, entities: int) -> None:
    """Write the state after two batches that read nothing: entity n has the total n."""
    keys = np.array([canonical(_key(n)) for n in range(entities)], object)
    hashes = np.fromiter(map(hash_bytes, keys), np.uint64, entities)
    order = np.argsort(hashes)
    files: list[FileEntry] = []
    state = running_sum.add.state
    for partition in range(PARTITIONS):
        low, high = bounds(partition, PARTITIONS)
        a, b = np.searchsorted(hashes[order], np.array([low, high - 1], np.uint64), "left")
        own = order[a : b + (partition == PARTITIONS - 1)]
        column = pa.StructArray.from_arrays([pa.array(own)], fields=list(state.codec.type))
        rows = Rows(hashes[own], pa.array(keys[own].tolist()), column, state.codec.version)
        name = file_name(state.name, 0, 0, f"{partition:04d}-base")
        files.append(write_rows(store, name, state.name, rows, tier=9))
    for batch in (0, 1):
        write_manifest(store, Manifest(running_sum.app.name, batch, 0, {}, tuple(files)))


def _check(directory: Path, touched: np.ndarray[Any, Any]) -> None:
    seen = [row for table in read_batches(directory) for row in table["data"].to_pylist()]
    expected = [
        f"{_key(n)} {n + times}".encode() for times in range(1, BATCHES + 1) for n in touched
    ]
    if sorted(seen) != sorted(expected):
        raise WrongResultError("the outputs do not show the entities that were there")
