"""How much slower or faster the engine's hot paths have become between two commits.

In a clone: ``python -m bettong.scenarios.benchmarks.commits BEFORE [AFTER] [--rounds N]`` prints
``{"name", "figures"}``: for each path the CPU seconds of the best of AFTER's rounds beside
BEFORE's. The rounds of both alternate, each in a process of its own, so that what else the machine
does meets both; what they have computed must be the same.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bettong.scenarios.benchmarks.errors import WrongResultError

ROOMS = ("engine", "harness", "lineage", "reports", "scenarios")
_PRELUDE = """
import hashlib, json, sys, tempfile, threading, time
from pathlib import Path
folder = Path(tempfile.mkdtemp(dir=sys.argv[1]))
"""
_EPILOGUE = """
print(json.dumps([seconds, hashlib.sha256(repr(seen).encode()).hexdigest()]))
"""
_BATCHES = """
import pyarrow as pa
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.sinks.arrow import ArrowSink, read_batches
from bettong.engine.sources.base import ArrowSource
from bettong.scenarios.applications.running_sum import app, messages
table = pa.table({"message": pa.array(messages(EVENTS, keys=20_000)["amounts"], pa.binary())})
with pa.ipc.new_file(str(folder / "in.arrow"), table.schema) as writer:
    writer.write_table(table, max_chunksize=1 << 16)
out = ArrowSink(folder / "out")
config = RunConfig(folder / "checkpoint", {"amounts": ArrowSource(folder / "in.arrow")},
                   {"sums": out}, batch_messages=BATCH, state_partitions=4)
begin = time.process_time()
run_in_process(app, config)
seconds = time.process_time() - begin
seen = sorted((i, d) for t in read_batches(out.directory)
              for i, d in zip(t["id"].to_pylist(), t["data"].to_pylist()))
"""
PATHS = {
    "batches of 250,000": _BATCHES.replace("EVENTS", "1_000_000").replace("BATCH", "250_000"),
    "batches of 1,000": _BATCHES.replace("EVENTS", "100_000").replace("BATCH", "1_000"),
    "idle steps": """
from bettong.engine import steps
from bettong.engine.steps import step
steps.install(steps.Instrumentation())
begin = time.process_time()
for _ in range(1_000_000):
    with step("batch=1/sink.commit"):
        pass
seconds, seen = time.process_time() - begin, ()
""",
    "gateway and sender, frames of 100": """
import resource, subprocess
def child(module, *words):
    return subprocess.Popen([sys.executable, "-m", f"bettong.engine.ingest.{module}", *words],
                            stdout=subprocess.PIPE, text=True)
(folder / "in").write_text("".join(f"message {n:012}\\n" for n in range(2_000_000)))
gateway = child("gateway", "--listen", "127.0.0.1:0", "--dir", str(folder / "gateway"))
address = json.loads(gateway.stdout.readline())["listening"]
sender = child("sender", "--gateway", address, "--stream", "lines", "--input", str(folder / "in"),
               "--frame", "100", "--window", "8")
assert sender.wait() == 0
gateway.terminate()
gateway.wait()
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds = spent.ru_utime + spent.ru_stime
segments = sorted((folder / "gateway").rglob("segment-*.log"))
seen = sum(path.read_bytes().count(b"message ") for path in segments)
""",
}
"""Each sets ``seconds`` and ``seen``, by names that both commits have."""


def unpack(commit: str, folder: Path) -> Path:
    """The commit's rooms as a package, in a folder that can be imported from."""
    home = folder / commit
    content = subprocess.check_output(["git", "archive", commit, *ROOMS])
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(home / "bettong", filter="data")
    return home


def once(home: Path, code: str, scratch: Path) -> tuple[float, str]:
    """CPU seconds of one round, and a digest of what came out."""
    printed = subprocess.check_output(
        [sys.executable, "-c", _PRELUDE + code + _EPILOGUE, str(scratch)],
        cwd=scratch,
        env={**os.environ, "PYTHONPATH": str(home), "PYTHONHASHSEED": "0"},
        text=True,
    )
    seconds, digest = json.loads(printed.splitlines()[-1])
    return float(seconds), str(digest)


def measure(before: str, after: str, rounds: int, paths: Sequence[str]) -> dict[str, Any]:
    """The figure of each path. Raises WrongResultError."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="bettong-bench-") as name:
        homes = [unpack(commit, Path(name)) for commit in (before, after)]
        for path in paths:
            taken: tuple[list[float], list[float]] = ([], [])
            digests = set()
            for number in range(2 * rounds):
                which = (number + 1) // 2 % 2  # before, after, after, before, …
                with tempfile.TemporaryDirectory(dir=name) as scratch:
                    seconds, digest = once(homes[which], PATHS[path], Path(scratch))
                taken[which].append(seconds)
                digests.add(digest)
            if len(digests) != 1:
                raise WrongResultError(f"{path}: the two commits have computed different things")
            old, new = min(taken[0]), min(taken[1])
            figures[path] = {
                "value": round(new, 4),
                "unit": "CPU s",
                "versus": f"{before}: {old:.4f}",
                "ratio": round(new / old, 4),
                "ratio of medians": round(
                    statistics.median(taken[1]) / statistics.median(taken[0]), 4
                ),
            }
    return figures


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default="HEAD")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--path", choices=PATHS, action="append", help="only this one (repeat)")
    options = parser.parse_args()
    before, after = (
        subprocess.check_output(["git", "rev-parse", "--short", commit], text=True).strip()
        for commit in (options.before, options.after)
    )
    figures = measure(before, after, options.rounds, options.path or list(PATHS))
    print(json.dumps({"name": f"commits {before} {after}", "figures": figures}, indent=1))


if __name__ == "__main__":
    main()
