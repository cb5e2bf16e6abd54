"""The two ends of a live run, each a process of its own, so that they take neither the driver's
interpreter nor its time: one sends messages when they are due, the other notes when their outputs
can be seen.

Times are of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bettong.engine.address import Address
from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.sender import Pace, Sender
from bettong.scenarios.applications import running_sum
from bettong.scenarios.benchmarks.errors import WrongResultError

STREAM = "amounts"
KEYS = 1_000
_FRAMES = 500
_SLEEP_S = 0.001
_LOOK_S = 0.002
_BEGIN, _SEEN = "begin", "seen.npy"


@dataclass(frozen=True)
class Load:
    """What is sent: a first frame at once, so that everything has been done for the first time;
    the rest at a steady rate from the moment on at which outputs of that one can be seen.

    Attributes:
        rate: messages a second.
        seconds: for how long they are sent.
    """

    rate: int
    seconds: int

    @property
    def frame(self) -> int:
        """How many are sent together."""
        return max(1, self.rate // _FRAMES)

    @property
    def count(self) -> int:
        """How many in all."""
        return self.frame + self.rate * self.seconds

    def messages(self) -> list[bytes]:
        """All of them; the same each time."""
        return running_sum.messages(self.count, keys=KEYS)[STREAM]

    def due(self, begin_ns: int) -> Any:
        """When each is due, in nanoseconds."""
        gap = 1_000_000_000 // self.rate
        return begin_ns + np.maximum(np.arange(self.count) - self.frame, 0) * gap


@dataclass(frozen=True)
class Times:
    """What became of a load; nanoseconds.

    Attributes:
        due: when each message was due.
        seen: when its output could be seen; zero if it never was.
    """

    due: Any
    seen: Any

    def late(self, at: int) -> int:
        """How many messages were due then and their outputs not to be seen."""
        due = int(np.searchsorted(self.due, at, "right"))
        return due - int(np.count_nonzero(self.seen[:due] <= at))


@contextmanager
def ends(load: Load, gateway: Address, output: Path, folder: Path) -> Iterator[None]:
    """Both ends, over a block that returns when all that was sent has been made visible. What they
    note is in the folder then, see :func:`times`.

    Args:
        load: what is sent.
        gateway: where it is sent.
        output: where the outputs appear.
        folder: for what the ends note.

    Raises WrongResultError when an end has failed.
    """
    what = [str(load.rate), str(load.seconds), str(output), str(folder)]
    running = {
        end: subprocess.Popen(
            [sys.executable, "-m", __name__, end, *what, str(gateway)], stdin=subprocess.PIPE
        )
        for end in ("send", "read")
    }
    is_done = False
    try:
        yield
        is_done = True
    finally:
        for process in running.values():
            if not is_done:
                process.terminate()
            process.communicate()
    failed = [end for end, process in running.items() if process.returncode]
    if failed:
        raise WrongResultError(f"the end of the run that was to {failed[0]} failed")


def times(load: Load, folder: Path) -> Times:
    """What the ends have noted; raises WrongResultError when an output is missing or wrong."""
    found = Times(load.due(int((folder / _BEGIN).read_text())), np.load(folder / _SEEN))
    missing = int(np.count_nonzero(found.seen == 0))
    if missing:
        raise WrongResultError(f"{missing} outputs are missing or wrong")
    return found


def _send(load: Load, gateway: Address, output: Path, folder: Path) -> None:
    messages = _on_time(load, output, folder / _BEGIN)
    Sender(gateway, STREAM, messages, AckedFile(None, STREAM), pace=Pace(load.frame, 50)).run()


def _on_time(load: Load, output: Path, note: Path) -> Iterator[bytes]:
    """Each message when it is due, or at most a millisecond later."""
    messages = load.messages()
    yield from messages[: load.frame]
    while not output.exists() or not output.stat().st_size:
        time.sleep(_LOOK_S)
    begin = now = time.perf_counter_ns()
    note.write_text(str(begin))
    due = load.due(begin).tolist()
    for n in range(load.frame, load.count):
        while now < due[n]:
            time.sleep(max((due[n] - now) / 1e9, _SLEEP_S))
            now = time.perf_counter_ns()
        yield messages[n]


def _read(load: Load, output: Path, folder: Path) -> None:
    """Note when each output, if it is right, can be seen first; until standard input ends."""
    totals: dict[bytes, int] = {}
    expected = []
    for message in load.messages():
        key, _, number = message.partition(b",")
        totals[key] = totals.get(key, 0) + int(number)
        expected.append(f"{key.decode()} {totals[key]}")
    seen = np.zeros(load.count, np.int64)
    last = False
    while not output.exists() and not last:
        last = _is_over()
    rest = b""
    with output.open("rb") as file:
        while True:
            new = file.read()
            now = time.perf_counter_ns()
            *lines, rest = (rest + new).split(b"\n")
            for line in lines:
                row = json.loads(line)
                n = int(row["id"].removeprefix(f"{STREAM}/"))
                if row["data"] == expected[n] and not seen[n]:
                    seen[n] = now
            if last and not new:
                break
            last = last or _is_over()
    np.save(folder / _SEEN, seen)


def _is_over() -> bool:
    """Whether standard input has ended; waits a moment for it."""
    return bool(select.select([sys.stdin], [], [], _LOOK_S)[0])


def main() -> None:
    """The command line: an end, and what :func:`ends` gives it."""
    end, rate, seconds, output, folder, gateway = sys.argv[1:]
    load = Load(int(rate), int(seconds))
    if end == "send":
        _send(load, Address.parse(gateway), Path(output), Path(folder))
    else:
        _read(load, Path(output), Path(folder))


if __name__ == "__main__":
    main()
