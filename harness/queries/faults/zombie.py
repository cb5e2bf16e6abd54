"""A driver lives on beside its successor."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bettong.harness.faults.kinds import Pause
from bettong.harness.faults.point import DRIVER, Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.wording import point_in_words

_ID = re.compile(r"pause\(driver, from (.+) until (.+)\)$")


@dataclass(frozen=True, slots=True)
class Zombie(QueryFault):
    """The driver is paused, another one takes over and ends the work, then the first goes on."""

    start: Point
    until: Point

    @property
    def takes_over(self) -> bool:
        return True

    @property
    def placed(self) -> tuple[Pause]:
        return (Pause(DRIVER, self.start, self.until),)

    @classmethod
    def parse(cls, id: str) -> Zombie | None:
        found = _ID.match(id)
        return None if found is None else cls(Point.parse(found[1]), Point.parse(found[2]))

    def describe(self) -> str:
        return (
            f"The driver stood still {point_in_words(self.start)}, a new one took over and ended "
            "the work; then the old one went on."
        )

    @property
    def bound(self) -> str:
        return "pause"

    @property
    def rank(self) -> int | None:
        return 3 if StepId.parse(self.start.step).file is None else None

    @property
    def mechanism(self) -> str:
        return "zombie"

    @property
    def doubled(self) -> str:
        return "Both drivers wrote them."
