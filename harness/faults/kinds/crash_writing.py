"""A node dies amid what it writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bettong.engine.steps import POWER_CUT
from bettong.harness.faults.actuator import RunActuator
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.fault import (
    Begun,
    DiskCall,
    DiskUse,
    Go,
    Premise,
    TakenStep,
    TakenSteps,
)
from bettong.harness.faults.node_fault import DeadlyFault
from bettong.harness.faults.point import Point
from bettong.harness.faults.wording import amid, ordinal
from bettong.lineage.faults import STORAGE
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class CrashWriting(DeadlyFault):
    """SIGKILL of every process of a node within a step of its own, or after it and before the
    thread's next one, right before the n-th ``sync``. What it has written is there when it comes
    back, in the machine's memory: it is durable only once somebody syncs it.

    Attributes:
        sync: before which sync there.
    """

    kind: ClassVar[str] = "crash-writing"
    bound: ClassVar[str] = STORAGE
    needed: ClassVar[tuple[str, ...]] = ("node",)
    optional: ClassVar[tuple[str, ...]] = ("at", "after", "sync")
    premises: ClassVar[tuple[Premise, ...]] = ("ends", "lives after")
    reports: ClassVar[str] = POWER_CUT

    sync: int = 1

    @property
    def id(self) -> str:
        which = f", sync {self.sync}" if self.sync > 1 else ""
        return f"crash-writing({self.node}, {self.at.short}{which})"

    @classmethod
    def parse(cls, entry: Entry) -> CrashWriting:
        if ("at" in entry) == ("after" in entry):
            raise entry.error("give one of at and after")
        at = entry.place("at") if "at" in entry else entry.moment()
        return cls(entry.text("node"), at, entry.count("sync", 1))

    def to_dict(self) -> dict[str, Any]:
        which = {"sync": self.sync} if self.sync > 1 else {}
        return {"node": self.node, self.at.written: self.at.place, **which}

    def describe(self) -> str:
        return (
            f"the {self.node} was killed {amid(self.at)}, before its {ordinal(self.sync)} sync "
            "there: what it had written was not durable yet; it came back"
        )

    @property
    def variety(self) -> str:
        return f"sync {self.sync}"

    def is_among(self, use: DiskUse) -> bool:
        return use.has_sync(self.sync)

    def begin(self, run: RunActuator) -> Begun | None:
        if self.node != run.node:
            return None  # another node takes this step
        return Begun("", answer=Go(cut=self.sync))

    def reported(self, event: TraceEvent, run: RunActuator) -> Begun | None:
        if event.step != f"{self.reports}{self.at.step}":
            return None
        outcome = run.crash(self.node, restart=True)
        return Begun(outcome.evidence, done=bool(outcome.fired))

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[CrashWriting]:
        later = premise == "lives after"
        at = Point(step.step, "after" if later else "before", step.number)
        calls = step.later_calls if later else step.calls
        return (cls(step.node, at, sync) for sync in _with_something_new(calls))


def _with_something_new(calls: Sequence[DiskCall]) -> Iterator[int]:
    """The numbers of the syncs before which something was written since the one before."""
    syncs, new = 0, False
    for call in calls:
        if not call.operation.startswith("sync"):
            new = True
            continue
        syncs += 1
        if new:
            yield syncs
        new = False
