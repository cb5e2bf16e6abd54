"""Moments of a run in words that someone understands who has never seen the sink."""

from __future__ import annotations

from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.faults.wording import ordinal
from bettong.harness.queries.sink.file_steps import CHANGED, LINE, LOOK


def point_in_words(point: Point) -> str:
    """When it was, as seen from the sink."""
    step = StepId.parse(point.step)
    batch = step.batch
    if batch is None:
        return f"{point.phase} Spark wrote the checkpoint's {point.step}"
    again = "" if point.occurrence == 1 else f" (the {ordinal(point.occurrence)} time)"
    before = point.phase == "before"
    if step.last == "offsets":
        reported = (
            f"before batch {batch} was planned"
            if before
            else (f"after batch {batch} was planned, before any of its tasks")
        )
    elif step.last == "commits":
        reported = (
            f"after batch {batch} was written, before Spark recorded that (commits/{batch})"
            if before
            else f"right after Spark had recorded batch {batch} as done"
        )
    elif step.last == "_spark_metadata":
        reported = f"{point.phase} the file sink's log named the files of batch {batch}"
    elif step.file is not None:
        number, operation = step.file
        reported = {
            CHANGED: f"right after the sink's code had changed files in batch {batch} "
            f"(change {number})",
            LOOK: f"right before the sink's code looked at files in batch {batch} (look {number})",
            LINE: f"right before the sink's code changed files in line {number}, in batch {batch}",
        }.get(
            operation,
            f"right before the sink's {operation} in batch {batch} (its file operation {number})",
        )
    elif step.is_state_file:
        reported = (
            f"{point.phase} the state of batch {batch} (operator {step.number('op')}, partition "
            f"{step.partition}) was in place"
        )
    elif step.last == "source.middle":
        reported = f"when a task of batch {batch} had read half of its rows"
    elif step.last == "task":
        reported = f"{'before' if before else 'after'} a task of batch {batch} had done its work"
    else:
        reported = f"{point.phase} {step.within_batch} of batch {batch}"
    return reported + again
