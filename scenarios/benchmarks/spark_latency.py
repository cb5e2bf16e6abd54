"""How long a message takes through everything: sender, gateway, Spark, receiver, a reader's eyes.

Messages are due at a steady rate, whatever becomes of those before them, and a message is late
until a reader of the receiver's file can see its output (no coordinated omission). Recovery is on;
every output is checked. How many messages make a batch is found first: as many as come while one
is done, and a little more, or they would queue up. ``plain`` is Spark alone at the same rate: a
query that counts rows of its own rate source, so what a micro-batch itself costs.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bettong.engine.config import RunConfig
from bettong.engine.endpoints import GatewaySource, TcpSink
from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.sender import Pace, Sender
from bettong.engine.metrics.histogram import Histogram
from bettong.engine.net.doors import Address
from bettong.engine.spark.runner import run
from bettong.harness.spark.user_session import session
from bettong.lineage.results import environment
from bettong.scenarios.applications import running_sum
from bettong.scenarios.benchmarks.errors import WrongResultError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

RATE = 10_000
PROBE = 1_000
PROBES = 25
ROOM = 1.2
FRAME = 20
SECONDS = 15
FULL_SECONDS = 60
WARM_S = 6
KEYS = 1_000
SERVERS = {
    "gateway": "bettong.engine.ingest.gateway",
    "receiver": "bettong.engine.receiver.server",
}


def bench(full: bool = False) -> dict[str, Any]:
    """The figures; raises WrongResultError."""
    count = RATE * (FULL_SECONDS if full else SECONDS)
    with (
        tempfile.TemporaryDirectory() as name,
        session("bettong-latency", "local[2]", Path(name) / "spark.log") as spark,
    ):
        folder = Path(name)
        _, probed = _measured(spark, folder / "probe", PROBES * PROBE, PROBE, 1_000_000)
        size = math.ceil(ROOM * probed * RATE / 100) * 100
        latencies, batch = _measured(spark, folder / "run", count, size, RATE)
        floor = _floor(spark, folder)
    figures: dict[str, Any] = {
        "plain, batch, p50": {"value": round(floor * 1000, 1), "unit": "ms"},
        f"batch of {size}, p50": {
            "value": round(batch * 1000, 1),
            "unit": "ms",
            "versus": f"until the next is full: {1000 * size / RATE:.0f}",
            "ratio": round(batch * RATE / size, 2),
        },
    }
    for part in (0.5, 0.99, 0.999):
        value = latencies.quantile(part) / 1e6
        figures[f"sender to reader, p{100 * part:g}"] = {
            "value": round(value, 1),
            "unit": "ms",
            "versus": f"a batch of Spark alone: {1000 * floor:.1f}",
            "ratio": round(value / 1000 / floor, 2),
        }
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


def _measured(
    spark: SparkSession, folder: Path, count: int, batch: int, rate: int
) -> tuple[Histogram, float]:
    """The latencies of all messages but those of the first seconds, and a batch's median
    seconds.

    Args:
        count: how many messages are sent.
        batch: how many make a batch.
        rate: how many are sent in a second.
    """
    with _servers(folder) as addresses:
        return _measured_with(spark, folder, addresses, count, batch, rate)


def _measured_with(
    spark: SparkSession,
    folder: Path,
    addresses: dict[str, Address],
    count: int,
    batch: int,
    rate: int,
) -> tuple[Histogram, float]:
    messages = running_sum.messages(count, keys=KEYS)["amounts"]
    config = RunConfig(
        folder / "checkpoint",
        {"amounts": GatewaySource(addresses["gateway"], "amounts")},
        {"sums": TcpSink(addresses["receiver"], "running_sum")},
        batch_messages=batch,
        state_partitions=2,
        read_slices=1,
    )
    running = run(running_sum.app, spark, config)
    begin = time.perf_counter_ns() + 2_000_000_000
    sender = Sender(
        addresses["gateway"],
        "amounts",
        _on_time(messages, begin, rate),
        AckedFile(None, "amounts"),
        pace=Pace(FRAME, 50),
    )
    sending = threading.Thread(target=sender.run)
    sending.start()
    done = np.zeros(count, np.int64)
    drained = threading.Event()
    reading = threading.Thread(
        target=_read,
        args=(folder / "receiver" / "running_sum" / "output.jsonl", messages, done, drained),
    )
    reading.start()
    try:
        running.await_drained()
    finally:
        drained.set()
        sending.join()
        reading.join()
    if not done.all():
        raise WrongResultError(f"{int((done == 0).sum())} outputs are missing or wrong")
    due = begin + np.arange(count) * (1_000_000_000 // rate)
    latencies = Histogram()
    latencies.add_all(np.maximum(done - due, 0)[WARM_S * rate :])
    return latencies, _median(running.query)


def _on_time(messages: list[bytes], begin: int, rate: int) -> Iterator[bytes]:
    """Each message when it is due."""
    gap = 1_000_000_000 // rate
    for n, message in enumerate(messages):
        wait = begin + n * gap - time.perf_counter_ns()
        if wait > 0:
            time.sleep(wait / 1e9)
        yield message


def _read(path: Path, messages: list[bytes], done: Any, drained: threading.Event) -> None:
    """Note when each output, if it is right, can be seen first."""
    totals: dict[bytes, int] = {}
    expected = []
    for message in messages:
        key, _, number = message.partition(b",")
        totals[key] = totals.get(key, 0) + int(number)
        expected.append(f"{key.decode()} {totals[key]}")
    while not path.exists() and not drained.is_set():
        time.sleep(0.01)
    rest = b""
    with path.open("rb") as file:
        while True:
            last = drained.is_set()
            new = file.read()
            now = time.perf_counter_ns()
            *lines, rest = (rest + new).split(b"\n")
            for line in lines:
                row = json.loads(line)
                n = int(row["id"].removeprefix("amounts/"))
                if row["data"] == expected[n] and not done[n]:
                    done[n] = now
            if last and not new:
                return
            time.sleep(0.002)


def _floor(spark: SparkSession, folder: Path) -> float:
    """Median seconds of a batch of Spark alone."""
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
        return _median(query)
    finally:
        query.stop()


def _median(query: StreamingQuery) -> float:
    """Of the later batches' seconds."""
    reported = [json.loads(p.json) for p in query.recentProgress]
    took = [p["durationMs"]["triggerExecution"] for p in reported if p["numInputRows"]]
    return float(np.median(took[len(took) // 2 :])) / 1000
