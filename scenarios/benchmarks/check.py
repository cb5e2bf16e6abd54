"""Measures ``bettong check``: losses, duplicates and order per key, against plain ways of writing
the same check.

Each way runs in a process of its own on one core, on the same Parquet files with one duplicate
planted among them, and has to find exactly that one. Seconds are CPU time of the check, so that
what else the machine does counts little, without imports and the start of a Spark session.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bettong.lineage.errors import BettongError
from bettong.lineage.results import environment

KEYS = 100_000
CHUNK = 1 << 20
LANES = 16
COUNTS = """
with seen as (select id, count(*) times, min(place) seen_at from o group by id),
     joined as (select e.id, e.key, e.place rank, times, seen_at
              from e left join seen on e.id = seen.id),
     steps as (select rank, lag(rank) over (partition by key order by seen_at) before
               from joined where times is not null)
select (select count(*) from joined where times is null) lost,
       (select count(*) from joined where times > 1) duplicates,
       (select count(*) from steps where before > rank) reordered
"""
"""The plain way in SQL, of the tables ``e`` and ``o`` with ``id``, ``key`` and ``place``."""
PLAIN = {"pandas": "pandas", "duckdb": "duckdb", "spark": "pyspark"}
"""Ways of writing the same check -> the library that each takes."""
FOUND = {"lost": 0, "duplicates": 1, "reordered": 0}
SCHEMA = pa.schema({"id": pa.string(), "key": pa.string()})


def bench(events: int = 10_000_000, ways: Sequence[str] | None = None) -> dict[str, Any]:
    """Figures: records a second (of the observed history), memory, and ratios to each way.

    Args:
        events: records of the expected history.
        ways: the plain ways; all whose library is installed if not given.

    Raises BettongError when a way does not find the planted duplicate.
    """
    records = events
    if ways is None:
        ways = [way for way, library in PLAIN.items() if find_spec(library)]
    with tempfile.TemporaryDirectory(prefix="bettong-bench-") as name:
        make_histories(Path(name), records)
        ours = _measured("bettong", Path(name))
        others = {way: _measured(way, Path(name), ours["gib"]) for way in ways}
    rate = records / ours["seconds"]
    figures: dict[str, Any] = {
        "check": {"value": round(rate), "unit": "records/s of CPU"},
        "check, memory": {"value": round(ours["gib"], 2), "unit": "GiB"},
    }
    for way, reported in others.items():
        figures[f"check versus {way}"] = {
            "value": round(records / reported["seconds"]),
            "unit": "records/s of CPU",
            "versus": f"plain {way}",
            "ratio": round(reported["seconds"] / ours["seconds"], 2),
        }
        figures[f"memory versus {way}"] = {
            "value": round(reported["gib"], 2),
            "unit": "GiB",
            "versus": f"plain {way}",
            "ratio": round(reported["gib"] / ours["gib"], 2),
        }
    size = {"records": f"{records:,}", "keys": f"{KEYS:,}", "cores": "1"}
    return {"name": "check", "figures": figures, "environment": {**environment(), **size}}


def make_histories(directory: Path, records: int) -> None:
    """``expected.parquet`` and ``observed.parquet``: the second with another interleaving of the
    keys and one record twice."""
    random = np.random.default_rng(1)
    names = pa.array([f"customer-{i:06d}" for i in range(KEYS)])
    with (
        pq.ParquetWriter(directory / "expected.parquet", SCHEMA) as expected,
        pq.ParquetWriter(directory / "observed.parquet", SCHEMA) as observed,
    ):
        for start in range(0, records, CHUNK):
            size = min(CHUNK, records - start)
            numbers, keys = np.arange(start, start + size), random.integers(0, KEYS, size)
            expected.write_table(_table(names, numbers, keys))
            link_pairs = np.lexsort((np.arange(size), keys % LANES, np.arange(size) >> 12))
            observed.write_table(_table(names, numbers[link_pairs], keys[link_pairs]))
            if start == 0:
                again = link_pairs[size // 2 : size // 2 + 1]
                observed.write_table(_table(names, numbers[again], keys[again]))


def _table(names: pa.Array, numbers: Any, keys: Any) -> pa.Table:
    ids = pc.binary_join_element_wise("orders", pa.array(numbers).cast(pa.string()), "/")
    return pa.table({"id": ids, "key": names.take(pa.array(keys))}, schema=SCHEMA)


def _measured(way: str, directory: Path, gib: float = 0.0) -> dict[str, Any]:
    command = [sys.executable, "-m", "bettong.scenarios.benchmarks.check", way, str(directory)]
    command.append(str(gib))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BettongError(f"bench check: {way} failed:\n{done.stderr[-2000:]}")
    reported: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if reported["found"] != FOUND:
        raise BettongError(f"bench check: {way} found {reported['found']}, planted was {FOUND}")
    return reported


def by_bettong(expected: Path, observed: Path, gib: float) -> Callable[[], dict[str, int]]:
    from bettong.harness.histories import Columns, StoredCheck, StoredHistory

    pa.set_cpu_count(1)

    def check() -> dict[str, int]:
        left, right = StoredHistory.at(expected, "expected"), StoredHistory.at(observed, "observed")
        counts = StoredCheck(left, right, Columns()).judge().counts
        return {
            "lost": counts.get("Loss", 0),
            "duplicates": counts.get("Duplicate", 0),
            "reordered": counts.get("Reorder", 0),
        }

    return check


def by_pandas(expected: Path, observed: Path, gib: float) -> Callable[[], dict[str, int]]:
    import pandas as pd

    pa.set_cpu_count(1)

    def check() -> dict[str, int]:
        e, o = pd.read_parquet(expected), pd.read_parquet(observed)
        e["rank"] = np.arange(len(e))
        first = o.drop_duplicates("id").merge(e[["id", "rank"]], on="id")
        before = first.groupby("key")["rank"].shift()
        return {
            "lost": int((~e["id"].isin(o["id"])).sum()),
            "duplicates": int(o["id"].duplicated().sum()),
            "reordered": int((before > first["rank"]).sum()),
        }

    return check


def by_spark(expected: Path, observed: Path, gib: float) -> Callable[[], dict[str, int]]:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    spark = (
        builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "16")
        .getOrCreate()
    )
    spark.range(1).count()

    def check() -> dict[str, int]:
        for name, path in (("e", expected), ("o", observed)):
            frame = spark.read.parquet(str(path)).selectExpr("*", "_metadata.row_index as place")
            frame.createOrReplaceTempView(name)
        row = spark.sql(COUNTS).collect()[0]
        return {name: int(row[name]) for name in FOUND}

    return check


def by_duckdb(expected: Path, observed: Path, gib: float) -> Callable[[], dict[str, int]]:
    """Within the memory that our own check took."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("set threads = 1")
    connection.execute(f"set memory_limit = '{gib * 1024:.0f}MiB'")
    connection.execute(f"set temp_directory = '{expected.parent / 'duckdb'}'")

    def check() -> dict[str, int]:
        for name, path in (("e", expected), ("o", observed)):
            rows = connection.read_parquet(str(path), file_row_number=True)
            rows.project("id, key, file_row_number as place").create_view(name)
        row = connection.execute(COUNTS).fetchone() or ()
        return dict(zip(FOUND, map(int, row), strict=True))

    return check


WAYS: Mapping[str, Callable[[Path, Path, float], Callable[[], dict[str, int]]]] = {
    "bettong": by_bettong,
    "pandas": by_pandas,
    "duckdb": by_duckdb,
    "spark": by_spark,
}


def main(way: str, directory: str, gib: str) -> None:
    """Run one way on one core and print what it took; ``gib``: what ours took of memory."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    folder = Path(directory)
    check = WAYS[way](folder / "expected.parquet", folder / "observed.parquet", float(gib))
    begin = _cpu_seconds()
    found = check()
    seconds = _cpu_seconds() - begin
    print(json.dumps({"seconds": seconds, "gib": _peak_gib(), "found": found}))


def _cpu_seconds() -> float:
    """CPU time of this process and of Spark's JVM, its child."""
    children = psutil.Process().children(recursive=True)
    return time.process_time() + sum(sum(child.cpu_times()[:2]) for child in children)


def _peak_gib() -> float:
    """Peak memory of this process, and what Spark's JVM, its child, has now."""
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "darwin":
        kib //= 1024
    children = sum(child.memory_info().rss for child in psutil.Process().children(recursive=True))
    return kib / 2**20 + float(children) / 2**30


if __name__ == "__main__":
    main(*sys.argv[1:])
