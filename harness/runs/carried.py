"""One run of a system as it is carried out, from its first process until nothing more can happen.

That is so when the sender has been told that all its messages are safe, and the query has
committed and released every one of them. Its last batch can then be forced to be done once more, by
deleting Spark's note that it was done; or every node is killed and started again, on the files as
they are and on what a power cut leaves of them, and no fault fires any more. So what is judged is
not only right, but stays so. A run that does not get there is ``Stuck``.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bettong.harness.backends.base import Backend
from bettong.harness.checkers import stuck
from bettong.harness.cluster.layout import Layout
from bettong.harness.cluster.scenario_cluster import RunCluster
from bettong.harness.conductor.moments import Moments
from bettong.harness.conductor.order import FiringOrder
from bettong.harness.conductor.run_control import RunControl
from bettong.harness.conductor.stage_numbers import StageNumbers
from bettong.harness.faults.schedule import Schedule
from bettong.harness.faults.step_ids import StepId
from bettong.harness.runs.course import BlindError, Course, Limits, StuckError
from bettong.harness.runs.kept_files import KeptFiles
from bettong.harness.runs.left_fences import check_fences
from bettong.harness.runs.left_logs import check_logs, commits_disturbed, swept_in_the_end
from bettong.harness.runs.left_notes import check_notes
from bettong.harness.runs.left_numbers import check_numbers
from bettong.harness.runs.left_over import left_over
from bettong.harness.runs.left_state import LeftState, left_state
from bettong.harness.runs.looks import Looks
from bettong.harness.runs.observed import Observed, visible
from bettong.harness.runs.remains import remains
from bettong.harness.runs.sent import check_sent, to_be_noted
from bettong.harness.runs.standing import standing
from bettong.harness.scenario import Messages, Scenario
from bettong.lineage.results import Anomaly
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class Asked:
    """How a run is to be carried out.

    Attributes:
        replay: whether to force the last batch to be done again.
        again: every node is killed and started again when all is done, unless what the run has left
            on the disks is in here; that is added if the start changes nothing.
        power_cut: after that what was not durable is lost, and they are started on what is left.
        limits: when it counts as stuck.
        trace: file for the trace.
        on_step: given each event of the trace as it comes.
        order: in which one of the faults is to fire.
        spares_jvm: a crash or power cut of the driver spares its JVM, where the backend can.
    """

    replay: bool = True
    again: set[bytes] | None = None
    power_cut: bool = False
    limits: Limits = Limits()  # noqa: RUF009 - immutable
    trace: Path | None = None
    on_step: Callable[[TraceEvent], None] = lambda event: None
    order: FiringOrder | None = None
    spares_jvm: bool = False


KILLED = "every node was killed"
POWER_CUT = "the power was cut"
"""How all nodes of a run come to their end."""

_MOST_BYTES = 1 << 16
"""Of input, where readers look at the outputs time and again."""


class Carried:
    """One run; ``carry_out`` is called once, and the attributes say then what came of it.

    Attributes:
        scenario: what is run; ``application``: its application, ``messages``: its input.
        layout: where the run's files are.
        run: its id.
        first: the book of what went on until every node was started again, if that was done.
        control: the book of what went on last.
        courses: what each book's nodes did.
        drained: what a reader saw when all was done, if anything was to be done again after that.
        until_drained: the trace until then.
        died_before: nodes that had ended until then although nothing excuses that.
        last: what a reader saw when the power was cut, where a sink need not keep it.
        looks: what readers saw before all was done.
        left: what every node is to be started on, or was last; empty if that cannot be told.
        how_ended: how every node came to its end when all was done.
        states: the state that was left, each time when all was done.
        left_behind: what was wrong with all else that was left, each time.
        stuck: that it did not end.
        blind: why it cannot be judged.
        unended: faults that had not come to their own end when it did not end.
        jvms_spared: how many crashes and power cuts have spared the driver's JVM.
        laps: seconds of each phase.
    """

    def __init__(
        self,
        backend: Backend,
        scenario: Scenario,
        schedule: Schedule,
        layout: Layout,
        messages: Messages,
        asked: Asked,
    ) -> None:
        self._backend = backend
        self.scenario = scenario
        self.application = scenario.load_application()
        self._schedule = schedule
        self.layout = layout
        self.messages = messages
        self._asked = asked
        self._moments = Moments(scenario.moments)
        self.looks = Looks(self.seen, schedule.faults)
        size = sum(len(message) for sent in messages.values() for message in sent)
        self._is_looked_at = scenario.outputs != "kafka" and size <= _MOST_BYTES
        self._lap_began = time.monotonic()
        self.run = f"{scenario.name}-{uuid.uuid4().hex[:12]}"
        self.courses: list[Course] = []
        self.drained: Observed | None = None
        self.until_drained: Sequence[TraceEvent] = ()
        self.died_before: Sequence[Anomaly] = ()
        self.last: Observed | None = None
        self.left = b""
        self.how_ended = ""
        self.states: list[LeftState] = []
        self.left_behind: list[Sequence[Anomaly]] = []
        self.stuck: list[Anomaly] = []
        self.blind = ""
        self.unended: tuple[str, ...] = ()
        self.jvms_spared = 0
        self.laps: dict[str, float] = {}

    def carry_out(self, is_right: Callable[[], bool]) -> None:
        """Args:
            is_right: whether nothing was wrong so far; asked before what would show it is gone.

        Raises:
            BettongError: the system cannot be started, although no fault has fired.
        """
        asked = self._asked
        with self._backend.cluster(self.scenario, self.layout, asked.spares_jvm) as cluster:
            self.first = self.control = RunControl(
                self.run,
                cluster,
                self._schedule,
                asked.trace,
                StageNumbers(),
                self._moments.answer,
                self._came,
                asked.order,
            )
            self._backend.conductor.begin(self.control)
            try:
                try:
                    self._until_drained(cluster)
                    if asked.again is not None and self.courses[-1].all_sent:
                        self._end_and_start_again(cluster, asked.again, is_right)
                except StuckError as e:
                    self._ended_stuck(cluster, e)
                except BlindError as e:
                    self.blind = str(e)
                cluster.finish()
            finally:
                self._backend.conductor.end(self.control)
            self.jvms_spared = cluster.jvms_spared
        self.lap("end")

    def _came(self, event: TraceEvent) -> None:
        self._asked.on_step(event)
        if self._is_looked_at:
            self.looks.came(event)

    def seen(self) -> Observed:
        """What a reader sees now."""
        return visible(self.application, self.scenario, self.layout, self.run, self._backend)

    @property
    def events(self) -> Sequence[TraceEvent]:
        """The whole trace."""
        return [*self.first.events, *(self.control.events if self.started_again else ())]

    @property
    def started_again(self) -> bool:
        """Whether every node was started once more."""
        return self.control is not self.first

    @property
    def died(self) -> Sequence[Anomaly]:
        """Nodes that have ended although nothing excuses that."""
        return [anomaly for course in self.courses for anomaly in course.died.values()]

    def lap(self, name: str) -> None:
        """A phase is over."""
        now = time.monotonic()
        self.laps[name] = round(self.laps.get(name, 0.0) + now - self._lap_began, 3)
        self._lap_began = now

    def _course(self, cluster: RunCluster) -> Course:
        senders, limits = self.scenario.senders, self._asked.limits
        course = Course(cluster, self.control, self.layout, senders, limits)
        self.courses.append(course)
        return course

    def _until_drained(self, cluster: RunCluster) -> None:
        """All is done, and its last batch once more if that is asked for; the nodes may be dead
        then."""
        asked, course = self._asked, self._course(cluster)
        course.begin()
        self.lap("start")
        course.until_drained()
        if course.all_sent:
            self._note_what_is_left()
        self.lap("run")
        if not course.all_sent:
            return
        if asked.replay or asked.again is not None:
            self.drained, self.until_drained = self.seen(), tuple(self.control.events)
            self.died_before = tuple(course.died.values())
        if asked.replay:
            course.replay()
            self._note_what_is_left()
            self.lap("replay")

    def _end_and_start_again(
        self, cluster: RunCluster, known: set[bytes], is_right: Callable[[], bool]
    ) -> None:
        """Start every node on the files as they are, and on what a power cut leaves of them: one
        of all nodes, and before that, where it leaves something else, one that spares those that
        have only removed something."""
        cuts = self._asked.power_cut
        self.how_ended = KILLED
        cluster.kill_servers()
        if self._leaves_anew(known) and not (cuts and self.scenario.outputs == "kafka"):
            kept = KeptFiles(self.layout) if cuts else None
            self._start_again(cluster)
            if kept is None or not is_right():
                return
            known.add(self.left)
            cluster.kill_servers()
            kept.bring_back()
        if not cuts:
            return
        self.how_ended = POWER_CUT
        if self.scenario.outputs != "kafka" and cluster.loses_apart():
            kept = KeptFiles(self.layout)
            if self._cut_power_and_start_again(cluster, known, apart=True):
                if not is_right():
                    return
                known.add(self.left)
                cluster.kill_servers()
            kept.bring_back()
        self._cut_power_and_start_again(cluster, known)

    def _cut_power_and_start_again(
        self, cluster: RunCluster, known: set[bytes], *, apart: bool = False
    ) -> bool:
        """Whether the nodes were started, which they are not on what is known."""
        if self.scenario.outputs == "receiver":
            self.last = self.seen()  # it makes its output again, which need not be durable
        cluster.lose_power(apart=apart)
        self._note_what_is_left(power_was_cut=True)
        anew = self._leaves_anew(known)
        if anew:
            self.last = None
            self._start_again(cluster)
        return anew

    def _leaves_anew(self, known: set[bytes]) -> bool:
        """Whether no run is known to have left the same on the disks, where that can be told."""
        self.left = remains(self.layout) if self.scenario.outputs != "kafka" else b""
        return self.left not in known

    def _start_again(self, cluster: RunCluster) -> None:
        self._backend.conductor.end(self.control)
        self.control = RunControl(
            self.run, cluster, normalise=StageNumbers(), answer=self._moments.answer
        )
        course = self._course(cluster)
        self._backend.conductor.begin(self.control)
        course.again()
        if course.all_sent:
            self._note_what_is_left(power_was_cut=self.how_ended == POWER_CUT)
        self.lap("again")

    def _ended_stuck(self, cluster: RunCluster, error: StuckError) -> None:
        if self._asked.limits.over:
            self.blind = "the budget ended within this run"
        self.unended = self.control.unended
        where = f"{error}; {self.control.progress_summary()}"
        self.stuck.append(stuck(where, nodes=standing(cluster, self.control)))

    def _note_what_is_left(self, power_was_cut: bool = False) -> None:
        """Where all messages are done with."""
        scenario, layout, faults = self.scenario, self.layout, self._schedule.faults
        if scenario.judges_state:
            self.states.append(left_state(self.application, layout))
        sent = {stream: len(self.messages[stream]) for stream in scenario.senders}
        noted = {stream: sent[stream] for stream in to_be_noted(scenario.senders, faults)}
        disturbed = power_was_cut or bool(faults)
        swept = set() if power_was_cut else swept_in_the_end(sent, faults, self.first.events)
        unswept = None if power_was_cut else commits_disturbed(faults, self.first.events)
        is_left = self._asked.again is None
        own = [name for name in scenario.servers if is_left and name not in scenario.classes]
        found = [
            *check_sent(layout, noted),
            *check_logs(layout, sent, swept=swept, unswept=unswept, not_started=own),
            *check_fences(
                layout, self.application, scenario.outputs, scenario.classes.get("sink", "")
            ),
            *check_notes(layout),
            *check_numbers(layout, self.messages if scenario.inputs == "folder" else ()),
        ]
        if not disturbed and not self._closed_as_told():
            found.append(stuck("no batch was closed by time", expected="batches that time closes"))
        if not power_was_cut:  # what was removed may be back, for nobody waits for that
            found += left_over(layout, scenario.versions, faults, self.first.evidence.values())
        self.left_behind.append(found)

    def _closed_as_told(self) -> bool:
        """Whether time has closed a batch, where a scenario tells when. If none has, each message
        lay until others had come, or until its stream had ended."""
        if not self.scenario.moments:
            return True
        return any(StepId.parse(event.step).is_wait for event in self.first.events)
