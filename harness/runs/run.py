"""One run of a scenario under one fault schedule, from its first process to the verdict.

A run ends when nothing more can happen: the sender has been told that all its messages are safe,
and the query has committed and released every one of them. Its last batch can then be forced to
be done once more, by deleting Spark's note that it was done; so what is judged is not only right,
but stays so. A run that does not get there is ``Stuck``.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bettong.engine import Application
from bettong.engine.endpoints import kept_as
from bettong.engine.ingest.acked import read_acked
from bettong.engine.ingest.journal import Journal
from bettong.engine.receiver import output as receiver
from bettong.engine.sinks import files
from bettong.harness.backends.base import Backend
from bettong.harness.checkers import Judgement, Record, check_outputs, stuck
from bettong.harness.checkers.oracle import expected_outputs, seen_outputs
from bettong.harness.cluster.nodes import NodeError, log_tail
from bettong.harness.cluster.scenario_cluster import Layout, RunCluster
from bettong.harness.conductor.run_control import RunControl
from bettong.harness.conductor.stage_numbers import StageNumbers
from bettong.harness.faults.schedule import Schedule
from bettong.harness.scenario import Messages, Scenario
from bettong.lineage.errors import BettongError
from bettong.lineage.results import Anomaly, Outcome, Run
from bettong.lineage.trace import TraceEvent

_LOOK_S = 0.05
_SENDER_LOST = 1
_SENDER_GAVE_UP = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run counts as stuck.

    Attributes:
        idle_s: seconds in which nothing happens.
        wall_s: seconds in all.
        repeats: steps taken again without any new one between.
    """

    idle_s: float = 60.0
    wall_s: float = 300.0
    repeats: int = 1000


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


class _StuckError(Exception):
    """The run does not end; the text says where it stands."""


class _Course:
    """The way of one run to its end."""

    def __init__(
        self,
        cluster: RunCluster,
        control: RunControl,
        layout: Layout,
        senders: Mapping[str, str],
        limits: Limits,
    ) -> None:
        self.cluster = cluster
        self.layout = layout
        self.control = control
        self.limits = limits
        self.deadline = time.monotonic() + limits.wall_s
        self.notes: list[str] = []
        self.sending = {node: stream for stream, node in senders.items()}
        self.sender_failed = False

    def until_drained(self) -> None:
        """Wait until the senders and the query have done all their work; raises _StuckError."""
        while self._at_work() or self.control.wake():
            self._look_after()
            if self.sender_failed and self.control.idle_seconds > 1.0:
                self.notes.append("the sender gave up; what was accepted has been waited for")
                return
            self._check_limits()
            self.control.wait(self._something_ended, _LOOK_S)
        self.cluster.forget("driver")

    def _at_work(self) -> bool:
        drained = self.cluster.nodes["driver"].poll() == 0
        return bool(self.sending) or not drained or self.cluster.has_live_zombies()

    def replay(self) -> None:
        """Have the last batch done once more, as after a crash right before its commit."""
        self.control.note(TraceEvent(self.cluster.undo_last_commit(), "after", "driver"))
        self.cluster.start("driver")
        self.until_drained()

    def _something_ended(self) -> bool:
        return bool(self.cluster.ended())

    def _look_after(self) -> None:
        if self.control.failure is not None:
            raise self.control.failure
        for name, status in self.cluster.ended().items():
            if name in self.sending and status == 0:
                del self.sending[name]
                self.cluster.forget(name)
            elif name in self.sending and status != _SENDER_GAVE_UP:
                self._sender_has_failed(name, status)
            elif name == "driver" and status == 0:
                continue
            else:
                self.notes.append(f"{name} ended with status {status} and was started again")
                try:
                    self.cluster.supervise(name)
                except NodeError as e:
                    raise _StuckError(str(e)) from e

    def _sender_has_failed(self, name: str, status: int) -> None:
        """The sender says that the gateway has lost messages; anything else is not its place."""
        outcome = self.layout.outcome(self.sending[name])
        if status != _SENDER_LOST or not outcome.exists():
            log = log_tail(self.cluster.nodes[name].log)
            raise NodeError(f"the {name} ended with status {status}: {log}")
        self.notes.append(json.loads(outcome.read_text())["error"])
        self.sender_failed = True
        self.cluster.forget(name)

    def _check_limits(self) -> None:
        c = self.control
        if c.idle_seconds > self.limits.idle_s and not self.cluster.starting:
            raise _StuckError(
                f"nothing happened for {self.limits.idle_s:g} s; {c.progress_summary()}"
            )
        if c.repeats > self.limits.repeats:
            raise _StuckError(f"{c.repeats} steps without a new one; {c.progress_summary()}")
        if time.monotonic() > self.deadline:
            raise _StuckError(f"not done after {self.limits.wall_s:g} s; {c.progress_summary()}")


def run_once(
    backend: Backend,
    scenario: Scenario,
    schedule: Schedule,
    folder: Path,
    *,
    messages: Messages | None = None,
    replay: bool = True,
    limits: Limits = Limits(),
    trace: Path | None = None,
) -> RunRecord:
    """Run a scenario once under a schedule and judge it.

    Args:
        folder: a folder of this run's own; what remains in it are logs and data.
        messages: the input, by default the scenario's.
        replay: whether to force the last batch to be done again. A run without faults is judged
            by what was seen before that.
        trace: file for the trace.

    Raises:
        ScheduleError: the schedule names what this backend does not have.
        BettongError: the system cannot be started.
    """
    schedule.check(backend.topology(scenario))
    began = time.monotonic()
    input_ = scenario.messages() if messages is None else messages
    application = scenario.load_application()
    layout = Layout(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for stream, sent in input_.items():
        layout.input(stream).write_bytes(b"".join(message + b"\n" for message in sent))
    clock = _Clock(began)
    run = f"{scenario.name}-{uuid.uuid4().hex[:12]}"

    also: list[Anomaly] = []
    drained: list[Record] | None = None

    def seen() -> list[Record]:
        return visible(application, scenario, layout, run, backend)

    with backend.cluster(scenario, layout) as cluster:
        control = RunControl(run, cluster, schedule, trace, StageNumbers())
        backend.conductor.begin(control)
        try:
            cluster.begin(control)
            clock.lap("start")
            course = _Course(cluster, control, layout, scenario.senders, limits)
            try:
                course.until_drained()
                clock.lap("run")
                if not course.sending and replay:
                    drained = seen()
                    course.replay()
                    clock.lap("replay")
            except _StuckError as e:
                also.append(stuck(str(e), ()))
            cluster.finish()
        finally:
            backend.conductor.end(control)
    clock.lap("end")
    accepted = input_
    if scenario.inputs == "gateway":
        accepted = {s: sent[: _accepted(layout, s, len(sent))] for s, sent in input_.items()}
    expected = expected_outputs(application, accepted, scenario.batch)
    if scenario.inputs == "kafka":  # a topic's one partition is a stream of its own
        expected = [replace(r, id=str(r.id).replace("/", "-0/", 1)) for r in expected]
    last = seen()
    judgement = check_outputs(expected, last, also=also)
    before = judgement if drained is None else check_outputs(expected, drained)
    clock.lap("judge")
    judged = judgement if schedule.faults else before
    return RunRecord(
        schedule,
        _outcome(judged, control.not_fired),
        control.events,
        judged,
        before.verdict == "valid" and judgement.verdict != "valid",
        control.evidence,
        control.not_fired,
        time.monotonic() - began,
        clock.laps,
        tuple((str(r.id), str(r.value)) for r in last),
        "; ".join([*course.notes, *([judged.reason] if judged.verdict == "unknown" else [])]),
        control.times,
    )


def visible(
    application: Application, scenario: Scenario, layout: Layout, run: str, backend: Backend
) -> list[Record]:
    """What a reader sees at every sink."""
    rows: dict[str, Iterable[Mapping[str, Any]]] = {}
    for sink in application.sinks:
        if scenario.outputs == "receiver":
            rows[sink.name] = receiver.read_rows(layout.receiver / kept_as(application, sink.name))
        elif scenario.outputs == "kafka":
            assert backend.broker is not None
            backend.broker.ensure()
            rows[sink.name] = backend.broker.rows(f"{run}.{sink.name}")
        else:
            folder = layout.files / sink.name
            rows[sink.name] = files.read_rows(folder) if folder.exists() else []
    return seen_outputs(rows)


def _outcome(judgement: Judgement, not_fired: tuple[str, ...]) -> Outcome:
    if judgement.verdict == "unknown":
        return "unknown"
    if judgement.verdict == "invalid":
        return "violation"
    return "not-injected" if not_fired else "good"


def _accepted(layout: Layout, stream: str, sent: int) -> int:
    """How many messages count: those that the journal has, and those that the sender was told
    are safe, whether the journal has them or not."""
    acked = layout.acked(stream)
    upto = read_acked(acked, stream)[0] if acked.exists() else 0
    journal = layout.gateway / "streams" / stream
    if journal.exists():
        try:
            with contextlib.closing(Journal(journal, stream)) as opened:
                upto = max(upto, opened.end)
        except BettongError:
            return sent  # damaged: whatever it had, it was given
    return min(upto, sent)


class _Clock:
    """Seconds of the phases of a run."""

    def __init__(self, began: float) -> None:
        self.laps: dict[str, float] = {}
        self._last = began

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self.laps[name] = round(now - self._last, 3)
        self._last = now
