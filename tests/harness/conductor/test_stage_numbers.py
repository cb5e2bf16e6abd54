from __future__ import annotations

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
