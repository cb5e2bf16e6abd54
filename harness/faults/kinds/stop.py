"""A server is stopped in good order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, ClassVar

from bettong.harness.faults.actuator import RunActuator
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.fault import Begun, Premise, TakenStep, TakenSteps
from bettong.harness.faults.node_fault import DeadlyFault
from bettong.harness.faults.point import SERVERS, Point, PointPhase, Topology
from bettong.harness.faults.wording import moment
from bettong.lineage.faults import CRASH, WRITE

_TRIED: Mapping[Premise, str] = {
    "lives after": "gateway.append/",
    "lives before": "receiver.commit/",
}
"""Where a search tries it: while a server has what nobody was told to be safe, or to be visible."""


@dataclass(frozen=True, slots=True)
class Stop(DeadlyFault):
    """SIGTERM of a server, as at each update and each reboot of a machine: what it does at its end
    it does, and then it is started again, a day later by its clock. One that does not end is
    killed."""

    kind: ClassVar[str] = "stop"
    bound: ClassVar[str] = CRASH
    needed: ClassVar[tuple[str, ...]] = ("node",)
    optional: ClassVar[tuple[str, ...]] = ("before", "after")
    premises: ClassVar[tuple[Premise, ...]] = ("lives before", "lives after")

    @property
    def id(self) -> str:
        return f"stop({self.node}, {self.at})"

    def counts_as(self, kinds: AbstractSet[str]) -> str:
        """What it leaves may be wrong only when its node dies after that without it: so it fires
        alone, or with a crash of the same node, as a failed write does."""
        return WRITE if WRITE in kinds else self.bound

    @classmethod
    def parse(cls, entry: Entry) -> Stop:
        return cls(entry.text("node"), entry.moment())

    def to_dict(self) -> dict[str, Any]:
        return {"node": self.node, self.at.phase: self.at.place}

    def describe(self) -> str:
        at = moment(self.at)
        return f"the {self.node} was stopped in good order {at}, and came back a day later"

    def check(self, topology: Topology) -> None:
        if self.node not in SERVERS:
            raise ScheduleError(
                f"{self.id}: a stop is of a server, {' or '.join(SERVERS)}: crash the {self.node}"
            )

    def begin(self, run: RunActuator) -> Begun:
        outcome = run.stop(self.node)
        return Begun(outcome.evidence, done=bool(outcome.fired))

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[Stop]:
        phase: PointPhase = "before" if premise == "lives before" else "after"
        if step.number == 1 and step.node in SERVERS and step.step.startswith(_TRIED[premise]):
            yield cls(step.node, Point(step.step, phase, step.number))
