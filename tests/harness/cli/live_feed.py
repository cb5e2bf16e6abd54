"""A gateway with one stream that trickles and one that is silent, and ``bettong start`` on it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.sender import Pace, Sender
from bettong.engine.net.access import Address

APPLICATION = "bettong.scenarios.applications.running_sum_merged:app"


@contextmanager
def gateway(folder: Path) -> Iterator[Address]:
    """A gateway of its own process."""
    command = [sys.executable, "-m", "bettong.engine.ingest.gateway", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen([*command, "--dir", str(folder)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield Address.parse(json.loads(process.stdout.readline())["listening"])
    finally:
        process.terminate()
        process.communicate()


class Feed:
    """Sends numbers ``k,1`` at a rate until it is closed, and never ends; notes when each was
    sent, in seconds of ``time.time()``."""

    def __init__(self, address: Address, rate: float, acked: Path) -> None:
        self.sent: list[float] = []
        self._go_on = True
        self._rate = rate
        sender = Sender(
            address, "amounts", self._messages(), AckedFile(acked, "amounts"), pace=Pace(1, 1)
        )
        self._thread = threading.Thread(target=sender.run, daemon=True)
        self._thread.start()

    def _messages(self) -> Iterator[bytes]:
        begin = time.monotonic()
        while self._go_on:
            wait = begin + len(self.sent) / self._rate - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            self.sent.append(time.time())
            yield b"k,1"

    def close(self) -> None:
        self._go_on = False
        self._thread.join(10)


def bettong() -> str:
    """The command that is installed beside this Python."""
    return str(Path(sys.executable).with_name("bettong"))


def start(folder: Path, where: Address, runner: str, *options: str) -> subprocess.Popen[str]:
    """``bettong start`` with default options on the feed, outputs as files."""
    command = [
        *(bettong(), "start", APPLICATION, "--runner", runner),
        *("--source", f"amounts={where}", "--source", f"corrections={where}"),
        *("--sink", f"sums={folder / 'out'}", "--checkpoint", str(folder / "checkpoint")),
        *options,
    ]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )


def shown(folder: Path) -> dict[str, tuple[str, float]]:
    """What each visible output says, and when its file came to be, by its id."""
    return {
        row["id"]: (row["data"], path.stat().st_mtime)
        for path in sorted((folder / "out").glob("batch-*.jsonl"))
        for row in map(json.loads, path.read_text().splitlines())
    }
