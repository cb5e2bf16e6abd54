"""What a link costs: round trips and bulk bytes through the embedded Toxiproxy, the real one and
the recording relay, against the same client and server without anything between.

Every byte that comes back is compared. The real server is measured where ``toxiproxy-server`` is
on PATH. Ways are measured in turns, several times; figures are medians, and ratios to ``direct``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from bettong.engine.address import Address
from bettong.harness.toxiproxy import Proxy, ToxiproxyServer
from bettong.harness.wire import WireRecorder
from bettong.lineage.results import environment
from bettong.scenarios.benchmarks.errors import WrongResultError

REPEATS = 5
MESSAGE = 100
ECHO = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
def echo(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := connection.recv(1 << 18):
        connection.sendall(data)
while True:
    threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()
"""


def bench(events: int = 3000, megabytes: int = 32) -> dict[str, Any]:
    """Figures: round trips and megabytes a second of each way, and ratios to ``direct``.

    Args:
        events: round trips.
        megabytes: bulk bytes.

    Raises WrongResultError when other bytes come back.
    """
    with contextlib.ExitStack() as stack:
        ways = _ways(stack)
        trips = _measured(ways, lambda address: _round_trips(address, events))
        whole = _measured(ways, lambda address: _bulk(address, megabytes))
    found = {**_figures("round trips", "1/s", trips), **_figures("bulk", "MB/s", whole)}
    return {"name": "proxies", "figures": found, "environment": environment()}


def _ways(stack: contextlib.ExitStack) -> dict[str, Address]:
    """Where the echoing server is reached, by each way."""
    echo = stack.enter_context(
        subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE)
    )
    stack.callback(echo.kill)
    assert echo.stdout is not None
    upstream = f"127.0.0.1:{int(echo.stdout.readline())}"
    ways = {"direct": Address.parse(upstream)}
    kinds = ["embedded", *(["binary"] if shutil.which("toxiproxy-server") else [])]
    for kind in kinds:
        server = stack.enter_context(ToxiproxyServer(kind))  # type: ignore[arg-type]
        name = "embedded Toxiproxy" if kind == "embedded" else "Toxiproxy"
        ways[name] = server.client().create(Proxy("link", upstream)).address
    recorder = stack.enter_context(WireRecorder())
    ways["relay"] = Address.parse(recorder.endpoint("echo", upstream).address)
    return ways


def _receive(sock: socket.socket, count: int) -> bytes:
    pieces = []
    while count:
        piece = sock.recv(min(count, 1 << 18))
        if not piece:
            raise WrongResultError("bench proxies: the connection ended too early")
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _round_trips(address: Address, count: int) -> float:
    """Round trips a second on one connection."""
    with socket.create_connection(address) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        messages = [os.urandom(MESSAGE) for _ in range(100)]
        begin = time.perf_counter()
        for number in range(count):
            sock.sendall(messages[number % 100])
            if _receive(sock, MESSAGE) != messages[number % 100]:
                raise WrongResultError("bench proxies: other bytes came back")
        return count / (time.perf_counter() - begin)


def _bulk(address: Address, megabytes: int) -> float:
    """Megabytes a second there and back on one connection."""
    data = os.urandom(megabytes << 20)
    with socket.create_connection(address) as sock:
        begin = time.perf_counter()
        sender = threading.Thread(target=sock.sendall, args=(data,))
        sender.start()
        back = _receive(sock, len(data))
        taken = time.perf_counter() - begin
        sender.join()
    if back != data:
        raise WrongResultError("bench proxies: other bytes came back")
    return megabytes / taken


def _measured(ways: dict[str, Address], measure: Callable[[Address], float]) -> dict[str, float]:
    """The median of each way; the ways take turns, so that a busy machine is busy for all."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS):
        for name, address in ways.items():
            taken[name].append(measure(address))
    return {name: statistics.median(values) for name, values in taken.items()}


def _figures(prefix: str, unit: str, values: dict[str, float]) -> dict[str, Any]:
    direct = values["direct"]
    return {
        f"{prefix}.{name}": {"value": round(value, 1), "unit": unit}
        | ({} if name == "direct" else {"versus": "direct", "ratio": round(value / direct, 3)})
        for name, value in values.items()
    }
