"""A long run through a gateway process: its memory and its disk stay small."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.client import RangeClient
from bettong.engine.ingest.sender import Pace, Sender

MESSAGES = 400_000
BODY = b"x" * 500


def messages() -> Iterator[bytes]:
    return (b"%d" % n + BODY for n in range(MESSAGES))


@pytest.mark.slow
def test_a_slow_reader_costs_neither_memory_nor_disk(start: Any, tmp_path: Path) -> None:
    gateway = start(
        *("bettong.engine.ingest.gateway", "--listen", "127.0.0.1:0", "--dir", tmp_path / "dir"),
        *("--max-unreleased", 20_000, "--segment-bytes", 4 << 20),
    )
    process = psutil.Process(gateway.pid)
    sender = Sender(gateway.address, "lines", messages(), AckedFile(None, "lines"), pace=Pace(1000))
    sending = threading.Thread(target=sender.run)
    sending.start()
    client = RangeClient(gateway.address, "lines")
    seen = 0
    memory, disk = [], []
    while seen < MESSAGES:
        end = min(seen + 10_000, client.status(seen + 10_000, wait=60).end)
        for block in client.read(seen, end):
            assert block.payloads()[0] == b"%d" % seen + BODY
            seen += len(block)
        client.release(seen)
        memory.append(process.memory_info().rss)
        disk.append(sum(path.stat().st_size for path in tmp_path.rglob("*.log")))
    sending.join(60)
    assert not sending.is_alive()
    warm = len(memory) // 4
    assert max(memory[warm:]) < max(memory[:warm]) + (16 << 20), "it does not grow"
    assert max(disk) < 2 * 20_000 * 510 + 2 * (4 << 20), "what is released goes"
