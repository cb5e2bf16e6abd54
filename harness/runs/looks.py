"""What readers see while a run goes on: whole batches only, and nothing that is gone again.

What is wrong in between may be right in the end, for whoever starts again repairs it; a reader has
seen it all the same. So readers look at the edges of every commit, and whenever a fault has come
into force: amid a commit where it fails a call to the disk, and before a node that it has killed is
started again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from bettong.harness.checkers import Record, Snapshot, check_atomicity, check_stays_visible
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import PowerCut
from bettong.harness.faults.step_ids import FAULT, StepId
from bettong.harness.runs.observed import Observed
from bettong.lineage.results import Anomaly
from bettong.lineage.trace import TraceEvent

_COMMITS = frozenset({"batch=N/sink.commit", "receiver.commit/batch=N"})


@dataclass
class Looks:
    """The looks of one run's readers.

    They end at the step at which the power is cut: what that takes from a disk nobody reads before
    its node is back, and others may take steps before it is told that the cut has come into force.

    Args:
        look: reads every sink.
        faults: that are to fire in the run.
    """

    look: Callable[[], Observed]
    faults: Collection[Fault]
    _snapshots: list[Snapshot] = field(default_factory=list)
    _unreadable: list[Anomaly] = field(default_factory=list)
    _dark: bool = False

    def came(self, event: TraceEvent) -> None:
        """Something is about to happen, or has: look if it may have changed what readers see."""
        cuts = (fault for fault in self.faults if isinstance(fault, PowerCut))
        self._dark = self._dark or any(cut.at.step == event.step for cut in cuts)
        is_fault = event.step.startswith(FAULT)
        if self._dark or not (is_fault or StepId.parse(event.step).shape in _COMMITS):
            return
        seen = self.look()
        name = f"{event.phase} {event.step}"
        self._snapshots.append(Snapshot(name, frozenset(str(r.id) for r in seen.records)))
        self._unreadable += seen.unreadable[: 0 if self._unreadable else None]

    def judged(self, last: Sequence[Record]) -> tuple[Anomaly, ...]:
        """What was wrong in between.

        Args:
            last: what a reader sees when all is done, of which each says its batch.
        """
        batches: dict[str | int, set[str]] = {}
        for record in last:
            sink = str(record.id).partition("@")[2]
            of = f"{record.batch} of {sink}" if sink else str(record.batch)
            batches.setdefault(of, set()).add(str(record.id))
        return (
            *self._unreadable,
            *check_atomicity(batches, self._snapshots),
            *check_stays_visible(self._snapshots),
        )
