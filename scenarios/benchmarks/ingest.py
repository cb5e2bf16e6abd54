"""How fast messages come in and rows go out, against a plain socket and a plain file; every
message and row that was sent is compared with what was kept."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bettong.engine.address import Address
from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.client import RangeClient
from bettong.engine.ingest.sender import Pace, Sender, read_lines
from bettong.engine.receiver.client import ReceiverClient
from bettong.engine.receiver.rows import Row
from bettong.lineage.results import environment
from bettong.scenarios.benchmarks.errors import WrongResultError

BATCH = 100_000


def bench(events: int = 2_000_000) -> dict[str, Any]:
    """Figures: messages and rows a second, and ratios to a plain socket into a file.

    Raises WrongResultError when something else comes out than was sent.
    """
    with tempfile.TemporaryDirectory(prefix="bettong-bench-") as home:
        figures = _measure(events, Path(home))
    size = {"messages": f"{events:,}"}
    return {"name": "ingest", "figures": figures, "environment": {**environment(), **size}}


def _seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def _server(module: str, directory: Path) -> tuple[subprocess.Popen[bytes], Address]:
    process = subprocess.Popen(
        [sys.executable, "-m", module, "--listen", "127.0.0.1:0", "--dir", str(directory)],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    return process, Address.parse(json.loads(process.stdout.readline())["listening"])


def _plain_copy(source: Path, target: Path) -> None:
    """The file through one socket into another file, synced once: nothing is acknowledged,
    numbered or checked."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def take() -> None:
            sock, _ = listener.accept()
            with sock, target.open("wb") as out:
                while data := sock.recv(1 << 18):
                    out.write(data)
                out.flush()
                os.fsync(out.fileno())

        taking = threading.Thread(target=take)
        taking.start()
        with socket.create_connection(listener.getsockname()) as sock, source.open("rb") as file:
            sock.sendfile(file)
        taking.join()


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _expect(right: bool, what: str) -> None:
    if not right:
        raise WrongResultError(f"bench ingest: {what} is not what was sent")


def _measure(count: int, home: Path) -> dict[str, dict[str, Any]]:
    source = home / "input.txt"
    with source.open("wb") as file:
        for n in range(count):
            file.write(b"message %012d\n" % n)
    copied = _seconds(lambda: _plain_copy(source, home / "copy.txt"))
    _expect(_digest(source) == _digest(home / "copy.txt"), "the copy")
    figures: dict[str, dict[str, Any]] = {}

    def note(name: str, value: float, versus: str, other: float) -> None:
        figures[name] = {
            "value": round(value),
            "unit": "1/s",
            "versus": versus,
            "ratio": round(value / other, 3),
        }

    plain = count / copied
    gateway, address = _server("bettong.engine.ingest.gateway", home / "gateway")
    try:
        for frame, window in ((10_000, 4), (1_000, 16)):
            stream = f"frames-of-{frame}"
            sender = Sender(
                address,
                stream,
                read_lines(source),
                AckedFile(None, stream),
                pace=Pace(frame, window),
            )
            took = _seconds(sender.run)
            note(f"journal, {stream}", count / took, "a plain socket into a file", plain)
            check = hashlib.sha256()
            client = RangeClient(address, stream)

            def read_all(client: RangeClient = client) -> None:
                for start in range(0, count, BATCH):
                    for block in client.read(start, min(count, start + BATCH)):
                        block.to_arrow()

            took = _seconds(read_all)
            note(f"Arrow ranges, {stream}", count / took, "a plain socket into a file", plain)
            for start in range(0, count, BATCH):
                for block in client.read(start, min(count, start + BATCH)):
                    check.update(b"".join(p + b"\n" for p in block.payloads()))
            _expect(check.digest() == _digest(source), stream)
    finally:
        gateway.kill()
    receiver, address = _server("bettong.engine.receiver.server", home / "receiver")
    try:
        rows = [Row(f"lines/{n}.0", f"key{n % 1000}", b"value %d" % n) for n in range(BATCH)]
        batches = max(1, count // BATCH)

        def write_all() -> None:
            client = ReceiverClient(address, "app", 1)
            client.open()
            for batch in range(batches):
                client.prepare(batch, 0, 0, rows)
                client.commit(batch, {0: 0})

        took = _seconds(write_all)
        note("rows committed", batches * BATCH / took, "a plain socket into a file", plain)
        with (home / "receiver" / "app" / "output.jsonl").open() as output:
            for batch in range(batches):
                for row in rows:
                    found = json.loads(output.readline())
                    _expect((found["id"], found["batch"]) == (row.id, batch), row.id)
            _expect(not output.read(1), "the end of the output")
    finally:
        receiver.kill()
    return figures
