"""An endpoint turns connections away."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from bettong.harness.faults.kinds import Cut
from bettong.harness.faults.point import DRIVER, Point
from bettong.harness.queries.faults.query_fault import Injection, QueryFault
from bettong.harness.queries.faults.wording import point_in_words
from bettong.lineage.trace import TraceEvent

_ONCE = re.compile(r"refuse-once\(([^,]+), (.+)\)$")
_LASTING = re.compile(r"cut\(driver\|([^,]+), from (.+)\)$")


class _Refusal(QueryFault):
    """An endpoint does not take a connection."""

    __slots__ = ()

    beside_steps: ClassVar[bool] = True

    @property
    def bound(self) -> str:
        return "cut"

    @property
    def mechanism(self) -> str:
        return "wire"

    @property
    def swallowable(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Refused(_Refusal):
    """From a step on an endpoint refuses connections, for as long as the driver tries.

    Attributes:
        endpoint: its name.
        start: when.
    """

    endpoint: str
    start: Point

    @property
    def placed(self) -> tuple[Cut]:
        return (Cut((DRIVER,), (self.endpoint,), self.start),)

    @classmethod
    def parse(cls, id: str) -> Refused | None:
        found = _LASTING.match(id)
        return None if found is None else cls(found[1], Point.parse(found[2]))

    def describe(self) -> str:
        return (
            f"{point_in_words(self.start).capitalize()}, {self.endpoint} closed its connections "
            "and refused new ones for as long as the query tried."
        )


@dataclass(frozen=True, slots=True)
class RefusedOnce(_Refusal):
    """From a step on an endpoint turns one connection away, and has closed those that were open.

    Attributes:
        endpoint: its name.
        at: when.
    """

    endpoint: str
    at: Point

    @property
    def id(self) -> str:
        return f"refuse-once({self.endpoint}, {self.at})"

    @classmethod
    def parse(cls, id: str) -> RefusedOnce | None:
        found = _ONCE.match(id)
        return None if found is None else cls(found[1], Point.parse(found[2]))

    def describe(self) -> str:
        when = point_in_words(self.at).capitalize()
        return f"{when}, {self.endpoint} closed its connections and turned the next one away."

    def met(self, event: TraceEvent, run: Injection) -> None:
        if self.at.is_of(event):
            run.turn_away(self.id, self.endpoint)

    @property
    def place(self) -> str:
        return self.endpoint

    @property
    def rank(self) -> int:
        return 2
