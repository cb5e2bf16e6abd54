"""The power of a node fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from bettong.engine.steps import POWER_CUT
from bettong.engine.storage.durability import KEEPS, Keep
from bettong.harness.faults.actuator import RunActuator
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.fault import Begun, DiskUse, Go, Premise, TakenStep, TakenSteps
from bettong.harness.faults.node_fault import DeadlyFault
from bettong.harness.faults.point import Point, PointPhase, Topology
from bettong.harness.faults.wording import amid, moment
from bettong.lineage.faults import STORAGE
from bettong.lineage.trace import TraceEvent

_KEPT = {
    "nothing": "nothing that was not durable was left",
    "names": "of what was not durable, names were left, and no bytes",
    "content": "of what was not durable, bytes were left, and no names",
    "half": "the last write was left in half",
    "zeros": "the last write reads as zeros",
}


@dataclass(frozen=True, slots=True)
class PowerCut(DeadlyFault):
    """The power of a node is cut at the edge of a step, its own or another node's, or within a
    step of its own, or after it and before the thread's next one, right before the n-th ``sync``:
    what is not durable by then is lost. The node comes back.

    Attributes:
        sync: before which sync there; 0 for the edge itself.
        keep: what is left of what is not durable.
    """

    kind: ClassVar[str] = "power-cut"
    bound: ClassVar[str] = STORAGE
    needed: ClassVar[tuple[str, ...]] = ("node",)
    optional: ClassVar[tuple[str, ...]] = ("at", "sync", "before", "after", "keep")
    premises: ClassVar[tuple[Premise, ...]] = ("stays",)
    reports: ClassVar[str] = POWER_CUT

    sync: int = 1
    keep: Keep = "half"

    @property
    def id(self) -> str:
        which = f", sync {self.sync}" if self._tells_sync else ""
        kept = "" if self.keep == self._usual else f", keep {self.keep}"
        return f"power-cut({self.node}, {self.at if self._at_edge else self.at.short}{which}{kept})"

    @property
    def _tells_sync(self) -> bool:
        """Within a step the first one is meant without it; after a step that would be the edge."""
        return self.sync > (1 if self.at.phase == "before" else 0)

    @property
    def _at_edge(self) -> bool:
        return self.sync == 0

    @property
    def _usual(self) -> Keep:
        return "nothing" if self._at_edge else "half"

    @classmethod
    def parse(cls, entry: Entry) -> PowerCut:
        if "at" in entry and ("before" in entry or "after" in entry):
            raise entry.error("give one of at, before and after")
        if "before" in entry and "sync" in entry:
            raise entry.error("sync goes with at or after: nothing is synced before the step")
        at = entry.place("at") if "at" in entry else entry.moment()
        sync = entry.count("sync", 1) if "at" in entry or "sync" in entry else 0
        if isinstance(entry.value("keep"), int):
            keep: Keep = entry.count("keep")
        else:
            usual = "half" if sync else "nothing"
            keep = entry.one_of("keep", tuple(map(str, KEEPS)), usual)  # type: ignore[assignment]
        return cls(entry.text("node"), at, sync, keep)

    def to_dict(self) -> dict[str, Any]:
        where = {(str(self.at.phase) if self._at_edge else self.at.written): self.at.place}
        which = {"sync": self.sync} if self._tells_sync else {}
        kept = {} if self.keep == self._usual else {"keep": self.keep}
        return {"node": self.node, **where, **which, **kept}

    def describe(self) -> str:
        when = moment(self.at) if self._at_edge else amid(self.at)
        kept = _KEPT.get(
            str(self.keep),
            f"the {self.keep} oldest changes were left of those not \
durable",
        )
        return f"the power of the {self.node} was cut {when}, and {kept}"

    @property
    def variety(self) -> str:
        return f"{self.keep} sync {self.sync}"

    @property
    def place(self) -> str:
        return f"{self.node}, keep {self.keep}"

    def is_among(self, use: DiskUse) -> bool:
        return use.has_sync(self.sync)

    def begin(self, run: RunActuator) -> Begun | None:
        if self._at_edge:
            outcome = run.cut_power(self.node, self.keep)
            return Begun(outcome.evidence, done=bool(outcome.fired))
        if self.node != run.node:
            return None  # another node takes this step
        return Begun("", answer=Go(cut=self.sync))

    def reported(self, event: TraceEvent, run: RunActuator) -> Begun | None:
        if self._at_edge or event.step != f"{self.reports}{self.at.step}":
            return None
        outcome = run.cut_power(self.node, self.keep)
        return Begun(outcome.evidence, done=bool(outcome.fired))

    @classmethod
    def singles(cls, event: TraceEvent, topology: Topology, occurrence: int) -> Iterable[PowerCut]:
        phases: tuple[PointPhase, ...] = ("before", "after")
        if event.node in topology.nodes:
            for phase in phases:
                yield cls(event.node, Point(event.step, phase, occurrence), 0, "nothing")

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[PowerCut]:
        return (cls(*loss) for loss in run.power_losses(step))
