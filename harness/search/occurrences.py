"""The steps of a trace, one by one: when each occurrence began and ended, and what caused it.

Our own code names the causes of its steps. Spark's steps come from hooks that cannot know them;
they are joined here by Spark's order of work in a micro-batch: a batch's offsets are written
after they were decided, its tasks start after that, a stage after the one before it, whatever a
task does happens inside its attempt, and ``commits/N`` follows the sink. A step whose cause can
be seen in neither way is named in :attr:`Reading.unread`, not guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bettong.harness.faults.fault import DiskCall, Fault
from bettong.harness.faults.point import PointPhase
from bettong.harness.faults.registry import parse_fault
from bettong.harness.faults.step_ids import FAULT, NODE_START, REPLAY, StepId
from bettong.lineage.trace import MessageRange, TraceEvent

# What a call to the disk does that those who read it later can see.
_LEAVES = frozenset({"append", "truncate", "rename", "link", "remove"})
_ANSWERED = ("answered", "")
_RANDOM = re.compile(r"(?!0000)[0-9a-f]{12,}")  # what numbers files has zeros before it


def leaving(calls: Iterable[DiskCall]) -> bool:
    """Whether calls to the disk have left something there."""
    return any(call.operation in _LEAVES for call in calls)


@dataclass(slots=True)
class Occurrence:
    """One taking of a step.

    Attributes:
        step, number: the step's id, and which time it was taken, counted from 1.
        id: the same id by its parts.
        node, incarnation: where.
        link: ``a->b`` when it is a request.
        begun: position of its ``before`` event in the trace.
        ended: position of its ``after`` event, or None when it failed or never ended.
        failed: position of its ``failed`` event, or None when it did not end by an error.
        causes: occurrences that it had read when it began.
        answers: those that it read before it ended, such as a server's reply.
        carries: the messages that it moved.
        calls: what it has done to the disk itself.
        later_calls: what its thread has done to the disk after it, before the next step.
        reads, later_reads: the files and folders that were opened to be read then.
    """

    step: str
    number: int
    node: str
    incarnation: int
    link: str | None
    begun: int
    ended: int | None = None
    failed: int | None = None
    causes: list[Occurrence] = field(default_factory=list)
    answers: list[Occurrence] = field(default_factory=list)
    carries: tuple[MessageRange, ...] = ()
    calls: list[DiskCall] = field(default_factory=list)
    later_calls: list[DiskCall] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    later_reads: list[str] = field(default_factory=list)
    id: StepId = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.id = StepId.parse(self.step)

    @property
    def name(self) -> str:
        """The step with its occurrence, as schedules write it."""
        return self.step if self.number == 1 else f"{self.step}#{self.number}"

    @property
    def records(self) -> Counter[tuple[str, str]]:
        """What it has left for those who read it later, on its node's disk: each operation with its
        file, how often, also what its thread has done after it; of a server, whose memory outlives
        those who ask, also that it has answered at all, which is not what it has written in another
        try. A step that has failed may have got halfway."""
        left, later = _left(self.calls), _left(self.later_calls)
        noted = self.id.is_noted_by_spark or self.answers_a_request
        if not left and self.ended is not None and noted:
            left = Counter([_ANSWERED])
        return left + later if later else left

    @property
    def edges(self) -> Sequence[tuple[int, PointPhase]]:
        """The places of the trace at which it began, and ended well, if it did."""
        begun: tuple[int, PointPhase] = (self.begun, "before")
        return (begun,) if self.ended is None else (begun, (self.ended, "after"))

    @property
    def answers_a_request(self) -> bool:
        """Whether another node has asked for it."""
        return any((cause.link or "").endswith(f"->{self.node}") for cause in self.causes)

    @property
    def record(self) -> str:
        """Whose records these are: a note of a batch says beside its name what the batch takes."""
        return f"{self.step} {self.carries}" if self.id.last == "source.note" else self.step

    def done_at(self, position: int) -> bool:
        """Whether it had ended well at this place of the trace."""
        return self.ended is not None and self.ended <= position

    def over_at(self, position: int) -> bool:
        """The same, or that it had failed."""
        over = self.failed if self.ended is None else self.ended
        return over is not None and over <= position


@dataclass(slots=True)
class Restart:
    """A node that came back: its new incarnation, where in the trace."""

    node: str
    incarnation: int
    position: int


@dataclass(slots=True)
class FaultedStep:
    """A fault that was in force from this place of the trace on."""

    fault: Fault
    node: str
    position: int


@dataclass(frozen=True, slots=True)
class DiskReport:
    """What a thread has done to the disk between two of its events, or threads before their first.

    Attributes:
        position: of the later one, in the trace; of the first one that told of it.
        of: the step at whose edge the thread was; the one that told of it, where there was none.
        phase: which edge; ``before``: within the step; empty for none.
        calls: each ``[number, operation, operands…, bytes written]``; of an ``append`` the last
            operand is the checksum of these bytes.
    """

    position: int
    of: Occurrence
    phase: str
    calls: Sequence[Sequence[Any]]


@dataclass(slots=True)
class Reading:
    """A trace as occurrences.

    Attributes:
        occurrences: in the order in which they began.
        disk: what was done to disks, in the order in which it was reported.
        restarts, injected: what became of nodes, and of the planned faults.
        unread: steps whose causes cannot be known, with why.
    """

    occurrences: list[Occurrence] = field(default_factory=list)
    restarts: list[Restart] = field(default_factory=list)
    injected: list[FaultedStep] = field(default_factory=list)
    disk: list[DiskReport] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def read_occurrences(events: Iterable[TraceEvent]) -> Reading:
    """Read a run's trace, given in the order in which its events arrived."""
    return _Reader().read(events)


class _Reader:
    def __init__(self) -> None:
        self._reading = Reading()
        self._counts: Counter[str] = Counter()
        self._latest: dict[str, Occurrence] = {}
        self._open: dict[tuple[str, int, str], Occurrence] = {}
        self._own: dict[tuple[str, int, str], Occurrence] = {}
        self._files: dict[str, str] = {}

    def read(self, events: Iterable[TraceEvent]) -> Reading:
        for position, event in enumerate(events):
            if event.step.startswith(REPLAY):
                break  # the run is over; what follows is the check that a replay changes nothing
            if event.step.startswith(FAULT):
                self._fault(event, position)
            elif event.step.startswith(NODE_START):
                self._reading.restarts.append(Restart(event.node, event.incarnation, position))
            elif event.phase == "before":
                self._begin(event, position)
                self._disk(event, position)
            else:
                self._disk(event, position)
                self._end(event, position)
        return self._reading

    def _fault(self, event: TraceEvent, position: int) -> None:
        known = {s.fault.id for s in self._reading.injected}
        if event.step.removeprefix(FAULT) not in known:
            fault = parse_fault(event.detail.get("fault"), f"the trace's {event.step}")
            self._reading.injected.append(FaultedStep(fault, event.node, position))

    def _disk(self, event: TraceEvent, position: int) -> None:
        report = event.detail.get("disk")
        if report is None:
            return
        here = self._own.get((event.node, event.incarnation, event.step))
        if here is None:
            return  # it has ended without having begun, which is told
        if report["more"]:
            unread = f"{here.name}: {report['more']} disk calls before it are not reported"
            self._reading.unread.append(unread)
        if outside := report.get("outside"):
            self._called(DiskReport(position, here, "", outside))
        if after := report.get("after"):
            phase, _, step = after.partition(" ")
            of = self._own[event.node, event.incarnation, step]
            self._called(DiskReport(position, of, phase, report["calls"]))
            # Which of Spark's processes runs a task is chance, and so is what that has read before.
            if not any(cause.id.is_task for cause in of.causes):
                read = of.reads if phase == "before" else of.later_reads
                read.extend(report.get("reads", ()))

    def _called(self, report: DiskReport) -> None:
        calls = [
            DiskCall(number, operation, self._file(operation, operands))
            for number, operation, *operands, _ in report.calls
            if operation != "sync failed"
        ]
        if report.phase:
            of = report.of
            (of.calls if report.phase == "before" else of.later_calls).extend(calls)
        self._reading.disk.append(report)

    def _file(self, operation: str, operands: Sequence[str]) -> str:
        """The file that a call was made to: of what is open the name that it has now."""
        match operation:
            case "open":
                self._files[operands[0]] = operands[1]
                return named(operands[1])
            case "append" | "truncate" | "sync":
                return named(self._files.get(operands[0], ""))
            case "rename":
                for handle, name in self._files.items():
                    if name == operands[0]:
                        self._files[handle] = operands[1]
        return named(operands[-1])

    def _begin(self, event: TraceEvent, position: int) -> None:
        self._counts[event.step] += 1
        link = event.link
        if link is not None and not all(link.partition("->")):
            self._reading.unread.append(f"{event.step}: its link {link} does not name two nodes")
            link = None
        occurrence = Occurrence(
            event.step,
            self._counts[event.step],
            event.node,
            event.incarnation,
            link,
            position,
            carries=event.carries,
        )
        occurrence.causes = self._named(event, occurrence) + self._joined_begin(occurrence)
        if not occurrence.causes and not occurrence.id.is_root:
            self._reading.unread.append(f"{occurrence.name}: it names no cause")
        self._latest[event.step] = occurrence
        self._open[event.node, event.incarnation, event.step] = occurrence
        self._own[event.node, event.incarnation, event.step] = occurrence
        self._reading.occurrences.append(occurrence)

    def _end(self, event: TraceEvent, position: int) -> None:
        occurrence = self._open.pop((event.node, event.incarnation, event.step), None)
        if occurrence is None:
            self._reading.unread.append(f"{event.step}: it ended without having begun")
            return
        if event.phase == "failed":
            occurrence.failed = position
            return
        known = {id(c) for c in occurrence.causes}
        found = self._named(event, occurrence) + self._joined_end(occurrence)
        occurrence.answers = [c for c in found if id(c) not in known]
        occurrence.carries = event.carries
        occurrence.ended = position

    def _named(self, event: TraceEvent, occurrence: Occurrence) -> list[Occurrence]:
        found = []
        for cause in event.causes:
            latest = self._latest.get(cause)
            if latest is None:
                self._reading.unread.append(
                    f"{occurrence.name}: its cause {cause} has not been seen"
                )
            elif latest is not occurrence:
                found.append(latest)
        return found

    def _joined_begin(self, occurrence: Occurrence) -> list[Occurrence]:
        id = occurrence.id
        step, batch = id.unnamed, id.batch
        if batch is None:
            return self._done("metadata") if id.source_log is not None else []
        if id.is_task and id.stage is not None:
            if id.stage == 0:
                return self._done(f"batch={batch}/offsets")
            return self._done_tasks(batch, id.stage - 1)
        if id.is_within_task:
            read = f"batch={batch - 1}/state.manifest" if step.endswith("/state.write") else ""
            note = f"batch={batch}/source.note" if step.endswith("/source.read") else ""
            running = (o for o in self._open.values() if o.id.is_task and o.id.task == id.task)
            return [*self._done(read, note), *running]
        empty = step == f"batch={batch}/source.note" and not occurrence.carries
        if empty or step in (f"batch={batch}/source.plan", f"batch={batch}/source.wait"):
            return (
                self._done(f"batch={batch}/source.wait")
                or self._done(f"batch={batch - 1}/commits")
                or self._done(f"batch={batch - 1}/source.commit")  # the runner without Spark
                or self._last_epoch()
            )
        if step == f"batch={batch}/offsets":
            logs = [o for o in self._latest.values() if o.id.source_log is not None and o.ended]
            return self._done(f"batch={batch}/source.plan", f"batch={batch}/source.note") or [
                *self._done(f"batch={batch - 1}/commits", "metadata"),
                *(logs if batch == 0 else ()),
            ]
        if step == f"batch={batch}/commits":
            return self._done(f"batch={batch}/sink.commit", f"batch={batch}/_spark_metadata") or [
                *self._last_tasks(batch),
                *self._done(f"batch={batch}/offsets"),
            ]
        if step.startswith(f"batch={batch}/_spark_metadata"):
            return self._last_tasks(batch)
        return []

    def _joined_end(self, occurrence: Occurrence) -> list[Occurrence]:
        if not occurrence.id.is_task:
            return []
        return [
            o
            for o in self._latest.values()
            if o.id.is_within_task
            and o.id.task == occurrence.id.task
            and o.begun > occurrence.begun
            and o.ended is not None
        ]

    def _last_epoch(self) -> list[Occurrence]:
        opened = [o for o in self._latest.values() if o.id.begins_epoch and o.ended]
        return opened[-1:]

    def _done(self, *steps: str) -> list[Occurrence]:
        """Those of these steps that have ended, at every source and sink."""
        return [o for o in self._latest.values() if o.id.unnamed in steps and o.ended is not None]

    def _done_tasks(self, batch: int, stage: int) -> list[Occurrence]:
        return [
            o
            for o in self._latest.values()
            if o.id.is_task and (o.id.batch, o.id.stage) == (batch, stage) and o.ended is not None
        ]

    def _last_tasks(self, batch: int) -> list[Occurrence]:
        tasks = (o.id for o in self._latest.values() if o.id.is_task and o.id.batch == batch)
        stages = [id.stage for id in tasks if id.stage is not None]
        return self._done_tasks(batch, max(stages)) if stages else []


def _left(calls: Iterable[DiskCall]) -> Counter[tuple[str, str]]:
    return Counter((c.operation, c.file) for c in calls if c.operation in _LEAVES)


def named(file: str) -> str:
    """A file's name without what is chance in it."""
    return _RANDOM.sub("*", file)
