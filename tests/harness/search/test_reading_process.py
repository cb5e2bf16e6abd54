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
from bettong.lineage.trace import Phase, TraceEvent

PHASES: tuple[Phase, ...] = ("before", "after")
EVENTS = [
    TraceEvent(step, phase, "driver")
    for step in ("epoch=1/take", "batch=0/source.plan", "batch=0/p=0/a=0/state.write")
    for phase in PHASES
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


def test_what_is_asked_for_late_is_what_was_read(process: ReadingProcess) -> None:
    more = [*EVENTS, *(TraceEvent("batch=1/source.plan", phase, "driver") for phase in PHASES)]
    first, second, third = (process.read(e, Schedule(), "good") for e in (EVENTS, more, EVENTS))
    for events, given in ((EVENTS, third), (more, second), (EVENTS, first)):
        here = READER.read(events, Schedule(), "good").lineage
        there = given.result().lineage
        assert list(there.graph.nodes(data=True)) == list(here.graph.nodes(data=True))
        assert (there.faults, there.goals) == (here.faults, here.goals)


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
