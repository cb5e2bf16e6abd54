"""Why a run of a job went well: what could have hit it, beside what can hit a sink."""

from __future__ import annotations

from collections.abc import Iterator

from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.faults.failed_step import FailedStep
from bettong.harness.queries.faults.operations import (
    LATER,
    LONGER,
    MORE,
    PARTITIONS,
    REPEATED,
    REPLAYED_PARTITIONS,
    STOPPED,
)
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.wire import WirePoint
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.lineage import Why

_AROUND_PLANNING = (("commits", "after"), ("offsets", "before"))
"""Of one batch, and of the one after it."""


class JobWhy(Why):
    """Reads lineage out of runs of a job: its batches go through its source's log, its tasks, its
    state files and Spark's logs, and each of these can fail beside what can hit a sink."""

    repeats = False
    """Whether rows that are sent twice must count once: the job deduplicates."""
    fed = True
    """Whether it is fed step by step: a source of its own gives all its rows at once."""
    divisible = False
    """Whether it has rows enough for as many steps as some mistakes need to show."""
    topics = False
    """Whether it reads topics."""
    without_data: int | None = None
    """The last batch, if it has no data: it closes what is open."""
    own_source = False
    """Whether a source is not Spark's: what it keeps, and where, nobody knows."""
    own_session = False
    """Whether it is not Bettong that has its Spark session."""
    _middle: frozenset[str] = frozenset()

    def read_clean(self, run: QueryRun, wire: list[WirePoint]) -> None:
        """Take in the clean run; to a session of somebody else less can be done."""
        super().read_clean(run, wire)
        self._middle = _middle_stores(run)
        self.in_tasks = self.in_tasks and not self.own_session

    def _batch_of(self, crash_point: CrashPoint) -> int | None:
        """A source's log entry belongs to the batch of its number, what a query writes once to
        the first one. Before a last batch without data is planned nothing fires: a new driver makes
        none until there is data, so that what it would close is late, and not lost. Of the state
        stores that one task writes, such as the four of a join, the first and the last stand for
        all: none of them counts before all are there."""
        step = StepId.parse(crash_point.point.step)
        at = step.last, crash_point.point.phase
        if step.batch is not None and self.without_data is not None and at in _AROUND_PLANNING:
            planned = step.batch + (step.last == "commits")
            if planned == self.without_data:
                return None
        if _store_of(step) in self._middle:
            return None
        if step.source_log is not None:
            return step.source_log
        return 0 if step.is_written_once else step.batch

    def _faults_at(self, crash_point: CrashPoint) -> Iterator[QueryFault]:
        """A file of the checkpoint cannot be written, beside what can hit a sink."""
        yield from super()._faults_at(crash_point)
        point = crash_point.point
        if StepId.parse(point.step).is_checkpoint_file and point.phase == "before":
            yield FailedStep(point)

    def _rank(self, fault: QueryFault) -> tuple[int, bool] | None:
        """A driver that dies when a source of the user's own was asked for more, and nothing is
        written of it yet, has it asked once more."""
        asks_again = self.own_source and fault.crashes and _is_planned(fault.recovers_from)
        return (0, True) if asks_again else super()._rank(fault)

    def _left(self, fault: QueryFault, crash_point: CrashPoint, run: QueryRun) -> str:
        """What a source of the user's own has done since the batch before is not always seen."""
        if self.own_source and _is_planned(crash_point.point):
            return fault.id
        return super()._left(fault, crash_point, run)

    def _loses(self, crash_point: CrashPoint) -> bool:
        """Not where a task reads a shuffle: what it reads is lost with the executor, and the whole
        stage is tried again."""
        first = StepId.parse(crash_point.point.step).stage in (None, 0)
        return first and not self.own_session and super()._loses(crash_point)

    def _events(self) -> Iterator[QueryFault]:
        if self.fed:
            yield STOPPED
            yield MORE
        if any(m.point == LATER.crash for m in self.clean_crash_points):
            yield LATER
        if self.divisible:
            yield LONGER
        if self.topics:
            yield PARTITIONS
            yield REPLAYED_PARTITIONS
        if self.repeats:
            yield REPEATED


def _is_planned(point: Point | None) -> bool:
    """Whether a batch is about to be recorded as planned."""
    return (
        point is not None and point.phase == "before" and StepId.parse(point.step).last == "offsets"
    )


def _middle_stores(run: QueryRun) -> frozenset[str]:
    """The state stores between the first and the last that a task writes."""
    by_operator: dict[str, dict[str, None]] = {}
    for moment in run.crash_points:
        store = _store_of(StepId.parse(moment.point.step))
        operator, _, name = store.partition(" ")
        if name:
            by_operator.setdefault(operator, {})[store] = None
    return frozenset(store for stores in by_operator.values() for store in list(stores)[1:-1])


def _store_of(step: StepId) -> str:
    """Which of its operator's state stores it is of: ``op=0 left-keyToNumValues``, with no name
    where an operator has only one."""
    if not step.is_state_file:
        return ""
    _, _, operator, _, *store, _ = str(step).split("/")
    return f"{operator} {'/'.join(store)}"
