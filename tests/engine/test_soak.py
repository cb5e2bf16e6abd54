"""Half an hour of random faults: nothing is lost or doubled, and memory and disk stay flat.

``BETTONG_SOAK_S`` says for how many seconds instead.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from supervised_run import address_of, output_of, supervised

from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.sender import Pace, Sender
from bettong.engine.net.client import Patience

SECONDS = float(os.environ.get("BETTONG_SOAK_S", "1800"))
PER_SECOND = 2_000
KEYS = 1_000


def number(n: int) -> int:
    """What message n adds to its key's sum."""
    return (n * 7919) % 1000


def messages(until: float) -> Iterator[bytes]:
    """Messages at a steady rate until it is time."""
    begin = time.monotonic()
    n = 0
    while time.monotonic() < until:
        yield b"k%d,%d" % (n % KEYS, number(n))
        n += 1
        if n % 100 == 0:
            time.sleep(max(0.0, begin + n / PER_SECOND - time.monotonic()))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS * 3 + 600)
@pytest.mark.parametrize("runner", ["in-process", pytest.param("spark", marks=pytest.mark.spark)])
def test_half_an_hour_of_random_faults(runner: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    began = time.monotonic()
    with supervised(tmp_path, runner, "--batch", "1000") as processes:
        gateway, driver = processes[0], processes[2]
        sender = Sender(
            address_of(gateway),
            "amounts",
            messages(began + SECONDS),
            AckedFile(None, "amounts"),
            pace=Pace(100, 4),
            patience=Patience(timeout_s=5, give_up_s=120),
        )
        sent: list[int] = []
        sending = threading.Thread(target=lambda: sent.append(sender.run()))
        sending.start()
        kills = 0
        disk: list[int] = []
        kill_at = began + 10
        while driver.process.poll() != 0:
            for process in processes:
                process.look()
            assert sending.is_alive() or sent, "the sender has given up"
            now = time.monotonic()
            assert now < began + 2 * SECONDS + 300, "it does not come to its end"
            if kill_at < now < began + SECONDS:
                chance.choice(processes).disturb(chance)
                kills += 1
                kill_at = time.monotonic() + chance.uniform(3, 25 if runner == "spark" else 10)
            if now > began + len(disk):
                disk.append(kept(tmp_path))
            time.sleep(0.1)
        sending.join(60)
        assert sent, "the sender has been told that all is safe"
    assert read(output_of(tmp_path)) == sent[0]
    flat(disk, 16 << 20)
    for process in processes:
        flat(process.peaks, 48 << 20)
    reported = {p.name: f"{len(p.peaks)} times, {max(p.peaks) >> 20} MiB" for p in processes}
    print(f"{sent[0]} messages, {kills} kills, disk {max(disk) >> 20} MiB, {reported}")


def kept(folder: Path) -> int:
    """Bytes on disk, but for the outputs themselves."""
    total = 0
    for root, _, names in os.walk(folder):
        for path in (Path(root, name) for name in names):
            if path.name != "output.jsonl" and path.suffix != ".txt":
                with contextlib.suppress(FileNotFoundError):  # the engine tidies up meanwhile
                    total += path.lstat().st_size
    return total


def flat(seen: list[int], slack: int) -> None:
    """What was seen in the last three quarters is not more than before."""
    begin = max(len(seen) // 4, 1)
    assert max(seen[begin:], default=0) <= 1.25 * max(seen[:begin]) + slack, seen


def read(output: Path) -> int:
    """How many outputs there are; each key's running sums are there once each, in order."""
    last: dict[int, int] = {}
    totals: dict[int, int] = defaultdict(int)
    count = 0
    with output.open() as lines:
        for line in lines:
            row = json.loads(line)
            n = int(row["id"].removeprefix("amounts/"))
            key = n % KEYS
            assert n == last.get(key, key - KEYS) + KEYS, "lost, doubled or out of order"
            last[key] = n
            totals[key] += number(n)
            assert row["data"] == f"k{key} {totals[key]}"
            count += 1
    return count
