"""The driver dies at a step."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bettong.harness.faults.kinds import Crash
from bettong.harness.faults.point import DRIVER, Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.wording import point_in_words

_ID = re.compile(r"crash\(driver, (?!amid )(.+)\)$")


@dataclass(frozen=True, slots=True)
class DriverCrash(QueryFault):
    """The driver dies, and the query is started again."""

    at: Point

    @property
    def placed(self) -> tuple[Crash]:
        return (Crash(DRIVER, self.at),)

    @classmethod
    def parse(cls, id: str) -> DriverCrash | None:
        found = _ID.match(id)
        return None if found is None else cls(Point.parse(found[1]))

    def describe(self) -> str:
        return f"The driver died {self._when}; the query was started again."

    @property
    def _when(self) -> str:
        """The one crash that most meet, in the order of what happened."""
        if self._before_commits and self.at.occurrence == 1:
            batch = StepId.parse(self.at.step).batch
            return f"when batch {batch} was written, before Spark recorded that (commits/{batch})"
        return point_in_words(self.at)

    @property
    def _before_commits(self) -> bool:
        return self.at.phase == "before" and StepId.parse(self.at.step).ends_batch

    @property
    def bound(self) -> str:
        return "crash"

    @property
    def rank(self) -> int | None:
        return 0 if self._before_commits else None

    @property
    def recovers_from(self) -> Point:
        return self.at

    def left(self, crash_point: CrashPoint, nothing_yet: bool) -> str:
        return crash_point.durable

    @property
    def mechanism(self) -> str:
        return "replay"

    @property
    def crashes(self) -> bool:
        return True

    @property
    def between_batches(self) -> bool:
        return self.at.phase == "after" and StepId.parse(self.at.step).ends_batch
