"""One run of a scenario under one fault schedule, from its first process to the verdict.

A run ends when nothing more can happen: the sender has been told that all its messages are safe,
and the query has committed and released every one of them. Its last batch can then be forced to
be done once more, by deleting Spark's note that it was done; or every node is killed, or its power
cut, and started again, and no fault fires any more. So what is judged is not only right, but stays
so. A run that does not get there is ``Stuck``.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

from bettong.engine import Application, interpret
from bettong.engine.interpreter import Interpretation
from bettong.harness.backends.base import Backend
from bettong.harness.checkers import Judgement, Record, check_outputs, judge, stuck, undecided
from bettong.harness.checkers.oracle import as_told, expected_outputs
from bettong.harness.checkers.registry import History, check_history, checkers
from bettong.harness.cluster.layout import Layout
from bettong.harness.conductor.moments import Moments
from bettong.harness.conductor.order import FiringOrder
from bettong.harness.conductor.run_control import RunControl
from bettong.harness.conductor.stage_numbers import StageNumbers
from bettong.harness.faults.point import DRIVER
from bettong.harness.faults.schedule import Schedule
from bettong.harness.faults.step_ids import StepId
from bettong.harness.runs.course import BlindError, Course, Limits, StuckError
from bettong.harness.runs.left_logs import check_logs
from bettong.harness.runs.left_over import left_over
from bettong.harness.runs.left_state import LeftState, check_left_state, left_state
from bettong.harness.runs.observed import Observed, accepted, boundaries, visible
from bettong.harness.runs.remains import remains
from bettong.harness.runs.sent import check_sent
from bettong.harness.runs.standing import standing
from bettong.harness.scenario import Messages, Scenario
from bettong.lineage.errors import BettongError
from bettong.lineage.faults import STORAGE
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
        again_changed: all was right until every node was started again after the last batch.
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
    again_changed: bool = False
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


def run_once(
    backend: Backend,
    scenario: Scenario,
    schedule: Schedule,
    folder: Path,
    *,
    messages: Messages | None = None,
    replay: bool = True,
    again: set[bytes] | None = None,
    power_cut: bool = False,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    trace: Path | None = None,
    on_step: Callable[[TraceEvent], None] = lambda event: None,
    order: FiringOrder | None = None,
    spares_jvm: bool = False,
) -> RunRecord:
    """Run a scenario once under a schedule and judge it.

    Args:
        folder: a folder of this run's own; what remains in it are logs and data.
        messages: the input, by default the scenario's.
        replay: whether to force the last batch to be done again. A run without faults is judged
            by what was seen before that.
        again: every node is killed and started again when all is done, unless what the run has left
            on the disks is in here; it is put in here if that changed nothing. What steps were
            taken then is in the file of the trace if it changed anything, and nowhere else.
        power_cut: what is not durable is lost then.
        trace: file for the trace.
        on_step: given each event of the trace as it comes.
        order: in which one of the faults is to fire.
        spares_jvm: a crash of the driver spares its JVM, where the backend can.

    Raises:
        ScheduleError: the schedule names what this backend does not have.
        BettongError: the system cannot be started, although no fault has fired.
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
    drained: Observed | None = None
    last: Observed | None = None
    until_drained: Sequence[TraceEvent] = ()
    died_before: Sequence[Anomaly] = ()
    left: bytes | None = None
    states: list[LeftState] = []
    left_behind: list[Sequence[Anomaly]] = []
    blind = ""
    unended: tuple[str, ...] = ()

    def seen() -> Observed:
        return visible(application, scenario, layout, run, backend)

    def note_state(power_was_cut: bool = False) -> None:
        if not course.all_sent:
            return
        if scenario.judges_state:
            states.append(left_state(application, layout))
        # A sender waits for no note to be durable, and none that has ended makes it again.
        hit = {node for f in schedule.faults if f.bound == STORAGE for node in f.nodes}
        senders = scenario.senders.items()
        sent = {stream: len(input_[stream]) for stream in scenario.senders}
        noted = {stream: sent[stream] for stream, node in senders if node not in hit}
        disturbed = power_was_cut or bool(schedule.faults)
        found = [*check_sent(layout, noted), *check_logs(layout, sent, undisturbed=not disturbed)]
        told = scenario.moments and not disturbed
        if told and not any(StepId.parse(event.step).is_wait for event in first.events):
            # each message lay until others had come, or until its stream had ended
            found.append(stuck("no batch was closed by time", expected="batches that time closes"))
        if not power_was_cut:  # what was removed may be back, for nobody waits for that
            found += left_over(layout, scenario.versions, schedule.faults)
        left_behind.append(found)

    with backend.cluster(scenario, layout, spares_jvm) as cluster:
        moments = Moments(scenario.moments)
        control = RunControl(
            run, cluster, schedule, trace, StageNumbers(), moments.answer, on_step, order
        )
        first = control
        course = Course(cluster, control, layout, scenario.senders, limits)
        courses = [course]
        backend.conductor.begin(control)
        try:
            try:
                course.begin()
                clock.lap("start")
                course.until_drained()
                note_state()
                clock.lap("run")
                if course.all_sent and (replay or again is not None):
                    drained, until_drained = seen(), tuple(control.events)
                    died_before = tuple(course.died.values())
                if course.all_sent and replay:
                    course.replay()
                    note_state()
                    clock.lap("replay")
                if course.all_sent and again is not None:
                    cluster.kill_servers()
                    if power_cut:
                        if scenario.outputs == "receiver":
                            last = seen()  # it makes its output again, which need not be durable
                        cluster.lose_power()
                        note_state(power_was_cut=True)
                    left = remains(layout) if scenario.outputs != "kafka" else b""
                if again is not None and left is not None and left not in again:
                    last = None
                    backend.conductor.end(control)
                    control = RunControl(
                        run, cluster, normalise=StageNumbers(), answer=moments.answer
                    )
                    course = Course(cluster, control, layout, scenario.senders, limits)
                    courses.append(course)
                    backend.conductor.begin(control)
                    course.again()
                    note_state(power_was_cut=power_cut)
                    clock.lap("again")
            except StuckError as e:
                if limits.over:
                    blind = "the budget ended within this run"
                unended = control.unended
                where = f"{e}; {control.progress_summary()}"
                also.append(stuck(where, nodes=standing(cluster, control)))
            except BlindError as e:
                blind = str(e)
            cluster.finish()
        finally:
            backend.conductor.end(control)
    clock.lap("end")
    also += (anomaly for course in courses for anomaly in course.died.values())
    events = [*first.events, *(control.events if control is not first else ())]
    taken_in = accepted(scenario, layout, input_)
    try:
        ends = boundaries(scenario, layout, taken_in)
    except BettongError as e:
        also.append(Anomaly("StateDivergence", seen=str(e)))
        ends = [{stream: len(sent) for stream, sent in taken_in.items()}]
    interpreted = interpret(application, taken_in, ends)
    expected = _expected(application, scenario, taken_in, interpreted)
    diverged = (check_left_state(application, interpreted, state) for state in states)
    wrong = [(*a, *b) for a, b in zip_longest(diverged, left_behind, fillvalue=())]
    last = last or seen()
    judgement = (
        undecided(blind)
        if blind
        else _judge(
            History(expected, last.records, events), last, also, next(filter(None, wrong), ())
        )
    )
    if unended:
        judgement = _all_the_same(judgement, unended)
    before = judgement
    if drained is not None:
        history = History(expected, drained.records, until_drained)
        before = _judge(history, drained, died_before, wrong[0] if wrong else ())
    changed = before.verdict == "valid" and judgement.verdict != "valid"
    clock.lap("judge")
    judged = judgement if schedule.faults or again is not None else before
    if again is not None and left and judged.verdict == "valid":
        again.add(left)
    again_changed = changed and control is not first and judgement.verdict == "invalid"
    if again_changed:
        _append(trace, control.events)
    return RunRecord(
        schedule,
        _outcome(judged, first.not_fired),
        first.events,
        judged,
        changed and not again_changed,
        first.evidence,
        first.not_fired,
        time.monotonic() - began,
        clock.laps,
        tuple((str(r.id), str(r.value)) for r in last.records),
        "; ".join(
            [
                *(note for course in courses for note in course.notes),
                *([judged.reason] if judged.verdict == "unknown" else []),
            ]
        ),
        first.times,
        again_changed,
        cluster.jvms_spared,
    )


def _append(trace: Path | None, events: Sequence[TraceEvent]) -> None:
    """What came after the last batch, to the file of what came until then."""
    if trace is not None:
        with trace.open("a", encoding="utf-8") as file:
            file.writelines(event.to_json() + "\n" for event in events)


def _expected(
    application: Application,
    scenario: Scenario,
    messages: Messages,
    interpreted: Interpretation,
) -> list[Record]:
    expected = expected_outputs(application, interpreted)
    if scenario.inputs == "kafka":  # a topic's one partition is a stream of its own
        expected = [replace(r, id=str(r.id).replace("/", "-0/", 1)) for r in expected]
    if scenario.rows and messages == scenario.messages():
        expected = as_told(expected, scenario.rows)
    return expected


def _judge(
    history: History, seen: Observed, also: Sequence[Anomaly], left: Sequence[Anomaly]
) -> Judgement:
    found, failures = check_history(history, checkers())
    also = [*seen.unreadable, *also, *found]
    judgement = check_outputs(history.expected, history.observed, also=also)
    if left and judgement.guarantee == "effectively-once":
        judgement = check_outputs(history.expected, history.observed, also=[*also, *left])
    return (
        undecided("; ".join(failures)) if failures and judgement.verdict == "valid" else judgement
    )


def _all_the_same(judgement: Judgement, unended: tuple[str, ...]) -> Judgement:
    """The judgement of a run that did not end while faults were in force that had not come to
    their own end: that it did not, and what is missing, says nothing."""
    wrong = [a for a in judgement.anomalies if a.kind not in ("Stuck", "Loss")]
    if wrong:
        return judge(wrong)
    return undecided(f"{', '.join(unended)} was still in force when the run ended")


def _outcome(judgement: Judgement, not_fired: tuple[str, ...]) -> Outcome:
    if judgement.verdict == "unknown":
        return "unknown"
    if judgement.verdict == "invalid":
        return "violation"
    return "not-injected" if not_fired else "good"


class _Clock:
    """Seconds of the phases of a run."""

    def __init__(self, began: float) -> None:
        self.laps: dict[str, float] = {}
        self._last = began

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self.laps[name] = round(now - self._last, 3)
        self._last = now
