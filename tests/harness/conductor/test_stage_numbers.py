from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bettong.harness.conductor.stage_numbers import StageNumbers
from bettong.lineage.trace import Phase, TraceEvent


def reported(numbers: StageNumbers, step: str, phase: Phase = "before") -> str:
    return numbers(TraceEvent(step, phase, "driver")).step


def test_stages_are_counted_from_nought_in_each_batch_and_after_each_restart() -> None:
    numbers = StageNumbers()
    assert reported(numbers, "batch=1/stage=17/p=0/a=0/task") == "batch=1/stage=0/p=0/a=0/task"
    assert reported(numbers, "batch=1/stage=17/p=1/a=0/task") == "batch=1/stage=0/p=1/a=0/task"
    assert reported(numbers, "batch=1/stage=18/p=0/a=0/task") == "batch=1/stage=1/p=0/a=0/task"
    assert reported(numbers, "batch=2/stage=19/p=0/a=0/task") == "batch=2/stage=0/p=0/a=0/task"
    assert reported(numbers, "epoch=2/sink.open") == "epoch=2/sink.open"
    assert reported(numbers, "batch=2/stage=21/p=0/a=1/task") == "batch=2/stage=0/p=0/a=1/task"


def test_stages_of_jobs_beside_a_batch_are_counted_apart() -> None:
    numbers = StageNumbers()
    assert reported(numbers, "batch=1/concurrent/stage=7/p=0/a=0/task") == (
        "batch=1/concurrent/stage=0/p=0/a=0/task"
    )
    assert reported(numbers, "batch=1/stage=8/p=0/a=0/task") == "batch=1/stage=0/p=0/a=0/task"


def test_a_task_that_ends_after_the_restart_keeps_its_name() -> None:
    numbers = StageNumbers()
    reported(numbers, "batch=1/stage=3/p=0/a=0/task")
    reported(numbers, "batch=1/stage=4/p=0/a=0/task")
    reported(numbers, "epoch=2/sink.open")
    assert (
        reported(numbers, "batch=1/stage=4/p=0/a=0/task", "after") == "batch=1/stage=1/p=0/a=0/task"
    )


def test_other_steps_are_left_alone() -> None:
    assert reported(StageNumbers(), "batch=1/sink.commit") == "batch=1/sink.commit"


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads take turns as often as they can."""
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(switch)


@pytest.mark.usefixtures("impatient")
def test_tasks_that_begin_at_once_are_counted_apart() -> None:
    """Each stage of a batch has a number of its own, whichever thread of the conductor asks."""
    numbers, stages, at_once = StageNumbers(), range(32), threading.Barrier(32, timeout=60)
    for batch in range(10, 3000):  # looking through these takes long enough to be in its midst
        reported(numbers, f"batch={batch}/stage=0/p=0/a=0/task")

    def tasks(stage: int) -> list[str]:
        seen = []
        for batch in range(8):
            at_once.wait()
            seen.append(reported(numbers, f"batch={batch}/stage={stage}/p=0/a=0/task"))
        return seen

    with ThreadPoolExecutor(len(stages)) as pool:
        seen = sorted(step for steps in pool.map(tasks, stages) for step in steps)
    assert seen == sorted(f"batch={b}/stage={n}/p=0/a=0/task" for b in range(8) for n in stages)
