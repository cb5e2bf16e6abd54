"""Kills spread evenly over the whole length of a run: the outputs are those of a run without any,
byte for byte and in the same order.

``BETTONG_KILL_LINES`` and ``BETTONG_KILLS`` say how many messages and kills instead.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from supervised_run import Supervised, address_of, output_of, supervised

from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.sender import Pace, Sender
from bettong.engine.net.client import Patience
from bettong.scenarios.applications import running_sum

LINES = int(os.environ.get("BETTONG_KILL_LINES", "200000"))
KILLS = int(os.environ.get("BETTONG_KILLS", "0"))
BATCHES = {"in-process": 1_000, "spark": 100}
_LOOK_S = 0.002

Kill = Callable[[Supervised], bool]
"""Kills something of it; tells whether there was anything to be killed."""


def whole(of: Supervised) -> bool:
    """Its process group, as a machine that goes down does."""
    if of.process.poll() is not None:
        return False
    of.signal(signal.SIGKILL)
    return True


def jvm_alone(driver: Supervised) -> bool:
    """The JVM; Python, which goes on, has to find out."""
    return _kill(driver, lambda name: name == "java")


def python_alone(driver: Supervised) -> bool:
    """All of Python; the JVM has to find out."""
    return _kill(driver, lambda name: name != "java")


def _kill(driver: Supervised, which: Callable[[str], bool]) -> bool:
    """Those of its processes that have such a name; some may end of themselves meanwhile."""
    killed = False
    with contextlib.suppress(psutil.NoSuchProcess):
        own = psutil.Process(driver.process.pid)
        for process in [own, *own.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                if which(process.name()):
                    process.kill()
                    killed = True
    return killed


def run(
    folder: Path, runner: str, size: int, kills: int, ways: Iterator[tuple[str, Kill]]
) -> Counter[str]:
    """One run to its end, in batches of that size, with so many kills; which there were."""
    folder.mkdir()
    done: Counter[str] = Counter()
    with supervised(folder, runner, "--batch", str(size), "--wait", "never") as processes:
        by_name = {process.name: process for process in processes}
        driver = by_name["driver"]
        messages = running_sum.messages(LINES, seed=3, keys=500)["amounts"]
        sender = Sender(
            address_of(by_name["gateway"]),
            "amounts",
            messages,
            AckedFile(None, "amounts"),
            pace=Pace(size, 4),
            patience=Patience(timeout_s=5, give_up_s=300),
        )
        sending = threading.Thread(target=sender.run)
        sending.start()
        expected = _expected_bytes(messages)
        next_at = expected // (kills + 1) if kills else expected + 1
        while driver.process.poll() != 0:
            for process in processes:
                if process.process.poll() not in (None, 0):
                    process.start()
            seen = output_of(folder).stat().st_size if output_of(folder).exists() else 0
            if done.total() < kills and seen >= next_at:
                name, kill = next(ways)
                if kill(by_name.get(name, driver)):
                    done[name] += 1
                    left = kills - done.total()
                    next_at = seen + (expected - seen) // (left + 1)
            time.sleep(_LOOK_S)
        sending.join(60)
        assert not sending.is_alive(), "the sender has been told that all is safe"
    return done


def _expected_bytes(messages: Sequence[bytes]) -> int:
    """About how many bytes the outputs have: good enough to spread kills by."""
    return sum(len(b'{"id":"amounts/%d","key":"key%d","data":""}\n') + len(m) for m in messages)


WAYS: dict[str, tuple[int, list[tuple[str, Kill]]]] = {
    "in-process": (
        100,
        [("driver", whole), ("gateway", whole), ("driver", whole), ("receiver", whole)],
    ),
    "spark": (
        30,
        [("JVM alone", jvm_alone), ("process group", whole), ("Python alone", python_alone)],
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("runner", ["in-process", pytest.param("spark", marks=pytest.mark.spark)])
def test_kills_over_the_whole_length_change_nothing(runner: str, tmp_path: Path) -> None:
    kills, ways = WAYS[runner]
    kills = KILLS or kills
    size = max(1, LINES // BATCHES[runner])
    run(tmp_path / "clean", "in-process", size, 0, iter(()))
    done = run(tmp_path / "killed", runner, size, kills, itertools.cycle(ways))
    assert done.total() == kills, "the run was over before the kills were"
    assert set(done) == {name for name, _ in ways}
    clean, killed = (output_of(tmp_path / name).read_bytes() for name in ("clean", "killed"))
    assert clean.count(b"\n") == LINES
    assert killed.splitlines() == clean.splitlines()
    print(f"{LINES} messages, {dict(done)}")
