"""Spark loses sight of an executor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.faults.query_fault import Injection, QueryFault
from bettong.harness.queries.faults.wording import point_in_words
from bettong.lineage.trace import TraceEvent

SECOND = "a second attempt did its work meanwhile"
"""The evidence that there were two attempts at once."""
_ID = re.compile(r"lost-executor\((before|after) ([^,]+?)(, goes on)?\)$")


@dataclass(frozen=True, slots=True)
class LostExecutor(QueryFault):
    """Spark loses sight of the executor that is at a step of a task, and runs the task again while
    the first attempt is still there: two attempts at once, as with speculation.

    Attributes:
        at: where the first attempt stands meanwhile.
        goes_on: when the second one is done, the first one goes on; else it is never seen again,
            and none of its clean-up code runs.
    """

    loses_executor: ClassVar[bool] = True
    beside_steps: ClassVar[bool] = True

    at: Point
    goes_on: bool

    @property
    def id(self) -> str:
        return f"lost-executor({self.at}{', goes on' if self.goes_on else ''})"

    @classmethod
    def parse(cls, id: str) -> LostExecutor | None:
        found = _ID.match(id)
        if found is None:
            return None
        return cls(Point.parse(f"{found[1]} {found[2]}"), goes_on=bool(found[3]))

    def describe(self) -> str:
        when = point_in_words(self.at).replace("a task", "the first attempt at a task", 1)
        end = (
            "did the task's work; then the first one went on."
            if self.goes_on
            else "did the task's work; the first one was never seen again."
        )
        return f"Spark lost sight of the executor {when}. A second attempt {end}"

    def met(self, event: TraceEvent, run: Injection) -> None:
        if self.at.is_of(event) and self.id not in run.evidence:
            run.lose_executor_at(self.id, event, self.goes_on)
        elif event.phase == "after" and _second_attempt(event, self.at.step):
            run.tried_again(self.id)

    def proven(self, evidence: str) -> bool:
        return SECOND in evidence

    @property
    def bound(self) -> str:
        return "crash"

    @property
    def place(self) -> str:
        return "executor"

    def left(self, crash_point: CrashPoint, nothing_yet: bool) -> str:
        if self.goes_on:
            return self.id
        if nothing_yet:
            return f"{crash_point.durable} an attempt that had left nothing fails"
        return f"{crash_point.durable} {self.id}"

    @property
    def mechanism(self) -> str:
        return "attempt"

    @property
    def doubled(self) -> str:
        return "Both attempts wrote rows that readers see."


def attempt_of(step: str) -> tuple[int | None, ...] | None:
    """Batch, partition and attempt that a step belongs to; a state file is an attempt's too, and
    where one is held it is the first one's."""
    id = StepId.parse(step)
    if id.task is not None:
        return id.task
    return (id.batch, id.partition, 0) if _is_state(id) else None


def _is_state(id: StepId) -> bool:
    return id.partition is not None and [part for part, _ in id.parts[:2]] == ["batch", "state"]


def _second_attempt(event: TraceEvent, first: str) -> bool:
    """Whether a step is the end of the second attempt at the task that another one belongs to.

    Where the task reads a shuffle, what it read is lost with the executor: the second attempt is
    the first one of its stage's second attempt. A state file is the second attempt's when it is
    there while the first one is still held before its own.
    """
    found, task = StepId.parse(first), StepId.parse(event.step)
    if _is_state(found):
        return event.step == first
    if found.task is None or task.task is None or task.last != "task":
        return False
    same = task.task[:2] == found.task[:2]
    same_stage = found.stage in (None, task.stage)
    again = task.attempt == 1 or int(event.detail.get("stageAttempt", 0)) > 0
    return same and same_stage and again
