"""A gateway with one stream that trickles and one that is silent, and ``bettong start`` on it."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bettong.engine.address import Address
from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.sender import Pace, Sender

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
    """Sends the numbers ``k,1`` that it is asked for, and never ends before it is closed; notes
    when each was sent, in seconds of ``time.time()``."""

    def __init__(self, address: Address, acked: Path) -> None:
        self.sent: list[float] = []
        self._due: queue.SimpleQueue[float] = queue.SimpleQueue()
        self._closing = threading.Event()
        sender = Sender(
            address, "amounts", self._messages(), AckedFile(acked, "amounts"), pace=Pace(1, 1)
        )
        self._thread = threading.Thread(target=sender.run, daemon=True)
        self._thread.start()

    def send(self, count: int, rate: float = float("inf")) -> None:
        """Send so many messages, so many in a second; returns at once."""
        now = time.monotonic()
        for n in range(count):
            self._due.put(now + n / rate)

    def _messages(self) -> Iterator[bytes]:
        while True:
            due = self._due.get()
            if self._closing.wait(max(0.0, due - time.monotonic())):
                return
            self.sent.append(time.time())
            yield b"k,1"

    def close(self) -> None:
        self._closing.set()
        self._due.put(0.0)
        self._thread.join(60)


def bettong() -> str:
    """The command that is installed beside this Python."""
    return str(Path(sys.executable).with_name("bettong"))


def start(folder: Path, where: Address, runner: str, *options: str) -> subprocess.Popen[str]:
    """``bettong start`` with default options on the feed, outputs as files; in a group of its own,
    as a shell gives one to each command."""
    command = [
        *(bettong(), "start", APPLICATION, "--runner", runner),
        *("--source", f"amounts={where}", "--source", f"corrections={where}"),
        *("--sink", f"sums={folder / 'out'}", "--checkpoint", str(folder / "checkpoint")),
        *options,
    ]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        start_new_session=True,
    )


def shown(folder: Path) -> dict[str, tuple[str, float]]:
    """What each visible output says, and when its file came to be, by its id."""
    return {
        row["id"]: (row["data"], path.stat().st_mtime)
        for path in sorted((folder / "out").glob("batch-*.jsonl"))
        for row in map(json.loads, path.read_text().splitlines())
    }
