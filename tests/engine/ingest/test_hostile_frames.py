"""Frames of all sizes, many of them wrong, from clients that come and go: the gateway's memory
stays where it was, and whoever is in the right is served.

``BETTONG_HOSTILE_FRAMES`` says how many instead of a million.
"""

from __future__ import annotations

import os
import random
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from bettong.engine.address import Address
from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.client import RangeClient
from bettong.engine.ingest.frames import CODEC, Data, Hello
from bettong.engine.ingest.sender import Sender
from bettong.engine.net.block import Block
from bettong.engine.net.frame import encode

FRAMES = int(os.environ.get("BETTONG_HOSTILE_FRAMES", "1000000"))
CLIENTS = 8
LARGE = 8 << 20
SLACK = 16 << 20
HELLO = encode(Hello.KIND, CODEC.encode(Hello("theirs", "send", "")))


def frames(draw: random.Random, large: float) -> list[bytes]:
    """What one connection sends: a greeting and frames that nobody asked for, of which so large a
    part is large; the last one is damaged."""
    found = [HELLO]
    for _ in range(draw.randrange(1, 4)):
        size = draw.randrange(LARGE) if draw.random() < large else draw.randrange(200)
        data = Data(draw.randrange(3), Block.of([b"x" * size]), "")
        found.append(encode(data.KIND, CODEC.encode(data)))
    last = bytearray(found[-1])
    last[draw.randrange(len(last))] ^= 1 << draw.randrange(8)
    return [*found[:-1], bytes(last)]


def attack(address: Address, count: int, seed: int, large: float) -> None:
    draw = random.Random(seed)
    sent = 0
    while sent < count:
        wrong = frames(draw, large)
        sent += len(wrong)
        try:
            with socket.create_connection(address, timeout=60) as sock:
                sock.sendall(b"".join(wrong))
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(1 << 16):
                    pass
        except OSError:
            continue  # it was turned away while it still spoke


def waves(gateway: Any, counts: Sequence[int], large: float) -> list[int]:
    """The gateway's memory before, and after each wave of so many frames."""
    process = psutil.Process(gateway.pid)
    seen = [process.memory_info().rss]
    for wave, count in enumerate(counts):
        clients = [
            threading.Thread(
                target=attack, args=(gateway.address, count // CLIENTS, 100 * wave + n, large)
            )
            for n in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        seen.append(settled(process, seen[0] + SLACK))
    return seen


def settled(process: psutil.Process, limit: int) -> int:
    """Its memory once it is below the limit, or does not come there: the last client is gone a
    moment before what it took is."""
    patience = threading.Event()
    for _ in range(100):
        if process.memory_info().rss < limit:
            break
        patience.wait(0.1)
    return int(process.memory_info().rss)


def check(start: Any, folder: Path, counts: Sequence[int], large: float) -> list[int]:
    gateway = start(
        "bettong.engine.ingest.gateway", "--listen", "127.0.0.1:0", "--dir", folder / "gateway"
    )
    seen = waves(gateway, counts, large)
    messages = [b"message %d" % n for n in range(100)]
    Sender(gateway.address, "ours", messages, AckedFile(None, "ours")).run()
    reader = RangeClient(gateway.address, "ours")
    assert [p for block in reader.read(0, 100) for p in block.payloads()] == messages
    reader.close()
    return seen


def test_large_frames_leave_nothing_behind(start: Any, tmp_path: Path) -> None:
    seen = check(start, tmp_path, [160, 160], large=0.5)
    print("MiB after each wave:", [rss >> 20 for rss in seen])
    assert seen[-1] < seen[0] + SLACK


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_million_frames_leave_nothing_behind(start: Any, tmp_path: Path) -> None:
    seen = check(start, tmp_path, [FRAMES // 10] * 10, large=0.002)
    print("MiB after each tenth:", [rss >> 20 for rss in seen])
    assert seen[-1] < seen[0] + SLACK
