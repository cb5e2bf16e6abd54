"""What a run rests on that a fault can take away: the leaves of its lineage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from bettong.harness.faults import registry
from bettong.harness.faults.fault import Fault, Premise, TakenSteps
from bettong.harness.faults.point import Point, PointPhase
from bettong.harness.faults.step_ids import StepId
from bettong.harness.search.occurrences import Occurrence
from bettong.lineage.faults import Fault as BoundedFault
from bettong.lineage.graph import Lineage

Batches = Callable[[str], int | None]


def is_within(step: str, batch_of: Batches, batches: int | None) -> bool:
    """Whether faults at a step are within the first so many batches, None for all: so they are at
    what comes ahead of the first of them."""
    if batches is None:
        return True
    batch = batch_of(step)
    return StepId.parse(step).is_ahead if batch is None else batch < batches


@dataclass(slots=True)
class LeafBuilder:
    """Makes the leaves of one run's lineage.

    Attributes:
        lineage: takes them in.
        batch: gives the batch of a step.
        batches: faults only at steps of the first so many batches; None for all.
        kinds: of the faults that are asked for, as bounds count them.
        same: faults, each with the one that stands for it.
        run: all of the run.
        injected: the faults that had fired so far.
        faults: the harness's faults that leaves name, by id.
        made: of the leaves so far the faults that take them away, each with the node whose life it
            is, if it is one's.
    """

    lineage: Lineage
    batch: Batches
    batches: int | None
    kinds: AbstractSet[str]
    same: Mapping[str, Fault]
    run: TakenSteps
    injected: list[Fault] = field(default_factory=list)
    faults: dict[str, Fault] = field(default_factory=dict)
    made: list[tuple[Sequence[str], str]] = field(default_factory=list)
    _kinds: dict[Premise, list[type[Fault]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind in registry.kinds().values():
            for premise in kind.premises if kind.bound in self.kinds else ():
                self._kinds.setdefault(premise, []).append(kind)

    def owed(self, fault: Fault) -> str:
        """What happened only because a fault had fired."""
        return owed(self.lineage, fault)

    def request(self, o: Occurrence) -> str:
        """A request arrives."""
        found = self._against("arrives", o)
        id = ", no ".join([f"arrives({o.name})", *(fault.id for fault in found)])
        return self._leaf(id, found, o.link or "", o)

    def reply(self, o: Occurrence) -> str:
        """Its reply arrives."""
        return self._leaf(f"answered({o.name})", self._against("answered", o), o.link or "", o)

    def ended(self, o: Occurrence) -> Iterable[str]:
        """What has to be so for a step to end well besides that, e.g. that the disk takes what it
        writes. Where the fault has fired and the step has ended all the same, it has ended
        because of it, as far as anyone knows."""
        injected = {fault.id for fault in self.injected}
        for fault in self._against("ends", o):
            if fault.leaves_step and fault.id in injected:
                yield self.owed(fault)
            else:
                place = next(iter(fault.links), o.node)
                yield self._leaf(f"ends({o.name}), no {fault.id}", [fault], place, o)

    def stays(self, o: Occurrence) -> Iterable[str]:
        """What a step has written is still there, whatever its node suffers later."""
        for fault in self._against("stays", o):
            if self.within(fault.points[0].step):
                yield self._leaf(f"stays({o.name}), no {fault.id}", [fault], o.node, o)

    def lives(self, o: Occurrence, phase: PointPhase) -> str:
        """A node lives at this moment: it is not killed, nor does it stand still until another
        one takes its place."""
        found = self._against("lives before" if phase == "before" else "lives after", o)
        at = Point(o.step, phase, o.number)
        folded = [self._standing_for(fault, o) for fault in found]
        id = f"lives({o.node}, {at})" if not folded else ""
        leaf = self._leaf(id or f"no {', no '.join(f.id for f in folded)}", folded, o.node, o)
        self.made[-1] = self.made[-1][0], o.node
        return leaf

    def _against(self, premise: Premise, o: Occurrence) -> list[Fault]:
        kinds = self._kinds.get(premise, ())
        return [fault for kind in kinds for fault in kind.leaves(premise, o, self.run)]

    def _standing_for(self, fault: Fault, o: Occurrence) -> Fault:
        stands = self.same.get(fault.id)
        if stands is None or not (self.within(o.step) and self.within(stands.points[0].step)):
            return fault
        self.faults[fault.id] = fault
        return stands

    def within(self, step: str) -> bool:
        """Whether faults at this step are within the first batches."""
        return is_within(step, self.batch, self.batches)

    def _leaf(self, id: str, found: Sequence[Fault], place: str, at: Occurrence) -> str:
        if not self.within(at.step):
            self.made.append(((), ""))
            return self.lineage.leaf(id)
        by_id = {fault.id: fault for fault in found}
        self.faults |= by_id
        self.made.append((tuple(by_id), ""))
        named = [
            BoundedFault(fault_id, f.counts_as(self.kinds), place=place, time=at.begun)
            for fault_id, f in by_id.items()
        ]
        return self.lineage.leaf(id, named)


def owed(lineage: Lineage, fault: Fault) -> str:
    """What happened only because a fault had fired."""
    known = lineage.faults.get(fault.id) or BoundedFault(fault.id, fault.bound)
    return lineage.leaf(f"because of {fault.id}", [known], lost=True)
