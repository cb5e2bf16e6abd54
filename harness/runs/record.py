"""What is known of one run of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bettong.harness.checkers import Judgement
from bettong.harness.faults.point import DRIVER
from bettong.harness.faults.schedule import Schedule
from bettong.lineage.results import Anomaly, Outcome, Run
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run, judged.

    Attributes:
        schedule: what was planned.
        outcome: ``good``, ``violation``, ``not-injected``, ``vacuous`` or ``unknown``.
        events: the trace, in the order of arrival.
        judgement: expected against seen; after a forced replay, if one was asked for.
        replay_changed: the outputs were right until the last batch was forced to be done again.
        evidence: for each fault id, the proof that it fired.
        not_fired: planned faults without such proof.
        seconds: wall time.
        timings: seconds of each phase.
        outputs: ids and contents that a reader saw, in their order.
        note: why the outcome is unknown, or what else went on.
        times: when each event came, in seconds.
        again_changed: how every node came to its end after the last batch, if all was right until
            they were started again after that.
        jvms_spared: how many crashes and power cuts of the driver have spared its JVM.
    """

    schedule: Schedule
    outcome: Outcome
    events: Sequence[TraceEvent]
    judgement: Judgement
    replay_changed: bool = False
    evidence: Mapping[str, str] = field(default_factory=dict)
    not_fired: tuple[str, ...] = ()
    seconds: float = 0.0
    timings: Mapping[str, float] = field(default_factory=dict)
    outputs: tuple[tuple[str, str], ...] = ()
    note: str = ""
    times: Sequence[float] = ()
    again_changed: str = ""
    jvms_spared: int = 0

    @property
    def driver_crashed(self) -> bool:
        """Whether a crash of the driver, or a cut of its power, fired."""
        crashes = (f.id for f in self.schedule.faults if DRIVER in f.kills)
        return any(id in self.evidence for id in crashes)

    @property
    def anomalies(self) -> tuple[Anomaly, ...]:
        """What was wrong with the outputs."""
        return self.judgement.anomalies

    @property
    def step_ids(self) -> frozenset[str]:
        """Every step that was begun."""
        return frozenset(e.step for e in self.events if e.phase == "before")

    def to_run(self, trace: str | None = None) -> Run:
        """The line of this run in a result."""
        return Run(
            self.schedule.ids,
            self.outcome,
            dict(self.evidence),
            self.not_fired,
            self.anomalies,
            round(self.seconds, 3),
            trace,
            self.note,
        )
