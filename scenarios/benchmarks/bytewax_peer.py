"""The running sum in Bytewax, by the engine's own functions and without recovery: in one worker,
several threads, or several processes, of which one reads and hands on by key.

Each process of several is ``python -m bettong.scenarios.benchmarks.bytewax_peer JSON``; Bytewax is
an extra: ``pip install 'bettong[bench]'``.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bettong.engine.sources.base import ArrowSource
from bettong.harness.processes.addresses import held_ports
from bettong.lineage.trace import MessageRange
from bettong.scenarios.applications import running_sum
from bettong.scenarios.benchmarks.errors import WrongResultError
from bettong.scenarios.benchmarks.timing import Spent, cpu_seconds

READ_AT_ONCE = 10_000


def is_there() -> bool:
    """Whether Bytewax is installed."""
    return importlib.util.find_spec("bytewax") is not None


def run(messages: Sequence[bytes], expected: Sequence[bytes], threads: int) -> Spent:
    """In this process; raises WrongResultError."""
    outputs: list[bytes] = []
    spent = _timed(messages, outputs, threads, [], 0)
    if sorted(outputs) != sorted(expected):
        raise WrongResultError("Bytewax' outputs are not the running sums")
    return spent


def run_processes(path: Path, expected: Sequence[bytes], processes: int) -> Spent:
    """In processes of its own, from an Arrow file; raises WrongResultError."""
    with tempfile.TemporaryDirectory() as folder, held_ports(processes) as ports:
        addresses = [f"127.0.0.1:{port}" for port in ports]
        files = [Path(folder) / str(number) for number in range(processes)]
        ready = Path(folder) / "ready"
        started = []
        for number, out in enumerate(files):
            about = {"path": str(path), "addresses": addresses, "number": number}
            about |= {"out": str(out), "ready": str(ready)}
            command = [sys.executable, "-m", __name__, json.dumps(about)]
            started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        codes = [process.wait() for process in started]
        if any(codes):
            raise WrongResultError("a process of Bytewax failed")
        reported = [out.read_bytes().splitlines() for out in files]
    if sorted(line for lines in reported for line in lines[1:]) != sorted(expected):
        raise WrongResultError("Bytewax' outputs are not the running sums")
    spent = [Spent(*json.loads(lines[0])) for lines in reported]
    return Spent(max(s.seconds for s in spent), sum(s.cpu for s in spent))


def _timed(
    messages: Sequence[bytes],
    outputs: list[bytes],
    threads: int,
    addresses: list[str],
    number: int,
) -> Spent:
    from bytewax.testing import cluster_main

    flow = _flow(messages, outputs)
    begin, cpu = time.perf_counter(), cpu_seconds()
    cluster_main(flow, addresses, number, worker_count_per_proc=threads)
    return Spent(time.perf_counter() - begin, cpu_seconds() - cpu)


def _flow(messages: Sequence[bytes], outputs: list[bytes]) -> Any:
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource

    parse, key, line = running_sum.amount.call, running_sum.name.call, running_sum.line.call

    def add(total: int | None, message: tuple[str, int]) -> tuple[int, tuple[str, int]]:
        new = (total or 0) + message[1]
        return new, (message[0], new)

    flow = Dataflow("running_sum")
    read = op.input("read", flow, TestingSource(messages, batch_size=READ_AT_ONCE))
    keyed = op.key_on("key", op.map("parse", read, parse), key)
    summed = op.stateful_map("add", keyed, add)
    lines = op.map("line", summed, lambda pair: line(pair[1]))
    op.output("write", lines, TestingSink(outputs))
    return flow


def main() -> None:
    """One of several processes: writes what it has spent, and then its outputs."""
    about = json.loads(sys.argv[1])
    source = ArrowSource(Path(about["path"]))
    everything = MessageRange("amounts", 0, source.extent(0, 0).end)
    messages = source.read(everything, "", ()).to_pylist()
    outputs: list[bytes] = []
    _begin_together(Path(about["ready"]), about["number"], len(about["addresses"]))
    spent = _timed(messages, outputs, 1, about["addresses"], about["number"])
    lines = [json.dumps(spent).encode(), *outputs]
    Path(about["out"]).write_bytes(b"".join(line + b"\n" for line in lines))


def _begin_together(ready: Path, number: int, processes: int) -> None:
    """Wait until all have read their input, and then for those before this one to listen, since
    Bytewax waits for a second where nobody does."""
    with ready.open("ab") as file:
        file.write(b".")
    while ready.stat().st_size < processes:
        time.sleep(0.01)
    time.sleep(0.2 * number)


if __name__ == "__main__":
    main()
