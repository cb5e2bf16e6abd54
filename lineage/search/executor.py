"""What the search asks of a system: run one fault schedule, judge it, and say why.

Protocols in the simulator and real clusters implement the same :class:`Executor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bettong.lineage.errors import BettongError
from bettong.lineage.faults import CLEAN, FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.results import Anomaly, Outcome, Run


@dataclass(frozen=True, slots=True)
class Execution:
    """One run under one schedule, judged.

    Attributes:
        schedule: ids of the faults that were planned.
        outcome: ``good``; ``violation``: a goal is broken; ``vacuous``: nothing was tested,
            because the precondition did not hold; ``not-injected``: a planned fault did not fire;
            ``unknown``: the run could not be judged.
        lineage: why the goals hold that do hold (their facts are marked as goals); of the clean
            run this says which goals there are.
        anomalies: what was wrong.
        evidence: for each fault id, the proof that it fired.
        not_fired: planned faults without such proof.
        fingerprint: equal for runs that behaved alike; two clean runs with different
            non-empty fingerprints make the whole answer unknown.
        seconds: wall time.
        trace: file of the run's trace, relative to the output directory.
        note: why the outcome is unknown, or anything else worth a line.
        details: anything that a report of this kind of system shows, JSON values only.
    """

    schedule: FaultSet
    outcome: Outcome
    lineage: Lineage = field(default_factory=Lineage)
    anomalies: tuple[Anomaly, ...] = ()
    evidence: Mapping[str, str] = field(default_factory=dict)
    not_fired: tuple[str, ...] = ()
    fingerprint: str = ""
    seconds: float = 0.0
    trace: str | None = None
    note: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def blind(self) -> bool:
        """Whether it showed nothing of its schedule."""
        return self.outcome in ("not-injected", "unknown")

    def to_run(self) -> Run:
        """The line of this execution in a result's run table."""
        return Run(
            faults=tuple(sorted(self.schedule)),
            outcome=self.outcome,
            evidence=dict(self.evidence),
            not_fired=self.not_fired,
            anomalies=self.anomalies,
            seconds=self.seconds,
            trace=self.trace,
            note=self.note,
        )


class BudgetSpentError(BettongError):
    """The time that a search may take ended in the midst of a run, which showed nothing."""


class Executor(Protocol):
    """A system under test.

    ``run`` may be called from several threads at once, at most ``parallel`` of them. It raises
    BettongError only when no answer can be had at all (the system does not start), and
    BudgetSpentError when the time is up; a run that merely went wrong is an :class:`Execution`
    with outcome ``unknown``.
    """

    @property
    def parallel(self) -> int:
        """How many runs may be under way at the same time; 1 for most systems."""
        ...

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        """Run the system from its beginning with exactly these faults."""
        ...


@dataclass(frozen=True, slots=True)
class SideBySide:
    """An executor whose runs may go on side by side, for a search that settles what they found
    itself, in the order in which their schedules were put up.

    Attributes:
        attempt: runs a schedule from its beginning; called from several threads.
        workers: how many at a time; asked while nothing runs.
    """

    attempt: Callable[[FaultSet], Execution]
    workers: Callable[[], int]

    @property
    def parallel(self) -> int:
        """How many runs may be under way at the same time."""
        return self.workers()

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        """Run with exactly these faults; what the run teaches is left to be settled."""
        return self.attempt(schedule)
