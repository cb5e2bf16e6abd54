"""Gateway, receiver and driver as processes that are started again whenever they have died."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from bettong.engine.address import Address
from bettong.harness.processes.addresses import held_ports

APPLICATION = "bettong.scenarios.applications.running_sum:app"
PAUSE_S = (0.2, 3.0)


class Supervised:
    """A process that is started again whenever it has died, and what its incarnations took."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name = name
        self.command = command
        self.log = log.open("ab")
        self.peaks: list[int] = []
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdout=self.log, stderr=self.log, start_new_session=True
        )
        self.peaks.append(0)

    def look(self) -> None:
        """Measure it, with all that it has started; start it again if it has failed."""
        if self.process.poll() not in (None, 0):
            self.start()
        own = psutil.Process(self.process.pid)
        try:
            family = [own, *own.children(recursive=True)]
            self.peaks[-1] = max(self.peaks[-1], sum(p.memory_info().rss for p in family))
        except psutil.NoSuchProcess:
            pass  # between two of its children

    def disturb(self, chance: random.Random) -> None:
        """Kill it, or let it sleep for a while."""
        if self.process.poll() is not None:
            return
        if chance.random() < 0.3:
            self.signal(signal.SIGSTOP)
            time.sleep(chance.uniform(*PAUSE_S))
            self.signal(signal.SIGCONT)
        else:
            self.kill()

    def signal(self, what: signal.Signals) -> None:
        os.killpg(self.process.pid, what)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def supervised(folder: Path, runner: str, *options: str) -> Iterator[list[Supervised]]:
    """Gateway, receiver and driver of a running sum, until it is left; the options are the
    driver's."""
    with held_ports(2) as ports, contextlib.ExitStack() as stack:
        started = []
        for name, command in _commands(folder, runner, ports, options).items():
            started.append(Supervised(name, command, folder / f"{name}.txt"))
            stack.callback(started[-1].kill)
        yield started


def _commands(
    folder: Path, runner: str, ports: Sequence[int], options: Sequence[str]
) -> dict[str, list[str]]:
    gateway, receiver = (f"127.0.0.1:{port}" for port in ports)
    python = [sys.executable, "-m"]
    driver = [
        *(str(Path(sys.executable).with_name("bettong")), "start", APPLICATION),
        *("--source", f"amounts={gateway}", "--sink", f"sums={receiver}", "--runner", runner),
        *("--checkpoint", str(folder / "checkpoint"), "--master", "local[2]", *options),
    ]
    servers = {
        "gateway": [
            *(*python, "bettong.engine.ingest.gateway", "--listen", gateway),
            *("--max-unreleased", "50000"),
        ],
        "receiver": [*python, "bettong.engine.receiver.server", "--listen", receiver],
    }
    kept = ("--segment-bytes", str(1 << 20))
    return {
        **{name: [*line, "--dir", str(folder / name), *kept] for name, line in servers.items()},
        "driver": driver,
    }


def address_of(server: Supervised) -> Address:
    """Where it listens."""
    return Address.parse(server.command[server.command.index("--listen") + 1])


def output_of(folder: Path) -> Path:
    """The rows that the receiver has made visible."""
    return folder / "receiver" / "running_sum" / "output.jsonl"
