"""What a search takes from a run, read from its trace: why it went as it did, and what other runs
are compared with. Of other runs only the clean one has a part in it, so that runs can be read in
any order, and side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from hashlib import blake2b

from bettong.harness.faults.fault import DiskCall, DiskUse, Fault
from bettong.harness.faults.point import DRIVER, PointPhase
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.contracts import role_of
from bettong.harness.scenario import Scenario
from bettong.harness.search.equivalence import Recovery, recovery_of, same_crashes
from bettong.harness.search.occurrences import Reading
from bettong.harness.search.recovery import CleanRecords
from bettong.harness.search.trace_lineage import RunLineage, lineage_of, make_up
from bettong.lineage.graph import Lineage
from bettong.lineage.results import Outcome
from bettong.lineage.trace import TraceEvent

Moment = tuple[str, int, PointPhase]
"""A step, which time it is taken, and whether before or after it."""


Came = Mapping[Moment, DiskUse]
"""The moments that came in a run, and how the disk was used at them."""


def what_came(reading: Reading) -> Came:
    """Those that came in a run."""
    came: dict[Moment, DiskUse] = {}
    for o in reading.occurrences:
        over = o.ended is not None or o.failed is not None
        came[o.step, o.number, "before"] = _use(o.calls, o.reads) if over else DiskUse()
        if o.ended is not None:
            told = o.later_calls or o.later_reads
            came[o.step, o.number, "after"] = (
                _use(o.later_calls, o.later_reads) if told else DiskUse()
            )
    return came


def _use(calls: Sequence[DiskCall], reads: Sequence[str]) -> DiskUse:
    made = {call.number: call.operation for call in calls}
    return DiskUse(tuple(made.get(n, "") for n in range(1, max(made, default=0) + 1)), len(reads))


_ROLES = {"gateway": "gateway", "receiver": "receiver", "protocol": DRIVER, "sink": DRIVER}
"""Where a component runs."""


def opaque(scenario: Scenario) -> frozenset[str]:
    """The roles of nodes that run a component of the user's. What that writes is not always seen:
    it may open files itself, between two steps."""
    own = (c for c, named in scenario.classes.items() if not named.startswith("bettong."))
    return frozenset(_ROLES[component] for component in own)


@dataclass(frozen=True, slots=True)
class CleanRun:
    """What is known of the clean run.

    Attributes:
        lineage: why it was good.
        records: what its disks held.
        faults: ids of those that could hit it.
        stand_ins: crashes of it, each with the one that stands for it.
    """

    lineage: Lineage
    records: CleanRecords
    faults: frozenset[str]
    stand_ins: Mapping[str, Fault]


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A run as its trace tells it.

    Attributes:
        lineage: why it went as it did, and what it had in place of what the clean run had.
        faults: those that could hit it and not the clean run.
        stand_ins: ids of crashes, each with the one that stands for it.
        came: the moments that came, and how the disk was used at them.
        unread: steps whose causes cannot be known, with why.
        behaviour: equal for runs with the same steps and the same causes.
        recovery: what followed its fault, if it had one alone and that fired.
        records: what the disks held, if it had no fault.
        seconds: the time that reading took.
    """

    lineage: Lineage
    faults: tuple[Fault, ...]
    stand_ins: Mapping[str, str]
    came: Came
    unread: tuple[str, ...]
    behaviour: str
    recovery: Recovery | None
    records: CleanRecords | None
    seconds: float


@dataclass(frozen=True, slots=True)
class RunReader:
    """Reads the runs of one search.

    Attributes:
        batches: faults are placed in the first so many batches; None for all of them.
        kinds: of the faults that are asked for.
        clean: the clean run, once it is known.
        opaque: roles of nodes of which not all is seen that outlives them: no two of their crashes
            are known to be the same, and of no two faults that they are alike.
    """

    batches: int | None
    kinds: AbstractSet[str]
    clean: CleanRun | None = None
    opaque: AbstractSet[str] = frozenset()

    def read(self, events: Sequence[TraceEvent], schedule: Schedule, outcome: Outcome) -> ReadRun:
        """What a run with these faults and this outcome shows."""
        began = time.monotonic()
        clean, faults = self.clean, schedule.faults
        records = clean.records if clean is not None and faults else None
        run = lineage_of(events, self.batches, self._standing_for, self.kinds, records, self.opaque)
        if clean is not None and faults and outcome == "good":
            make_up(run.lineage, clean.lineage, faults)
        known = clean.faults if clean is not None else frozenset()
        alone = len(faults) == 1
        return ReadRun(
            lineage=run.lineage,
            faults=tuple(fault for id, fault in run.faults.items() if id not in known),
            stand_ins={
                id: crash.id
                for id, crash in run.same.items()
                if id in run.faults and crash.id in run.lineage.faults
            },
            came=what_came(run.reading),
            unread=tuple(run.reading.unread),
            behaviour="" if faults else _behaviour(run.reading),
            recovery=self._recovery(faults[0], run) if alone else None,
            records=None if faults else CleanRecords.of(run.reading, run.held),
            seconds=time.monotonic() - began,
        )

    def _recovery(self, fault: Fault, run: RunLineage) -> Recovery | None:
        found = recovery_of(fault, run.reading, run.batch, run.held)
        if found is None or not self.opaque:
            return found
        return replace(found, signature=fault.id, settled="", states={})

    def _standing_for(self, reading: Reading) -> Mapping[str, Fault]:
        """Crashes of a run, each with the one that stands for it. What stands for one that the
        clean run has as well, the clean run tells."""
        same = same_crashes(reading).items()
        own = {id: crash for id, crash in same if role_of(crash.place) not in self.opaque}
        if self.clean is None:
            return own
        known = self.clean.faults
        others = {id: crash for id, crash in own.items() if id not in known}
        return {**others, **self.clean.stand_ins}


def _behaviour(reading: Reading) -> str:
    steps = sorted(
        f"{o.name} <- {sorted(c.name for c in [*o.causes, *o.answers])}"
        for o in reading.occurrences
    )
    return blake2b("\n".join(steps).encode(), digest_size=16).hexdigest()
