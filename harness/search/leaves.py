"""What a run rests on that a fault can take away: the leaves of its lineage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from bettong.harness.faults import kinds as harness
from bettong.harness.faults.kinds import DRIVER, Point
from bettong.harness.faults.step_ids import is_push, is_stored
from bettong.harness.search.occurrences import Occurrence
from bettong.harness.search.partitions import Partitions
from bettong.lineage.faults import CRASH, DUPLICATE, LOSS, PARTITION, PAUSE, STORAGE, Fault
from bettong.lineage.graph import Lineage

_NAMES = {
    "crash": CRASH,
    "cut": PARTITION,
    "duplicate": DUPLICATE,
    "pause": PAUSE,
    "power-cut": STORAGE,
    "storage": STORAGE,
}

Batches = Callable[[str], int | None]


def kind_of(fault: str) -> str:
    """What the bounds count a fault as, by its id."""
    return _NAMES.get(fault.partition("(")[0], LOSS)


@dataclass(slots=True)
class LeafBuilder:
    """Makes the leaves of one run's lineage.

    Attributes:
        lineage: takes them in.
        batch: tells the batch of a step.
        batches: faults only at steps of the first so many batches; None for all.
        kinds: of the faults that are asked for.
        same: crashes, each with the one that stands for it.
        partitions: the cuts that lose each request.
        struck: ids of the faults that had struck so far.
        faults: the harness's faults that leaves name, by id.
    """

    lineage: Lineage
    batch: Batches
    batches: int | None
    kinds: AbstractSet[str]
    same: Mapping[str, harness.Crash]
    partitions: Partitions
    struck: list[str] = field(default_factory=list)
    faults: dict[str, harness.Fault] = field(default_factory=dict)

    def owed(self, fault: str) -> str:
        """What happened only because a fault had struck."""
        return owed(self.lineage, fault)

    def request(self, o: Occurrence) -> str:
        """A request arrives: it is not lost, nor are the two sides cut off from each other."""
        assert o.link is not None
        found: list[tuple[harness.Fault, str]] = []
        if LOSS in self.kinds:
            found.append((harness.Omit(o.link, _at(o)), LOSS))
        cuts = self.partitions.losing(o) if PARTITION in self.kinds else ()
        found += [(cut, PARTITION) for cut in cuts]
        id = ", no ".join([f"arrives({o.name})", *(cut.id for cut in cuts)])
        return self._leaf(id, found, o.link, o)

    def reply(self, o: Occurrence) -> str:
        """Its reply arrives."""
        assert o.link is not None
        found = [(harness.OmitReply(o.link, _at(o)), LOSS)] if LOSS in self.kinds else []
        return self._leaf(f"answered({o.name})", found, o.link, o)

    def ended(self, o: Occurrence) -> Iterable[str]:
        """What has to be so for a step to end well besides that: the disk takes what it writes,
        its request arrives once. Where the fault has struck and the step has ended all the same,
        it has ended because of it, as far as anyone knows."""
        if STORAGE in self.kinds and is_stored(o.step, o.link):
            refused = harness.Storage(Point(o.step, "before", o.number), "ENOSPC")
            unsure = harness.Storage(Point(o.step, "after", o.number), "EIO")
            yield self._leaf(f"written({o.name})", [(refused, STORAGE)], o.node, o)
            if unsure.id in self.struck:
                yield self.owed(unsure.id)
            else:
                yield self._leaf(f"known written({o.name})", [(unsure, STORAGE)], o.node, o)
        for sync in range(1, o.synced + 1) if STORAGE in self.kinds else ():
            cut = harness.PowerCut(o.node, _at(o), sync)
            yield self._leaf(f"whole({o.name}, {sync})", [(cut, STORAGE)], o.node, o)
        if DUPLICATE in self.kinds and o.link is not None and harness.repeats(o.link):
            twice = harness.Duplicate(o.link, _at(o))
            if twice.id in self.struck:
                yield self.owed(twice.id)
            else:
                yield self._leaf(f"arrives once({o.name})", [(twice, DUPLICATE)], o.link, o)

    def lives(self, o: Occurrence, phase: harness.PointPhase) -> str:
        """A node lives at this moment: it is not killed, nor does it stand still until the driver
        is replaced or a client asks again."""
        crash = harness.Crash(o.node, Point(o.step, phase, o.number))
        stands = self.same.get(crash.id)
        found: list[tuple[harness.Fault, str]] = []
        if stands is not None and self._within(o.step) and self._within(stands.at.step):
            self.faults[crash.id] = crash
            crash = stands
        if CRASH in self.kinds:
            found.append((crash, CRASH))
        pause = self._pause(o) if PAUSE in self.kinds and phase == "before" else None
        if pause is not None:
            found.append((pause, PAUSE))
        id = ", no ".join([f"no {crash.id}", *([pause.id] if pause else [])])
        return self._leaf(id, found, o.node, o)

    def _pause(self, o: Occurrence) -> harness.Pause | None:
        """The driver is replaced meanwhile; a server goes on when the client that has asked for
        this step is about to ask again."""
        if o.node == DRIVER:
            return harness.Pause(o.node, _at(o), replace=True)
        asked = (c for c in o.causes if (c.link or "").endswith(f"->{o.node}"))
        request = next((c for c in asked if not c.done_at(o.begun) or is_push(c.step)), None)
        if request is None:
            return None
        return harness.Pause(o.node, _at(o), self.partitions.tried_again(request))

    def _within(self, step: str) -> bool:
        """Whether faults at this step are within the first batches."""
        if self.batches is None:
            return True
        batch = self.batch(step)
        return batch is not None and batch < self.batches

    def _leaf(
        self, id: str, found: Sequence[tuple[harness.Fault, str]], place: str, at: Occurrence
    ) -> str:
        if not self._within(at.step):
            return self.lineage.leaf(id)
        self.faults |= {fault.id: fault for fault, _ in found}
        named = [Fault(fault.id, kind, place=place, time=at.begun) for fault, kind in found]
        return self.lineage.leaf(id, named)


def owed(lineage: Lineage, fault: str) -> str:
    """What happened only because a fault had struck."""
    known = lineage.faults.get(fault) or Fault(fault, kind_of(fault))
    return lineage.leaf(f"because of {fault}", [known], lost=True)


def _at(o: Occurrence) -> Point:
    return Point(o.step, "before", o.number)
