"""Runs that another process reads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor

import psutil
import pytest

from bettong.harness.faults.schedule import Schedule
from bettong.harness.search.read_run import RunReader
from bettong.harness.search.reading_process import ReadingProcess
from bettong.lineage.faults import CLASSIC
from bettong.lineage.trace import TraceEvent

EVENTS = [
    TraceEvent(step, phase, "driver")
    for step in ("epoch=1/take", "batch=0/source.plan", "batch=0/p=0/a=0/state.write")
    for phase in ("before", "after")
]
READER = RunReader(None, CLASSIC)


@pytest.fixture
def process() -> Iterator[ReadingProcess]:
    found = ReadingProcess(READER)
    yield found
    found.close()


def test_it_reads_what_is_read_here(process: ReadingProcess) -> None:
    here = READER.read(EVENTS, Schedule(), "good")
    there = process.read(EVENTS, Schedule(), "good").result()
    assert list(there.lineage.graph.nodes(data=True)) == list(here.lineage.graph.nodes(data=True))
    assert list(there.lineage.graph.edges) == list(here.lineage.graph.edges)
    assert there.lineage.goals == here.lineage.goals
    assert (there.faults, there.came, there.unread) == (here.faults, here.came, here.unread)
    assert (there.stand_ins, there.behaviour) == (here.stand_ins, here.behaviour)


def test_that_it_was_killed_is_told(process: ReadingProcess) -> None:
    process.read(EVENTS, Schedule(), "good").result()
    (child,) = reading(psutil.Process())
    child.kill()
    with pytest.raises(BrokenExecutor):
        process.read(EVENTS * 2, Schedule(), "good").result()


def test_an_interrupt_from_the_keyboard_is_not_for_it(process: ReadingProcess) -> None:
    process.read(EVENTS, Schedule(), "good").result()
    (child,) = reading(psutil.Process())
    child.send_signal(signal.SIGINT)
    assert process.read(EVENTS * 2, Schedule(), "good").result().lineage.goals


PARENT = """
import sys
from bettong.harness.faults.schedule import Schedule
from bettong.harness.search.read_run import RunReader
from bettong.harness.search.reading_process import ReadingProcess
if __name__ == "__main__":
    process = ReadingProcess(RunReader(None, frozenset()))
    process.read([], Schedule(), "good").result()
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_it_ends_when_its_parent_is_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None and parent.stdin is not None
    assert parent.stdout.readline() == b"ready\n"
    children = psutil.Process(parent.pid).children()
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait(60)
    _, alive = psutil.wait_procs(children, timeout=600)
    assert not alive
    parent.stdin.close()
    parent.stdout.close()


def reading(parent: psutil.Process) -> list[psutil.Process]:
    """Children of a process that were spawned to read."""
    return [c for c in parent.children() if "spawn_main" in " ".join(c.cmdline())]
