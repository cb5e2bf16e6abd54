"""An error is the answer to a step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bettong.harness.faults.kinds import Storage
from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.wording import point_in_words

_ID = re.compile(r"storage\(EIO, (.+)\)$")
_EACH_TIME = re.compile(r"storage\(EIO, (.+), each time\)$")
_EACH = re.compile(r"storage\(EIO, (.+), each attempt\)$")
_ATTEMPTS = 4
"""Spark gives a task up after so many, unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class FailedStep(QueryFault):
    """An input/output error: of a task, which Spark tries again, of a call of the sink's own, or of
    one of Spark's files."""

    at: Point

    @property
    def placed(self) -> tuple[Storage]:
        return (Storage(self.at, "EIO"),)

    @classmethod
    def parse(cls, id: str) -> FailedStep | None:
        found = _ID.match(id)
        return None if found is None else cls(Point.parse(found[1]))

    def describe(self) -> str:
        when = point_in_words(self.at)
        step = StepId.parse(self.at.step)
        if step.file is not None:
            return f"An input/output error was the answer to {when.removeprefix('right before ')}."
        if step.is_checkpoint_file:
            return f"An input/output error came {when}, and the file was not there."
        return f"An attempt failed {when}; Spark tried the task again."

    @property
    def bound(self) -> str:
        return "loss"

    @property
    def recovers_from(self) -> Point:
        return self.at

    def left(self, crash_point: CrashPoint, nothing_yet: bool) -> str:
        if nothing_yet:
            attempt = "an attempt that had left nothing fails"
            if self.at.phase == "after":  # its worker goes on, and remembers what it has done
                attempt += f" at the end of stage {StepId.parse(self.at.step).stage}"
            return f"{crash_point.durable} {attempt}"
        return f"{crash_point.durable} {self.at.step}"

    @property
    def mechanism(self) -> str:
        """Outside of tasks, a call of the sink's own fails the batch, one of Spark's own logs the
        query."""
        return "attempt" if StepId.parse(self.at.step).partition is not None else "error"

    @property
    def breaks_off(self) -> bool:
        return StepId.parse(self.at.step).last == "source.middle"

    @property
    def swallowable(self) -> bool:
        """As a call of the sink's own is."""
        return StepId.parse(self.at.step).file is not None

    @property
    def doubled(self) -> str:
        return "" if self.swallowable else "Both attempts wrote rows that readers see."


class _LastingFault(QueryFault):
    """An error that trying again does not get past: it fails the batch, or somebody forgets it."""

    __slots__ = ()

    @property
    def bound(self) -> str:
        return "loss"

    @property
    def mechanism(self) -> str:
        return "error"

    @property
    def swallowable(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class FailedEachTime(_LastingFault):
    """An input/output error of a call of the sink's own, and of each time that the same process
    makes it again, a dozen times at most: whoever tries a few times and then goes on has lost what
    it was for."""

    at: Point

    @property
    def placed(self) -> tuple[Storage]:
        return (Storage(self.at, "EIO", lasting=True),)

    @classmethod
    def parse(cls, id: str) -> FailedEachTime | None:
        found = _EACH_TIME.match(id)
        return None if found is None else cls(Point.parse(found[1]))

    def describe(self) -> str:
        when = point_in_words(self.at).removeprefix("right before ")
        return f"An input/output error was the answer to {when}, each time that it was tried."


@dataclass(frozen=True, slots=True)
class FailedTask(_LastingFault):
    """An input/output error of each attempt at a task, so that Spark gives up what the task is a
    part of: whoever has asked for that gets the error.

    Attributes:
        at: where the first attempt fails.
    """

    at: Point

    @property
    def id(self) -> str:
        return f"storage(EIO, {self.at}, each attempt)"

    @property
    def placed(self) -> tuple[Storage, ...]:
        step = StepId.parse(self.at.step)
        return tuple(
            Storage(Point(step.of_attempt(number), self.at.phase), "EIO")
            for number in range(_ATTEMPTS)
        )

    def fired(self, proofs: Sequence[str]) -> str:
        """Spark takes no attempt after the last one."""
        failed = list(filter(None, proofs))
        return f"{failed[0]}, in {len(failed)} attempt(s)" if failed else ""

    @classmethod
    def parse(cls, id: str) -> FailedTask | None:
        found = _EACH.match(id)
        return None if found is None else cls(Point.parse(found[1]))

    def describe(self) -> str:
        return f"Each attempt failed {point_in_words(self.at)}, until Spark gave up."
